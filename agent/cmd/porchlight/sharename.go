package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
)

// maxName is the longest name of an app, in characters; room is left for a number.
const maxName = 60

// suggestName makes a name for what listens on a port: of the directory the owner is
// in, where that says something, else of the program. It is one that no app has and
// that may be an app's.
func suggestName(state agentapi.OwnerState, listener agentapi.Listener) string {
	base := asName(directoryName())
	if base == "" {
		base = asName(listener.Program)
	}
	if base == "" || base == "www" || base == "portal" {
		base = "app"
	}
	taken := func(name string) bool {
		return name == state.Account.Name || slices.ContainsFunc(state.Apps, func(a agentapi.OwnerApp) bool {
			return a.Name == name || strings.EqualFold(a.Label, name)
		})
	}
	name := base
	for n := 2; taken(name); n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	return name
}

// directoryName is what the working directory is called; empty for the home directory
// and for the root, which say nothing of an app.
func directoryName() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.Clean(home) == dir {
		return ""
	}
	if base := filepath.Base(dir); base != string(filepath.Separator) && base != filepath.VolumeName(dir) {
		return base
	}
	return ""
}

// asName is a text as a name: lower-case letters, digits, and single hyphens for all
// else between them.
func asName(text string) string {
	name := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
	return strings.Trim(name[:min(len(name), maxName)], "-")
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// quietKinds lists for the help what settings --quiet takes, a line each.
func quietKinds() string {
	var b strings.Builder
	for _, k := range agentapi.Kinds() {
		fmt.Fprintf(&b, "  %-11s %s\n", k.Name, k.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// checkQuiet refuses a kind nobody knows: it would be kept and change nothing.
func checkQuiet(kinds []string) error {
	for _, kind := range kinds {
		if !slices.ContainsFunc(agentapi.Kinds(), func(k agentapi.Kind) bool { return k.Name == kind }) {
			return commandline.Usagef("there is no kind of notification %q; 'porchlight settings --help' lists them", printable(kind))
		}
	}
	return nil
}

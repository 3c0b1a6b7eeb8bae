package main

import (
	"fmt"
	"slices"
	"strings"
)

// notificationKinds are what settings --quiet takes: the kinds the menu-bar app
// knows, with what each is about.
var notificationKinds = [][2]string{
	{"request", "an app asks for an address"},
	{"invitation", "somebody accepted an invitation"},
	{"capability", "an app changed who may come in"},
	{"client", "a remote client was let in"},
	{"access", "what you ended, and what that closed"},
	{"connection", "something keeps visitors out"},
	{"changed", "an app changed its label, port or program"},
}

// quietKinds lists them for the help, a line each.
func quietKinds() string {
	var b strings.Builder
	for _, k := range notificationKinds {
		fmt.Fprintf(&b, "  %-11s %s\n", k[0], k[1])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// checkQuiet refuses a kind nobody knows: it would be kept and change nothing.
func checkQuiet(kinds []string) error {
	for _, kind := range kinds {
		if !slices.ContainsFunc(notificationKinds, func(k [2]string) bool { return k[0] == kind }) {
			return usagef("there is no kind of notification %q; 'porchlight settings --help' lists them", printable(kind))
		}
	}
	return nil
}

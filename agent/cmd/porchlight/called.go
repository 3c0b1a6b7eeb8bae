package main

import (
	"fmt"
	"strings"

	"porchlight/agent/agentapi"
)

// appsCalled finds the approved apps that words name: by the label, in whatever capitals,
// by the name, or by the address. One that names no app becomes an app of that label alone,
// which the agent refuses. One that could mean several apps is refused here, so that nobody
// is let in to the wrong one. Requests do not count: any local program may ask under any
// name, and is not to take the words from an app of the owner's.
func appsCalled(state agentapi.OwnerState, words ...string) ([]agentapi.OwnerApp, error) {
	out := make([]agentapi.OwnerApp, len(words))
	for i, word := range words {
		address := strings.TrimSuffix(strings.TrimPrefix(word, "https://"), "/")
		var meant []agentapi.OwnerApp
		var shown []string
		for _, app := range state.Apps {
			at := app.Name + "." + state.Account.Host
			if app.ApprovedAt != nil && (strings.EqualFold(app.Label, word) || app.Name == word || at == address) {
				meant = append(meant, app)
				shown = append(shown, fmt.Sprintf("%q at %s", app.Label, at))
			}
		}
		switch len(meant) {
		case 0:
			out[i].Label = word
		case 1:
			out[i] = meant[0]
		default:
			return nil, agentapi.Errorf(agentapi.CodeInvalid, "%q may mean %s. Name it by its address.", word, strings.Join(shown, ", or "))
		}
	}
	return out, nil
}

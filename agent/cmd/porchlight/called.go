package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// appsCalled finds the approved apps that words name: by the label, in whatever capitals,
// by the name, or by the address. A word that names none, or could mean several, is refused
// here, so that nobody is let in to the wrong one; its owner, who asks here, is told which
// there are. Requests do not count: any local program may ask under any name, and is not to
// take the words from an app of the owner's.
func appsCalled(ctx context.Context, client *agentapi.Client, called ...string) ([]agentapi.OwnerApp, agentapi.OwnerState, error) {
	state, err := client.State(ctx)
	if err != nil {
		return nil, state, err
	}
	out := make([]agentapi.OwnerApp, len(called))
	for i, word := range called {
		word = norm.NFC.String(strings.TrimSpace(word)) // as labels are kept
		address := strings.TrimSuffix(strings.TrimPrefix(word, "https://"), "/")
		var shown []string
		for _, app := range state.Apps {
			named := app.Name + "." + state.Account.Host
			if app.ApprovedAt != nil && (strings.EqualFold(app.Label, word) || app.Name == word || named == address) {
				out[i] = app
				shown = append(shown, fmt.Sprintf("%q at %s", app.Label, named))
			}
		}
		switch len(shown) {
		case 0:
			return nil, state, agentapi.Errorf(agentapi.CodeInvalid, "%s %s", agentapi.NoAppCalled(word), served(state))
		case 1:
		default:
			return nil, state, agentapi.Errorf(agentapi.CodeInvalid, "%q may mean %s. Name it by its address.", word, strings.Join(shown, ", or "))
		}
	}
	return out, state, nil
}

// served says which apps this computer serves, five at most.
func served(state agentapi.OwnerState) string {
	var labels []string
	for _, app := range state.Apps {
		if app.ApprovedAt != nil {
			labels = append(labels, fmt.Sprintf("%q", app.Label))
		}
	}
	const most, more = 5, " See: porchlight apps"
	switch {
	case len(labels) == 0:
		return "It serves none yet." + more
	case len(labels) > most:
		return "It serves " + words.English.List(labels, most) + "." + more
	}
	return "It serves " + words.English.List(labels, most) + "."
}

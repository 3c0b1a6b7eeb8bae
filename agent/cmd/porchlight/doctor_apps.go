package main

import (
	"context"
	"fmt"

	"porchlight/agent/agentapi"
)

const certificateNext = "Look whether the authority can reach the relay, and what its CAA record allows; Porchlight tries again by itself."

// checkApp looks at one app: whether it waits, answers, and has a certificate.
func checkApp(ctx context.Context, app agentapi.OwnerApp, ask asker) []finding {
	name := "app " + app.Name
	switch {
	case app.Status == agentapi.StatusPending:
		return []finding{waiting(name, app)}
	case app.Status != agentapi.StatusLive:
		return nil
	case app.Paused:
		return []finding{{name, note, app.Label + " is paused by you.", "To open it again, type: porchlight resume " + app.Name}}
	}
	found := checkHealth(ctx, name, app, ask)
	if c := app.Certificate; c != nil && c.Problem != "" {
		found = append(found, finding{name, wrong, c.Problem, certificateNext})
	}
	return found
}

// waiting is an app that the owner has not answered.
func waiting(name string, app agentapi.OwnerApp) finding {
	next := fmt.Sprintf("To let it, type: porchlight approve %s. To refuse: porchlight deny %[1]s", app.Name)
	if changed := app.ListenerChange(printable); changed != "" {
		return finding{name, wrong, changed + " Nobody reaches it until you answer.", next}
	}
	return finding{name, note, fmt.Sprintf("%s waits for you: it wants an address for port %d.", app.Label, app.LocalPort), next}
}

// checkUsers tells of other users of this computer who wait for an answer.
func checkUsers(users []agentapi.LocalUser) []finding {
	var found []finding
	for _, u := range users {
		if u.Standing == agentapi.UserAsks {
			found = append(found, finding{"user " + u.Name, note, fmt.Sprintf("A program of %s wants to register, to see and change who may open your apps.", u.Name),
				fmt.Sprintf("To let them, type: porchlight users allow %s. To refuse: porchlight users deny %[1]s", u.Name)})
		}
	}
	return found
}

// checkMails tells of invitations that did not arrive.
func checkMails(undelivered []string) []finding {
	var found []finding
	for _, to := range undelivered {
		found = append(found, finding{"mail", wrong, fmt.Sprintf("An invitation for %s was given up: the mail server refused it, or was away for too long.", to),
			fmt.Sprintf("Look whether the address is right, and invite again: porchlight people invite %s --app LABEL. Whoever runs the control plane sees why: porchlight-control outbox --failed", to)})
	}
	return found
}

package doctor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/oneline"
	"porchlight/internal/words"
)

const certificateNext = "Look whether the authority can reach the relay, and what its CAA record allows; Porchlight tries again by itself."

// App looks at one app: whether it waits, answers, and has a certificate.
func App(ctx context.Context, app agentapi.OwnerApp, ask Asker) []Finding {
	name := "app " + app.Name
	switch {
	case app.Status == agentapi.StatusPending:
		return append([]Finding{waiting(name, app)}, network(name, app.InNetwork)...)
	case app.Status != agentapi.StatusLive:
		return nil
	case app.Paused:
		return append(network(name, app.InNetwork), Found(name, note, app.Label+" is paused by you.", "To open it again, type: porchlight resume "+app.Name))
	}
	found := append(checkHealth(ctx, name, app, ask), network(name, app.InNetwork)...)
	if c := app.Certificate; c != nil && c.Problem != "" {
		found = append(found, Finding{Check: name, State: wrong, Text: c.Problem, Words: c.Words, Next: certificateNext})
	}
	return found
}

// network is an app that other computers can open past Porchlight.
func network(name string, in agentapi.InNetwork) []Finding {
	if !in.Network {
		return nil
	}
	return []Finding{{Check: name, State: note, Text: in.NetworkDetail, Words: in.NetworkWords}}
}

// waiting is an app that the owner has not answered.
func waiting(name string, app agentapi.OwnerApp) Finding {
	next := fmt.Sprintf("To let it, type: porchlight approve %s. To refuse: porchlight deny %[1]s", app.Name)
	if changed := app.Changed(oneline.Printable); !changed.IsZero() {
		both := words.Text{changed, words.Of("Nobody reaches it until you answer.")}
		return Finding{Check: name, State: wrong, Text: both.String(), Words: both, Next: next}
	}
	return Said(name, note, words.Of("%[1]s waits for you: it wants an address for port %[2]s.", app.Label, strconv.Itoa(app.LocalPort)), next)
}

// HTTP tells of faults in what reads visitors' requests.
func HTTP(broken int) []Finding {
	if broken == 0 {
		return nil
	}
	text := words.Of("Porchlight's own reading of visitors' requests has failed %[1]s times since it was started; each time one connection was lost.", strconv.Itoa(broken))
	if broken == 1 {
		text = words.Of("Porchlight's own reading of visitors' requests has failed once since it was started; one connection was lost.")
	}
	return []Finding{Said("requests", wrong, text,
		"Its log says where. Send those lines to whoever gave you Porchlight; visitors can try again.")}
}

// Crowded tells that visitors had all they may have, within the last hour.
func Crowded(at *time.Time) []Finding {
	if at == nil || time.Since(*at) > time.Hour {
		return nil
	}
	return []Finding{Said("requests", note, words.Of("Within the last hour visitors, or one network of them, had all the connections or all the memory that they may have, and some were turned away."),
		"Whoever is signed in has places kept. Its log names the limit, and a network that met it.")}
}

// Containers tells what keeps containers from the addresses that they ask for.
func Containers(trouble *agentapi.ContainersTrouble) []Finding {
	if trouble == nil {
		return nil
	}
	f := Finding{Check: "containers", State: note, Text: trouble.Words.String(), Words: trouble.Words}
	if trouble.Away {
		f.State, f.Next = wrong, "Start it, or name another: porchlight settings --containers SOCKET. Until it answers, containers that start get no visitors."
	}
	return []Finding{f}
}

// Users tells of other users of this computer who wait for an answer.
func Users(users []agentapi.LocalUser) []Finding {
	var found []Finding
	for _, u := range users {
		if u.Standing == agentapi.UserAsks {
			found = append(found, Found("user "+u.Name, note, fmt.Sprintf("A program of %s wants to register, to see and change who may open your apps.", u.Name),
				fmt.Sprintf("To let them, type: porchlight users allow %s. To refuse: porchlight users deny %[1]s", u.Name)))
		}
	}
	return found
}

// Mails tells of invitations that did not arrive.
func Mails(undelivered []string) []Finding {
	var found []Finding
	for _, to := range undelivered {
		found = append(found, Found("mail", wrong, fmt.Sprintf("An invitation for %s was given up: the mail server refused it, or was away for too long.", to),
			fmt.Sprintf("Look whether the address is right, and invite again: porchlight people invite %s --app LABEL. Whoever runs the control plane sees why: porchlight-control outbox --failed", to)))
	}
	return found
}

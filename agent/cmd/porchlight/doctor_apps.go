package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"porchlight/agent/agentapi"
)

const certificateNext = "Look whether the authority can reach the relay, and what its CAA record allows; Porchlight tries again by itself."

// checkApp looks at one app: whether it waits, answers, and has a certificate.
func checkApp(ctx context.Context, app agentapi.OwnerApp) []finding {
	name := "app " + app.Name
	switch {
	case app.Status == agentapi.StatusPending:
		return []finding{waiting(name, app)}
	case app.Status != agentapi.StatusLive:
		return nil
	case app.Paused:
		return []finding{{name, note, app.Label + " is paused by you.", "To open it again, type: porchlight resume " + app.Name}}
	}
	found := []finding{checkAnswer(ctx, name, app)}
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

// checkAnswer asks an app for its first page, as a visitor's browser would.
func checkAnswer(ctx context.Context, name string, app agentapi.OwnerApp) finding {
	port := strconv.Itoa(app.LocalPort)
	conn, err := dial(ctx, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		if conn, err := dial(ctx, net.JoinHostPort("::1", port)); err == nil {
			conn.Close()
			return finding{name, wrong, fmt.Sprintf("%s listens on port %s of ::1 only, and Porchlight asks 127.0.0.1.", app.Label, port), "Have it listen on 127.0.0.1."}
		}
		return finding{name, wrong, fmt.Sprintf("%s does not answer on port %s of 127.0.0.1.", app.Label, port), "Start it, or publish it anew with the port it listens on."}
	}
	conn.Close()
	if err := firstPage(ctx, port, app.Options.H2C); err != nil {
		return finding{name, wrong, fmt.Sprintf("%s takes connections on port %s and does not answer a request.", app.Label, port), "It hangs, or does not speak HTTP: look into its log, and start it again."}
	}
	return finding{name, fine, fmt.Sprintf("%s answers on port %s.", app.Label, port), ""}
}

// firstPage is nil when an app answers anything.
func firstPage(ctx context.Context, port string, h2c bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/", nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "porchlight-doctor")
	// Proxy stays nil: an app is on this computer.
	transport := &http.Transport{DisableKeepAlives: true}
	if h2c {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
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

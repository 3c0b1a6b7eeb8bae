package desktop

import (
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/menu"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

// asked is a request as a notification and the menu have it.
func asked(t *testing.T, app agentapi.OwnerApp) (notes.Note, menu.Line) {
	t.Helper()
	s := owner.State(app)
	show := notes.NewAnnouncer(notes.Told{}, time.Now).Next(s, func() []string { return nil }).Show
	lines := menu.Draw(menu.Picture{OwnerState: s, Now: owner.Noon}).Lines
	i := slices.IndexFunc(lines, func(l menu.Line) bool { return l.Text == language.Wants(app) })
	if len(show) != 1 || i < 0 {
		t.Fatalf("%s is not asked for: %+v", app.Name, show)
	}
	return show[0], lines[i]
}

// An app that asks again keeps its people: menu and notification say whose it would
// be again, and offer to take it from them.
func TestAskingAgain(t *testing.T) {
	t.Parallel()
	once := owner.Pending("notes", "Notes", 3000)
	once.ApprovedAt = &owner.Noon
	again := once
	again.OpenTo, again.OpenToCount = []string{"ben@example.com", "cy@example.com"}, 3
	again.AskedBy = "eve"
	open := once
	open.InNetwork = agentapi.InNetwork{Network: true, NetworkDetail: "Other computers can open port 3000."}
	alike := once
	alike.Resembles = "Nоtes"
	agent := once
	agent.Asks = &agentapi.Asks{Program: "porchlight", User: "maya", Assistant: "claude-code"}
	for _, c := range []struct {
		app  agentapi.OwnerApp
		body string
		want []verbs.Verb
	}{
		{alike, "notes.maya.localhost:8443, port 3000: python3, run by maya. Its name looks like that of another app, Nоtes. Then only you can open it.", []verbs.Verb{verbs.Approve, verbs.Approve, verbs.Deny}},
		{once, "notes.maya.localhost:8443, port 3000: python3, run by maya. Then only you can open it.", []verbs.Verb{verbs.Approve, verbs.Approve, verbs.Deny}},
		{open, "notes.maya.localhost:8443, port 3000: python3, run by maya. Other computers can open port 3000.", []verbs.Verb{verbs.Approve, verbs.Approve, verbs.Deny}},
		{agent, "notes.maya.localhost:8443, port 3000: python3, run by maya. Asked for by porchlight, run by maya. A coding agent asks. It calls itself “claude-code”. Then only you can open it.",
			[]verbs.Verb{verbs.Approve, verbs.Approve, verbs.Deny}},
		{again, "notes.maya.localhost:8443, port 3000: python3, run by maya. Asked for by eve, another user. If you approve it, ben@example.com and 2 others can open it again.",
			[]verbs.Verb{verbs.Approve, verbs.ApproveAlone, verbs.Deny}},
	} {
		n, asks := asked(t, c.app)
		var offered []verbs.Verb
		for _, b := range n.Buttons {
			offered = append(offered, b.Do.Verb)
		}
		if n.Title != "Notes has changed" || n.Body != c.body || !slices.Equal(offered, c.want) {
			t.Errorf("%q: %q, offers %v", n.Title, n.Body, offered)
		}
		var said strings.Builder
		offered = nil
		for _, l := range asks.Sub {
			said.WriteString(l.Text + " ")
			if v := l.Do.Verb; v != verbs.Nothing && v != verbs.Show {
				offered = append(offered, v)
			}
		}
		alone := slices.Contains(c.want, verbs.ApproveAlone)
		if alone { // a notification has room for three
			c.want = slices.Insert(c.want, 1, verbs.Approve)
		}
		if asks.Text != n.Title || !slices.Equal(offered, c.want) || strings.Contains(said.String(), "ben@example.com and 2 others can open it again.") != alone || strings.Contains(said.String(), "Asked for by eve") != alone || strings.Contains(said.String(), "Asked for by porchlight, run by maya. A coding agent asks. It calls itself “claude-code”.") != (c.app.Asks != nil) || strings.Contains(said.String(), "Other computers can open port 3000.") != c.app.Network || strings.Contains(said.String(), "Its name looks like that of another app, Nоtes.") != (c.app.Resembles != "") {
			t.Errorf("%q says %s, offers %v", asks.Text, said.String(), offered)
		}
	}
}

// TestAnotherUsersProgramIsShown: of an app that waits because another user's
// program listens, menu and notification say whose it was and whose it is.
func TestAnotherUsersProgramIsShown(t *testing.T) {
	t.Parallel()
	app := owner.Pending("notes", "Notes", 8000)
	app.Listener = agentapi.Listener{User: "nobody"}
	app.ApprovedListener = &agentapi.Listener{User: "ada", Program: "python3"}
	const want = "Notes was approved for ada; now a program of nobody listens on port 8000."
	n, asks := asked(t, app)
	if body := n.Body; !strings.HasPrefix(body, want) || strings.Contains(body, "Only you") {
		t.Errorf("the notification says %q", body)
	}
	var lines []string
	for _, l := range asks.Sub {
		lines = append(lines, l.Text)
	}
	if all := strings.Join(lines, " "); !strings.Contains(all, want) {
		t.Errorf("the menu says %q", all)
	}
	for want, change := range map[string]func(*agentapi.OwnerApp){
		"Notes was approved for ada; now nc, run by nobody, listens on port 8000.":                               func(a *agentapi.OwnerApp) { a.Listener.Program = "nc" },
		"Notes was approved for ada; now a program that cannot be seen listens on port 8000.":                    func(a *agentapi.OwnerApp) { a.Listener = agentapi.Listener{} },
		"Notes was approved for a program that could not be seen; now a program of nobody listens on port 8000.": func(a *agentapi.OwnerApp) { a.ApprovedListener = &agentapi.Listener{} },
		"": func(a *agentapi.OwnerApp) { a.ApprovedListener = nil },
	} {
		if got := owner.With(app, change).ListenerChange(language.Named); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

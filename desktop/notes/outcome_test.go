package notes_test

import (
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

// An approval is answered by the address, who can open it, and what comes next.
func TestApproved(t *testing.T) {
	t.Parallel()
	const url, detail = "https://notes.maya.localhost", "Other computers can open port 3000."
	asked := owner.Pending("notes", "Notes", 3000)
	approved := func(status agentapi.Status, change func(*agentapi.OwnerApp)) notes.Note {
		return notes.Approved(verbs.ApproveOf(asked), owner.With(asked, change), agentapi.Approved{Publication: agentapi.Publication{Status: status, URL: url}, AppHealth: &agentapi.AppHealth{}})
	}
	if n := approved(agentapi.StatusPending, func(*agentapi.OwnerApp) {}); n.Title != "Notes is approved" || !strings.Contains(n.Body, "once this computer is connected") {
		t.Errorf("%+v", n)
	}
	for want, change := range map[string]func(*agentapi.OwnerApp){
		"notes.maya.localhost. Only you can open it.": func(*agentapi.OwnerApp) {},
		"notes.maya.localhost":                        func(a *agentapi.OwnerApp) { a.OpenToCount = 1 },
		"notes.maya.localhost\n" + detail:             func(a *agentapi.OwnerApp) { a.Network, a.NetworkDetail = true, detail },
	} {
		n := approved(agentapi.StatusLive, change)
		if n.Title != "Notes is on" || n.Body != want {
			t.Errorf("%q: %q, want %q", n.Title, n.Body, want)
		}
		var next []verbs.Action
		for _, b := range n.Buttons {
			next = append(next, b.Do)
		}
		if !slices.Equal(next, []verbs.Action{{Verb: verbs.Open, Name: "notes"}, {Verb: verbs.Copy, Name: "notes", Text: url}, {Verb: verbs.Show, View: verbs.ViewInvite, Name: "notes"}}) {
			t.Errorf("the next steps are %+v", next)
		}
	}
	if n := approved(agentapi.StatusLive, func(a *agentapi.OwnerApp) { a.Listener = agentapi.Listener{} }); n.Body != "notes.maya.localhost" {
		t.Errorf("nothing was seen listening, and the note says %q", n.Body)
	}
}

// An app that ails, or answers with an error to everybody, is on all the same, and the
// note says what is known of it.
func TestApprovedSaysWhatAils(t *testing.T) {
	t.Parallel()
	for h, known := range map[string]bool{"": false, "not answering": true, "of a later version": true} {
		for _, noted := range []bool{false, true} {
			one := owner.Doing("a", h)
			one.HealthNote = noted
			n := notes.Approved(verbs.Action{Verb: verbs.Approve, Label: "App a"}, agentapi.OwnerApp{}, agentapi.Approved{Publication: agentapi.Publication{Status: agentapi.StatusLive}, AppHealth: &one.AppHealth})
			if n.Title != "App a is on" || strings.Contains(n.Body, one.HealthDetail) != (known || noted) {
				t.Errorf("%q: told %+v", h, n)
			}
		}
	}
}

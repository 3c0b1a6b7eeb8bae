package local

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Weakness: an approved app that asks again keeps its people, so approving what has
// changed lets them in there.
// Attack: bob, invited to notes before, opens it after another program was approved
// under the name for the owner alone, by the session and the address he had.
// Checked: he is refused from the first request on, the control plane forgets the
// app for him, and where the owner approves for all he is in again.
func TestApprovedForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	ctx := t.Context()
	address := h.publish(t)
	programs.Got(h.owner.ChangeSettings(ctx, map[string]any{"askAgain": true}))(t)
	programs.Got(h.owner.Invite(ctx, agentapi.InviteRequest{Email: bobEmail, Apps: []string{"Notes"}}))(t)
	bob := h.browser(t)
	link, err := h.mails.Link(ctx, bobEmail)
	programs.Must(t, err)
	page := programs.Got(bob.Open(ctx, link))(t)
	if page, err = bob.Submit(ctx, page, "token", nil); err != nil || page.Status != http.StatusOK {
		t.Fatalf("%+v, %v", page, err)
	}
	// asks has another program ask for the name, which waits.
	asks := func() agentapi.Seen {
		t.Helper()
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
		t.Cleanup(srv.Close)
		h.serves(t, srv)
		pub, err := h.open.Publish(ctx, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: h.port})
		if err != nil || pub.Status != agentapi.StatusPending {
			t.Fatalf("%+v, %v", pub, err)
		}
		s, err := h.owner.State(ctx)
		if err != nil || !s.Apps[0].AsksAgain() {
			t.Fatalf("%+v, %v", s.Apps, err)
		}
		return agentapi.SeenOf(s.Apps[0])
	}
	bobGets := func(want int) {
		t.Helper()
		page, err := bob.Open(ctx, address)
		if err != nil || page.Status != want {
			t.Fatalf("bob gets HTTP %d, %v, want %d", page.Status, err, want)
		}
	}
	programs.Got(h.owner.ApproveSeen(ctx, "notes", agentapi.Approval{Seen: new(asks())}))(t)
	bobGets(http.StatusOK)
	programs.Got(h.owner.ApproveSeen(ctx, "notes", agentapi.Approval{Seen: new(asks()), Alone: true}))(t)
	bobGets(http.StatusForbidden)
	h.await(t, func() bool {
		people := programs.Got(h.owner.People(ctx))(t)
		for _, p := range people.Members {
			if p.Email == bobEmail && len(p.Apps) > 0 {
				return false
			}
		}
		s, err := h.owner.State(ctx)
		return err == nil && s.Apps[0].OpenToCount == 0
	})
	bobGets(http.StatusForbidden)
}

package engine

import (
	"fmt"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// S1: a program of another user publishes and withdraws what its user asked for,
// or answers for, and nothing else.
func TestStrangersChangeTheirOwnAlone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	row := func(status agentapi.Status, asker, listener string) stored {
		app := &store.App{Name: "notes", Label: "Notes", LocalPort: 8000, Status: status, RequestedAt: at, Asker: asker, Listener: agentapi.Listener{UserID: listener}}
		if status != agentapi.StatusPending {
			app.ID, app.ApprovedAt = "id-1", &at
		}
		return kept(*app)
	}
	asksAgain := row(agentapi.StatusLive, "", "0")
	asksAgain.App.Status, asksAgain.App.Approved = agentapi.StatusPending, &store.Approved{Asker: "1001", LocalPort: 8000}
	alice, unknown := Caller{UserID: "1001", Stranger: true}, Caller{Stranger: true}
	for _, c := range []struct {
		name string
		now  stored
		by   Caller
		may  bool
	}{
		{"a new name", none, alice, true},
		{"a new name of nobody known", none, unknown, true},
		{"another's request", row(agentapi.StatusPending, "", ""), alice, false},
		{"another's request for a program of this user", row(agentapi.StatusPending, "", "1001"), alice, false},
		{"its own request", row(agentapi.StatusPending, "1001", ""), alice, true},
		{"a request of nobody known", row(agentapi.StatusPending, unknownUser, ""), unknown, false},
		{"another's app", row(agentapi.StatusLive, "", "0"), alice, false},
		{"an app of a version that did not keep who asked", row(agentapi.StatusLive, "", ""), alice, false},
		{"the same, of nobody known", row(agentapi.StatusLive, "", ""), unknown, false},
		{"an app this user asked for", row(agentapi.StatusLive, "1001", "0"), alice, true},
		{"an app this user answers for", row(agentapi.StatusLive, "", "1001"), alice, true},
		{"a stopped one", row(agentapi.StatusStopped, "1002", "0"), alice, false},
		{"one that asks again, approved for this user", asksAgain, alice, true},
		{"another's app, with everybody trusted", row(agentapi.StatusLive, "", "0"), Caller{UserID: "1001"}, true},
		{"another's app, for the agent's own user", row(agentapi.StatusLive, "1001", "1001"), Caller{}, true},
	} {
		for _, e := range []event{
			{Kind: "publish", At: at, Label: "Other", Port: 9000, By: c.by},
			{Kind: "withdraw", At: at, By: c.by},
		} {
			out, err := happens(t, c.now, e)
			code := agentapi.CodeOf(err)
			if refused := code == agentapi.CodeForbidden; refused == c.may {
				t.Errorf("%s, %s: %v", c.name, e.Kind, err)
			}
			if !c.may && (left(out) != c.now || out.Gone != "" || out.Notices != nil) {
				t.Errorf("%s, %s: a refusal changed %+v", c.name, e.Kind, out)
			}
		}
	}
}

// S1: other users fill neither the queue nor the rest of their own kind's.
func TestStrangersLeaveRoomInTheQueue(t *testing.T) {
	t.Parallel()
	h := openHost(t)
	ask := func(by Caller, name string) agentapi.Code {
		_, err := h.apps.Publish(t.Context(), by, agentapi.PublishRequest{Name: name, Label: name, LocalPort: 8000})
		return agentapi.CodeOf(err)
	}
	taken := 0
	for user := range 20 {
		mine := 0
		for i := range maxPendingOfUser + 5 {
			code := ask(Caller{UserID: fmt.Sprint(2000 + user), Stranger: true}, fmt.Sprintf("n-%d-%d", user, i))
			if code == "" {
				mine++
			} else if code != agentapi.CodeTooMany {
				t.Fatalf("user %d, request %d: %s", user, i, code)
			}
		}
		if mine > maxPendingOfUser {
			t.Errorf("user %d has %d requests waiting", user, mine)
		}
		taken += mine
	}
	if taken != maxPendingOfOthers {
		t.Errorf("other users have %d requests waiting, want %d", taken, maxPendingOfOthers)
	}
	for i := range maxPending - maxPendingOfOthers {
		if code := ask(Caller{}, fmt.Sprintf("own-%d", i)); code != "" {
			t.Fatalf("the owner's program %d found no room: %s", i, code)
		}
	}
}

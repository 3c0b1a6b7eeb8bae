package ui

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"porchlight/agent/agentapi"
)

// asked is an agent that notes what it was asked and with which words. Methods
// no test needs are those of a nil Agent, which panic.
type asked struct {
	Agent
	got []any
	err error
}

func (a *asked) note(what ...any) { a.got = append(a.got, what) }

func (a *asked) ApproveSeen(_ context.Context, name string, seen agentapi.Seen) (agentapi.Publication, error) {
	a.note("approve", name, seen)
	return agentapi.Publication{}, a.err
}

func (a *asked) ApproveAlone(_ context.Context, name string, seen agentapi.Seen) (agentapi.Publication, error) {
	a.note("approve alone", name, seen)
	return agentapi.Publication{}, a.err
}

func (a *asked) ChangeOptions(_ context.Context, name string, change map[string]any) (agentapi.AppOptions, error) {
	a.note("options", name, change)
	return agentapi.AppOptions{}, a.err
}

func (a *asked) Invite(_ context.Context, req agentapi.InviteRequest) (agentapi.Invitation, error) {
	a.note("invite", req)
	return agentapi.Invitation{Email: req.Email}, a.err
}

func (a *asked) Grant(_ context.Context, req agentapi.GrantRequest) (agentapi.PersonChanged, error) {
	a.note("grant", req)
	return agentapi.PersonChanged{}, a.err
}

func (a *asked) RemoveHeld(_ context.Context, req agentapi.RevokeRequest) (agentapi.PersonChanged, error) {
	a.note("remove", req)
	return agentapi.PersonChanged{}, a.err
}

func (a *asked) UndoHeld(_ context.Context, h agentapi.HeldChange) (agentapi.PersonChanged, error) {
	a.note("undo", h)
	return agentapi.PersonChanged{}, a.err
}

func (a *asked) SettleHeld(_ context.Context, h agentapi.HeldChange) error {
	a.note("settle", h)
	return a.err
}

func (a *asked) DisconnectVisitor(_ context.Context, d agentapi.DisconnectRequest) (agentapi.Closed, error) {
	a.note("disconnect", d)
	return agentapi.Closed{}, a.err
}

func (a *asked) Activity(ctx context.Context, limit int) ([]agentapi.Activity, error) {
	_, bounded := ctx.Deadline()
	a.note("activity", limit, bounded)
	return nil, a.err
}

func (a *asked) Connect(_ context.Context, req agentapi.ConnectRequest) (agentapi.Connecting, error) {
	a.note("connect", req)
	return agentapi.Connecting{UserCode: "WDJB-MJHT"}, a.err
}

func TestThePageAsksTheAgent(t *testing.T) {
	t.Parallel()
	agent := &asked{}
	from := func() (Agent, error) { return agent, nil }
	apps, people, settings := NewApps(from, nil), NewPeople(from), NewSettings(from, nil, nil, func() {})

	seen := agentapi.Seen{Label: "Notes", LocalPort: 3000, Program: new("node"), User: new("maya")}
	_, err := apps.Approve("notes", seen)
	_, alone := apps.ApproveAlone("notes", seen)
	_, choosing := apps.ChangeOptions("notes", map[string]any{"h2c": true})
	invited, inviting := people.Invite("bob@example.com", []string{"Notes"})
	_, granting := people.Grant("acc_2", "Notes", true)
	_, taking := people.Grant("acc_2", "Notes", false)
	_, removing := people.Remove("acc_2")
	_, undoing := people.UndoHeld("acc_2", "Notes")
	_, disconnecting := people.Disconnect("acc_2", "g1")
	settling := people.SettleAll()
	_, listing := people.Activity()
	code, connecting := settings.Connect("https://control.example.net", "maya")
	if err := errors.Join(err, alone, choosing, inviting, granting, taking, removing, undoing, disconnecting, settling, listing, connecting); err != nil {
		t.Fatal(err)
	}
	if invited.Email != "bob@example.com" || code.UserCode != "WDJB-MJHT" {
		t.Errorf("answers: %+v, %+v", invited, code)
	}
	want := []any{
		[]any{"approve", "notes", seen},
		[]any{"approve alone", "notes", seen},
		[]any{"options", "notes", map[string]any{"h2c": true}},
		[]any{"invite", agentapi.InviteRequest{Email: "bob@example.com", Apps: []string{"Notes"}}},
		[]any{"grant", agentapi.GrantRequest{AccountID: "acc_2", App: "Notes", Granted: true}},
		[]any{"grant", agentapi.GrantRequest{AccountID: "acc_2", App: "Notes", HoldSeconds: held}},
		[]any{"remove", agentapi.RevokeRequest{AccountID: "acc_2", HoldSeconds: held}},
		[]any{"undo", agentapi.HeldChange{AccountID: "acc_2", App: "Notes"}},
		[]any{"disconnect", agentapi.DisconnectRequest{AccountID: "acc_2", GrantID: "g1"}},
		[]any{"settle", agentapi.HeldChange{}},
		[]any{"activity", activityShown, true},
		[]any{"connect", agentapi.ConnectRequest{URL: "https://control.example.net", Name: "maya"}},
	}
	if !reflect.DeepEqual(agent.got, want) {
		t.Errorf("asked %v\nwant %v", agent.got, want)
	}

	agent.err = agentapi.Errorf(agentapi.CodeInvalid, "That does not look like an e-mail address.")
	if _, err := people.Invite("bob", nil); err == nil || err.Error() != "That does not look like an e-mail address." {
		t.Errorf("a refusal reaches the page as %v", err)
	}
}

// desk is a desktop app that refuses everything, in words.
type desk struct{ err error }

func (d desk) Preferences(ctx context.Context) Preferences {
	_, bounded := ctx.Deadline()
	return Preferences{Welcomed: bounded}
}
func (d desk) SetWelcomed() error                   { return d.err }
func (d desk) SetStartAtLogin(bool) error           { return d.err }
func (d desk) SetAppearance(string) error           { return d.err }
func (d desk) SetTrust(context.Context, bool) error { return d.err }
func (d desk) KeepInFile() error                    { return d.err }
func (d desk) ShowData(context.Context) error       { return d.err }

func TestThePageAsksTheDesktop(t *testing.T) {
	t.Parallel()
	refusal := errors.New("This desktop keeps its own list of what starts.")
	s := NewSettings(nil, desk{refusal}, nil, func() {})
	if !s.Preferences().Welcomed {
		t.Error("the page may wait for its preferences for ever")
	}
	for what, err := range map[string]error{
		"Welcomed": s.Welcomed(), "StartAtLogin": s.StartAtLogin(true), "Appearance": s.Appearance("dark"), "Trust": s.Trust(true), "KeepInFile": s.KeepInFile(), "ShowData": s.ShowData(),
	} {
		if !errors.Is(err, refusal) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

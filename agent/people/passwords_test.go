package people_test

import (
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// made is a new app password of the owner's, by the name or label of its app.
func (r *rig) made(t *testing.T, app, name string) agentapi.MadePassword {
	t.Helper()
	made, err := r.owner.MakePassword(t.Context(), agentapi.PasswordRequest{App: app, Name: name})
	if err != nil || made.ID == "" || !strings.HasPrefix(made.Password, "plp_") {
		t.Fatalf("made %+v, %v", made, err)
	}
	return made
}

// passwords are those listed, by their ids.
func (r *rig) passwords(t *testing.T) map[string]agentapi.AppPassword {
	t.Helper()
	all := programs.Got(r.owner.Passwords(t.Context()))(t)
	out := map[string]agentapi.AppPassword{}
	for _, p := range all {
		out[p.ID] = p
	}
	return out
}

// atControl counts the passwords that the control plane has.
func (r *rig) atControl(t *testing.T) int {
	t.Helper()
	all := programs.Got(r.service.Passwords.OfComputer(t.Context(), r.device.Computer.ID))(t)
	return len(all)
}

// Weakness: an app password is revoked while the control plane cannot be told, and the
// agent is killed before it can.
// Attack: wait for the restart.
// Checked: it stays shut out here, reaches the control plane when that is back, and
// leaves nothing behind; another one of the same person and app is left alone.
func TestPasswordRevokedWithTheControlPlaneAway(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	gone, stays := r.made(t, "notes", "laptop"), r.made(t, "Notes", "phone")
	all := r.passwords(t)
	if p := all[gone.ID]; len(all) != 2 || p.Name != "laptop" || p.App != "Notes" || p.AppName != "notes" || p.Email != ownerMail || p.CreatedAt.IsZero() {
		t.Fatalf("listed %+v", all)
	}

	r.down()
	if closed, err := r.owner.RevokePassword(t.Context(), gone.ID); err != nil || !closed.OK {
		t.Fatalf("%+v, %v", closed, err)
	}
	only := func(when, name string) {
		t.Helper()
		if all := r.passwords(t); len(all) != 1 || all[stays.ID].Name != name || all[stays.ID].Email != ownerMail || all[stays.ID].App != "Notes" {
			t.Errorf("%s: listed %+v", when, all)
		}
	}
	only("at once", "phone")
	if _, err := r.owner.RevokePassword(t.Context(), gone.ID); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("again: %v", err)
	}
	if _, err := r.owner.MakePassword(t.Context(), agentapi.PasswordRequest{App: "notes", Name: "x"}); agentapi.CodeOf(err) != agentapi.CodeUnavailable {
		t.Errorf("made while the control plane is away: %v", err)
	}
	if n := r.atControl(t); n != 2 {
		t.Fatalf("the control plane knows already: it has %d", n)
	}

	r.kill(t)
	r.serve(t)
	only("after a restart, from the snapshot", "")
	r.up()
	r.await(t, func() bool { return r.atControl(t) == 1 })
	only("with the control plane back", "phone")
	r.settled(t)
	only("afterwards", "phone")
}

// A password that was revoked at the control plane, or with its app or its person, is
// not listed, and cannot be revoked once more.
func TestPasswordsEndElsewhere(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes", "Wiki")
	one, two := r.made(t, "notes", "one"), r.made(t, "wiki", "two")
	programs.Must(t, r.service.Passwords.RevokeForComputer(t.Context(), r.device.Computer.ID, controlapi.RevokePassword{ID: one.ID}))
	if all := r.passwords(t); len(all) != 1 || all[two.ID].Name != "two" {
		t.Errorf("listed %+v", all)
	}
	r.await(t, func() bool {
		_, err := r.owner.RevokePassword(t.Context(), one.ID)
		return agentapi.CodeOf(err) == agentapi.CodeNotFound
	})
	programs.Got(r.owner.Revoke(t.Context(), "wiki"))(t)
	if all := r.passwords(t); len(all) != 0 {
		t.Errorf("listed without its app: %+v", all)
	}
	r.await(t, func() bool { return r.atControl(t) == 0 })
	denied, pending := r.left(t)
	if slices.ContainsFunc(pending, func(c store.PendingChange) bool { return c.PasswordID == two.ID }) {
		t.Errorf("left behind: %+v, %+v", denied, pending)
	}
}

// What is asked for has to make sense, and a control plane's refusal keeps its sentence.
func TestPasswordsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	for _, req := range []agentapi.PasswordRequest{
		{App: "wiki", Name: "x"}, {App: "", Name: "x"}, {App: "notes", Name: ""}, {App: "notes", Name: "a\u202eb"},
		{App: "notes", Name: strings.Repeat("x", 61)}, {App: strings.Repeat("x", 10_000), Name: "x"},
	} {
		if made, err := r.owner.MakePassword(t.Context(), req); agentapi.CodeOf(err) != agentapi.CodeInvalid || made != (agentapi.MadePassword{}) {
			t.Errorf("%.40q: %+v, %v", req, made, err)
		}
	}
	if n := r.atControl(t); n != 0 {
		t.Errorf("%d were made", n)
	}
}

// Weakness: the snapshot at hand was made before a password was, so that it looks like
// one from after its revocation; the snapshot that has the password is on its way.
// Attack: have the deny record lifted by the old one and arrive with the one on its way.
// Checked: the record stands, over a restart too, until the control plane was heard of
// after the revocation.
func TestPasswordRevokedBeforeItWasSeen(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	known := r.made(t, "notes", "known")
	all, err := r.service.Passwords.OfComputer(t.Context(), r.device.Computer.ID)
	if err != nil || len(all) != 1 || all[0].ID != known.ID {
		t.Fatalf("%+v, %v", all, err)
	}
	r.end()
	r.serveAndSync(t)
	arrive := r.gate.holdSyncs()
	defer arrive()
	made, err := r.service.Passwords.MakeForOwner(t.Context(), r.device.Computer.ID, controlapi.MakePassword{App: all[0].AppID, Name: "unseen"})
	programs.Must(t, err)
	programs.Got(r.owner.RevokePassword(t.Context(), made.ID))(t)
	denied, pending := r.left(t)
	if len(denied) != 1 || denied[0].PasswordID != made.ID || len(pending) != 1 || !pending[0].Sent {
		t.Fatalf("denied %+v, changes %+v", denied, pending)
	}
	arrive()
	r.serve(t)
	r.settled(t)
	if all := r.passwords(t); len(all) != 1 || all[known.ID].Name != "known" {
		t.Errorf("afterwards %+v", all)
	}
}

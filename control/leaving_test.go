package control

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// signedIn is a stored session of somebody just proven so.
func (b *bench) signedIn(a Account, proof controlapi.Proof) Session {
	b.t.Helper()
	session := ok[Session](b.t)(b.Sessions.Of(b.t.Context(), b.session("", a.ID)))
	session.Proof = proof
	return session
}

// Weakness: a browser left open, or a mail, deletes an account or hands out whom it has to do
// with. Checked: both ask as everything that gives power does, and a session that has ended
// does neither.
func TestLeavingWantsAFreshSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	maya := ok[Account](t)(b.Accounts.ByEmail(t.Context(), e.Email))
	b.passkey(maya)
	mailed, stale, limited := b.signedIn(maya, controlapi.ProofMail), b.signedIn(maya, controlapi.ProofPasskey), b.signedIn(maya, controlapi.ProofPasskey)
	stale.Proven, limited.Limited = stale.Proven.Add(-FreshFor), true
	ended := b.signedIn(maya, controlapi.ProofPasskey)
	programs.Must(t, b.Sessions.End(t.Context(), maya.ID, ended.ID))
	before := b.stored()
	for name, session := range map[string]Session{"a mail": mailed, "ten minutes ago": stale, "an invitation": limited, "ended": ended} {
		if err := b.Accounts.Delete(t.Context(), session, Asker{}); !IsRefusal(err, controlapi.CodeUnauthorized) {
			t.Errorf("%s deletes: %v", name, err)
		}
		if _, err := b.Accounts.Export(t.Context(), session); !IsRefusal(err, controlapi.CodeUnauthorized) {
			t.Errorf("%s exports: %v", name, err)
		}
	}
	if after := b.stored(); len(after) != len(before) {
		t.Errorf("%d rows, %d before", len(after), len(before))
	}
}

// An account that its person deletes leaves nothing that names it but on the lists of those who
// shared with it (and, for a while, its opaque id), takes its computers and everybody's access there along, and is told by mail.
func TestDeleteAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	maya := ok[Account](t)(b.Accounts.ByEmail(t.Context(), e.Email))
	other := programs.Got(b.Computers.Ensure(t.Context(), "tomas@example.com", "tomas"))(t)
	b.apps(other, "app1")
	b.joined(other.Computer.ID, e.Email, "app1")
	carl := b.joined(e.Computer.ID, "carl@example.com", "app1")
	ok[controlapi.Person](t)(b.People.Invite(t.Context(), e.Computer.ID, controlapi.Invite{Email: "waits@example.com", Apps: []string{"app1"}}))
	b.passkey(maya)
	session := b.signedIn(maya, controlapi.ProofPasskey)
	ok[MadePassword](t)(b.Passwords.Make(t.Context(), session, NewPassword{Computer: "maya", AppID: "app1", Name: "calendar", Form: b.Passwords.NewForm()}))
	b.session("", maya.ID)

	programs.Must(t, b.Accounts.Delete(t.Context(), session, Asker{Client: home}))
	if n := b.subjects("Your account was deleted"); n != 1 {
		t.Errorf("%d mails tell of it", n)
	}
	left := regexp.MustCompile(`^(mail|outbox|budget|former-name|kept-name|ended-credential|password-form|used-invitation|person/` + other.Computer.ID + `|membership/` + maya.ID + `/` + other.Computer.ID + `)`)
	for key, value := range b.stored() {
		if (strings.Contains(key+value, maya.ID) || strings.Contains(key+value, e.Email) || strings.Contains(key, e.Computer.ID)) && !left.MatchString(key) {
			t.Errorf("left: %s %s", key, value)
		}
	}
	if p := b.rowOf(other.Computer.ID, maya.ID); p.Status != controlapi.PersonRemoved {
		t.Errorf("at the other's computer they are %s", p.Status)
	}
	if list := ok[[]Membership](t)(b.People.Memberships(t.Context(), carl.ID)); len(list) != 0 {
		t.Errorf("carl can open %+v", list)
	}
	_, err := b.Agents.Authenticate(t.Context(), e.Credential)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	ok[controlapi.Computer](t)(b.Agents.Authenticate(t.Context(), other.Credential))
}

// An export has all that /account shows, of nobody else, and no secret, not even hashed.
func TestExport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	maya := ok[Account](t)(b.Accounts.ByEmail(t.Context(), e.Email))
	other := programs.Got(b.Computers.Ensure(t.Context(), "tomas@example.com", "tomas"))(t)
	b.apps(other, "app1")
	b.joined(other.Computer.ID, e.Email, "app1")
	b.joined(other.Computer.ID, "eve@example.com", "app1")
	b.joined(e.Computer.ID, "carl@example.com", "app1")
	b.passkey(maya)
	b.change(func(tx *txn) {
		tx.putDomains(e.Computer.ID, nil, []domain{{Name: ownName, AppID: "app1", Bits: "b", State: controlapi.DomainProven}})
	})
	session := b.signedIn(maya, controlapi.ProofPasskey)
	made := ok[MadePassword](t)(b.Passwords.Make(t.Context(), session, NewPassword{Computer: "maya", AppID: "app1", Name: "calendar", Form: b.Passwords.NewForm()}))
	all := ok[Export](t)(b.Accounts.Export(t.Context(), session))
	if all.Email != e.Email || len(all.Computers) != 1 || len(all.Computers[0].People) != 2 || len(all.Shared) != 1 || len(all.Passkeys) != 1 ||
		len(all.Passwords) != 1 || all.Passwords[0].Name != "calendar" || len(all.Sessions) != 3 || all.Sessions[0].Address != home.String() {
		t.Errorf("%+v", all)
	}
	if d := all.Computers[0].Domains; len(d) != 1 || d[0].Name != ownName || d[0].AppID != "app1" {
		t.Errorf("own domains: %+v", d)
	}
	if d := ok[ComputerDetail](t)(b.Overview.Computer(t.Context(), "maya")).Domains; len(d) != 1 || d[0] != (ListedDomain{ownName, controlapi.DomainProven}) {
		t.Errorf("operators see own domains %+v", d)
	}
	if len(all.Shared[0].Apps) != 1 || all.Shared[0].Owner != "tomas@example.com" {
		t.Errorf("shared: %+v", all.Shared)
	}
	text := string(programs.Got(json.Marshal(all))(t))
	for key, value := range b.stored() {
		for _, hash := range regexp.MustCompile(`[0-9a-f]{64}`).FindAllString(key+value, -1) {
			if strings.Contains(text, hash) {
				t.Errorf("the export has %s of %s", hash, key)
			}
		}
	}
	if strings.Contains(text, made.Password) || strings.Contains(text, "eve@example.com") || strings.Contains(text, "publicKey") {
		t.Error(text)
	}
}

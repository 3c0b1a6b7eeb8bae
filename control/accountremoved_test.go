package control

import (
	"context"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// A removed account has nothing left anywhere, and takes nothing of others along.
func TestRemoveAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	maya := b.owner()
	bob := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	b.apps(maya, "app1")
	b.apps(bob, "app2")
	// Each is shared something by the other.
	b.joined(maya.Computer.ID, "bob@example.com", "app1")
	b.joined(bob.Computer.ID, "maya@example.com", "app2")
	b.run()
	_, link, _ := b.begin("bob@example.com", 1)
	in := ok[SignedIn](t)(b.SignIn.WithLink(t.Context(), link, home))
	_, late, _ := b.begin("bob@example.com", 2)

	wantRefusal(t, b.Accounts.Remove(t.Context(), "nobody@example.com"), controlapi.CodeNotFound)
	if err := b.Accounts.Remove(t.Context(), "bob@example.com"); err != nil {
		t.Fatal(err)
	}
	_, err := b.Accounts.ByEmail(t.Context(), "bob@example.com")
	wantRefusal(t, err, controlapi.CodeNotFound)
	_, err = b.Sessions.Of(t.Context(), in.Token)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	_, err = b.SignIn.WithLink(t.Context(), late, home)
	wantRefusal(t, err, controlapi.CodeNotFound)
	_, err = b.Agents.Authenticate(t.Context(), bob.Credential)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	_, err = b.Computers.ByName(t.Context(), "bob")
	wantRefusal(t, err, controlapi.CodeNotFound)
	people := ok[[]controlapi.Person](t)(b.People.List(t.Context(), maya.Computer.ID))
	for _, p := range people {
		if p.Email == "bob@example.com" && p.Status != controlapi.PersonRevoked {
			t.Errorf("maya's computer has %+v", p)
		}
	}
	if list := ok[[]Membership](t)(b.People.Memberships(t.Context(), maya.AccountID)); len(list) != 1 || list[0].Computer.ID != maya.Computer.ID {
		t.Errorf("maya has %+v", list)
	}
	ok[controlapi.Computer](t)(b.Agents.Authenticate(t.Context(), maya.Credential))
	wantRefusal(t, b.Accounts.Remove(t.Context(), "bob@example.com"), controlapi.CodeNotFound)

	// The address can begin anew, as somebody else.
	again := ok[controlapi.Person](t)(b.People.Invite(t.Context(), maya.Computer.ID, "bob@example.com", []string{"app1"}))
	if again.AccountID == bob.AccountID || again.Status != controlapi.PersonPending {
		t.Errorf("invited again: %+v", again)
	}
}

// meanwhile is a store in which something happens before the next Update.
type meanwhile struct {
	kv.Store
	happens func()
}

func (s *meanwhile) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if happens := s.happens; happens != nil {
		s.happens = nil
		happens()
	}
	return s.Store.Update(ctx, fn)
}

// Weakness: a computer that is connected while its account is removed would be
// nobody's, and its name taken for good. Checked: the account stays, and goes
// with that computer when it is removed once more.
func TestRemoveAccountWhileItConnects(t *testing.T) {
	t.Parallel()
	store := &meanwhile{}
	b := newBench(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	ok[Account](t)(b.Accounts.Ensure(t.Context(), "bob@example.com"))
	store.happens = func() { ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob")) }
	wantRefusal(t, b.Accounts.Remove(t.Context(), "bob@example.com"), controlapi.CodeInvalid)
	ok[Account](t)(b.Accounts.ByEmail(t.Context(), "bob@example.com"))
	if err := b.Accounts.Remove(t.Context(), "bob@example.com"); err != nil {
		t.Fatal(err)
	}
	_, err := b.Computers.ByName(t.Context(), "bob")
	wantRefusal(t, err, controlapi.CodeNotFound)
}

package control

import (
	"fmt"
	"testing"
	"time"

	"porchlight/control/controlapi"
)

func TestGrantEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, owner := b.registered(), b.owner()
	account := Account{ID: owner.AccountID}
	kept, lost := c.granted(account, "maya"), c.granted(account, "maya")
	for range 3 {
		b.clock.Add(90*24*time.Hour - time.Hour)
		kept = ok[Tokens](t)(c.use(kept.Refresh))
		if n := len(ok[[]AccountGrant](t)(b.Grants.OfAccount(t.Context(), account.ID))); n != 1 && n != 2 {
			t.Fatalf("%d grants are listed", n)
		}
	}
	_, err := c.use(lost.Refresh)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
	grants := ok[[]AccountGrant](t)(b.Grants.OfAccount(t.Context(), account.ID))
	if len(grants) != 1 || grants[0].ID != grantID(kept.Refresh) || !grants[0].LastUsedAt.Equal(b.clock.Now()) {
		t.Errorf("listed %+v", grants)
	}
	for ok[int](t)(b.store.Sweep(t.Context(), 1000)) > 0 {
	}
	if n := b.rows("grant/") + b.rows("account-grant/") + b.rows("computer-grant/") + b.rows("client-grant/"); n != 4 {
		t.Errorf("%d rows of one grant", n)
	}
}

// A grant ends with the access of the person who gave it, and a fresh invitation
// does not bring it back.
func TestGrantEndsWithThePerson(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, owner := b.registered(), b.owner()
	computer := owner.Computer.ID
	bob := b.member(computer, "bob@example.com")
	own := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	tokens, elsewhere := c.granted(bob, "maya"), c.granted(bob, "bob")
	open := ok[string](t)(c.code(bob, "maya"))
	ok[controlapi.Person](t)(b.People.Remove(t.Context(), computer, bob.ID))
	_, err := c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
	_, err = c.exchange(open)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
	_, err = c.code(bob, "maya")
	wantRefusal(t, err, controlapi.CodeForbidden)
	snapshot := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), computer))
	if len(snapshot.RevokedGrants) != 1 || snapshot.RevokedGrants[0].ID != grantID(tokens.Refresh) {
		t.Errorf("the agent hears of %+v", snapshot.RevokedGrants)
	}
	b.member(computer, "bob@example.com")
	_, err = c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
	ok[Tokens](t)(c.use(elsewhere.Refresh))
	if other := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), own.Computer.ID)); len(other.RevokedGrants) != 0 {
		t.Errorf("another agent hears of %+v", other.RevokedGrants)
	}
}

// Weakness: a grant that was missed when access was taken away would go on.
// Checked: each refresh looks at the person's row, too.
func TestRefreshLooksAtThePerson(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, owner := b.registered(), b.owner()
	bob := b.member(owner.Computer.ID, "bob@example.com")
	tokens := c.granted(bob, "maya")
	err := b.update(t.Context(), func(tx *txn) error { return tx.Delete(keyPerson(owner.Computer.ID, bob.ID)) })
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
}

// An agent is told of a revoked grant for as long as its tokens could be used,
// and the list of what it is told stays short.
func TestRevokedGrantsAreToldFor720Seconds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, owner := b.registered(), b.owner()
	before := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), owner.Computer.ID)) // without the client's origins
	tokens := c.granted(Account{ID: owner.AccountID}, "maya")
	if err := b.Grants.RevokeForComputer(t.Context(), owner.Computer.ID, grantID(tokens.Refresh)); err != nil {
		t.Fatal(err)
	}
	told := func() int {
		s := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), owner.Computer.ID))
		if (len(s.RevokedGrants) > 0) == (s.Version == before.Version) {
			t.Error("the version does not tell")
		}
		return len(s.RevokedGrants)
	}
	b.clock.Add(719 * time.Second)
	if told() != 1 {
		t.Error("forgotten while a token could be used")
	}
	b.clock.Add(time.Second)
	if told() != 0 {
		t.Error("told for ever")
	}
	_, err := c.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
}

func TestRemovingAClientEndsItsGrants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, other, owner := b.registered(), b.registered(), b.owner()
	account := Account{ID: owner.AccountID}
	c.granted(account, "maya")
	c.granted(account, "maya")
	kept := other.granted(account, "maya")
	open := ok[string](t)(c.code(account, "maya"))
	if err := b.Clients.Remove(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if s := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), owner.Computer.ID)); len(s.RevokedGrants) != 2 {
		t.Errorf("the agent hears of %+v", s.RevokedGrants)
	}
	if list := ok[[]controlapi.OAuthGrant](t)(b.Grants.OfComputer(t.Context(), owner.Computer.ID)); len(list) != 1 {
		t.Errorf("left are %+v", list)
	}
	_, err := c.exchange(open)
	wantRefusal(t, err, controlapi.CodeInvalidClient)
	_, err = c.code(account, "maya")
	wantRefusal(t, err, controlapi.CodeInvalidClient)
	ok[Tokens](t)(other.use(kept.Refresh))
}

// A client with more grants than one transaction ends loses all of them.
func TestRemovingAClientWithManyGrants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, owner := b.registered(), b.owner()
	const many = 2*revokeAtOnce + 1
	err := b.update(t.Context(), func(tx *txn) error {
		for n := range many {
			g := grant{ID: fmt.Sprintf("%026d", n), AccountID: fmt.Sprint("account", n), ClientID: c.ID, ComputerID: owner.Computer.ID, CreatedAt: tx.now}
			if err := tx.putGrant(g); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Clients.Remove(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if left, told := b.rows(keyClientGrants(c.ID)), b.rows(keyRevokedGrants(owner.Computer.ID)); left != 0 || told != many {
		t.Errorf("%d of %d grants are left, and the computer is told of %d", left, many, told)
	}
}

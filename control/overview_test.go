package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// all reads a list page by page, so many rows each.
func all[T any](t *testing.T, list func(Query) (Page[T], error), q Query, limit int) (rows []T) {
	t.Helper()
	for q.Limit = limit; ; {
		p, err := list(q)
		programs.Must(t, err)
		if p.Partial || len(p.Rows) > limit {
			t.Errorf("%+v: %d rows, partial %v", q, len(p.Rows), p.Partial)
		}
		rows = append(rows, p.Rows...)
		if q.After = p.Next; q.After == "" {
			return rows
		}
	}
}

func (b *bench) accounts(q Query) (Page[Account], error) {
	return b.Overview.Accounts(b.t.Context(), q)
}

func mails(accounts []Account) (out []string) {
	for _, a := range accounts {
		out = append(out, a.Email)
	}
	return out
}

// Accounts are found by the beginning of their address, id and domain, whatever the case, on
// pages of any size; those that are removed are not.
func TestOverviewAccounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	programs.Must(t, b.Overview.IndexAll(t.Context()))
	var id string
	for _, email := range []string{"anna@example.net", "ann@example.net", "bob@example.org", "anna@example.net.example", "zoe@mail.example.net"} {
		id = ok[Account](t)(b.Accounts.Ensure(t.Context(), email)).ID
	}
	for _, test := range []struct {
		q    Query
		want string
	}{
		{Query{}, "ann@example.net anna@example.net anna@example.net.example bob@example.org zoe@mail.example.net"},
		{Query{Prefix: " ANNA@"}, "anna@example.net anna@example.net.example"},
		{Query{Prefix: "@Example.net"}, "anna@example.net.example ann@example.net anna@example.net"},
		{Query{Prefix: "example.o", By: ByDomain}, "bob@example.org"},
		{Query{Prefix: id[:10], By: ByID}, "zoe@mail.example.net"},
		{Query{Prefix: "x"}, ""},
	} {
		for limit := 1; limit < 7; limit++ {
			if got := strings.Join(mails(all(t, b.accounts, test.q, limit)), " "); got != test.want {
				t.Errorf("%+v, %d a page: %s", test.q, limit, got)
			}
		}
	}
	programs.Must(t, b.Accounts.Remove(t.Context(), "anna@example.net"))
	if got := mails(all(t, b.accounts, Query{Prefix: "@example.net"}, 1)); len(got) != 2 {
		t.Errorf("after a removal: %v", got)
	}
	for _, q := range []Query{{By: "app"}, {Limit: -1}, {Limit: MaxPage + 1}, {Prefix: "a\x00"}, {After: "\xff"}, {Prefix: strings.Repeat("a", 501)}} {
		_, err := b.accounts(q)
		wantRefusal(t, err, controlapi.CodeInvalid)
	}
}

// A client is found by its name of now, and no more when it is gone.
func TestOverviewClients(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	programs.Must(t, b.Overview.IndexAll(t.Context()))
	c, _, err := b.Clients.Add(t.Context(), "Pocket Notes", []string{appRedirect})
	programs.Must(t, err)
	list := func(q Query) (Page[ListedClient], error) { return b.Overview.Clients(t.Context(), q) }
	find := func(prefix, by string) int { return len(all(t, list, Query{Prefix: prefix, By: by}, 1)) }
	if find("pocket n", "") != 1 || find(c.ID, ByID) != 1 || find("notes", "") != 0 {
		t.Error("a client is not found as it should be")
	}
	ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), SuspendClient, c.ID, "spam", ByCommandLine))
	if got := all(t, list, Query{}, 1); len(got) != 1 || got[0].Suspended.IsZero() {
		t.Errorf("suspended: %+v", got)
	}
	b.change(func(tx *txn) {
		row, _ := get[client](tx, keyClient(c.ID))
		row.Name = "Diary"
		tx.putClient(row)
	})
	if find("pocket", "") != 0 || find("diary", "") != 1 {
		t.Error("it is found by its former name")
	}
	programs.Must(t, b.Clients.Remove(t.Context(), c.ID))
	if find("", "") != 0 || find("", ByID) != 0 {
		t.Error("it is found when it is gone")
	}
	b.noneLeft(keyClientNames, keyClientIDs)
}

func (b *bench) noneLeft(prefixes ...string) {
	b.t.Helper()
	for key := range b.stored() {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			b.t.Errorf("%s is left", key)
		}
	}
}

// What operators see of an account and of a computer: how much there is, and what ended it.
func TestOverviewDetails(t *testing.T) {
	t.Parallel()
	s := newSuspended(t)
	programs.Must(t, s.Overview.IndexAll(t.Context()))
	reason := "Complaint 2211"
	ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), SuspendDomain, "example.net", reason, ByCommandLine))
	ok[Suspension](t)(s.Suspensions.Suspend(t.Context(), SuspendComputer, "maya", reason, ByCommandLine))
	owner := ok[OwnedComputer](t)(s.Computers.ByName(t.Context(), "maya")).Owner
	a := ok[AccountDetail](t)(s.Overview.Account(t.Context(), owner))
	if len(a.Computers) != 1 || a.Computers[0].Owner != owner || a.Computers[0].Suspended.IsZero() || a.Operator {
		t.Errorf("its owner: %+v", a)
	}
	bob := ok[AccountDetail](t)(s.Overview.Account(t.Context(), s.bob.ID))
	if len(bob.Computers) != 0 || bob.Sessions != 2 {
		t.Errorf("a member: %+v", bob)
	}
	c := ok[ComputerDetail](t)(s.Overview.Computer(t.Context(), "maya"))
	if c.Suspension == nil || c.Suspension.Reason != reason || c.People == 0 || !c.Connected {
		t.Errorf("the computer: %+v", c)
	}
	if got := ok[Page[Suspension]](t)(s.Overview.Suspensions(t.Context(), Query{By: "domain", Prefix: "example"})); len(got.Rows) != 1 {
		t.Errorf("suspensions of domains: %+v", got)
	}
	if got := ok[Page[Suspension]](t)(s.Overview.Suspensions(t.Context(), Query{Limit: 1})); len(got.Rows) != 1 || got.Next == "" {
		t.Errorf("the first of two suspensions: %+v", got)
	}
	_, err := s.Overview.Account(t.Context(), "nobody@example.net")
	wantRefusal(t, err, controlapi.CodeNotFound)
	programs.Must(t, s.Accounts.Remove(t.Context(), owner))
	s.noneLeft("owned-computer/", "usage/")
}

// Indexes for rows of before are made some rows at a time, by several nodes, while rows are
// written, and go on after a crash; until then a list says that it is partial.
func TestIndexesAreMade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const before = 3*indexAtOnce + 7
	b.change(func(tx *txn) {
		for i := range before {
			email, id := fmt.Sprintf("a%04d@before.example", i), newID()
			tx.put(keyAccountEmail(email), id, 0)
			tx.put(keyAccount(id), Account{ID: id, Email: email}, 0)
		}
	})
	ctx := t.Context()
	ix := indexesMade()[0]
	if done := ok[bool](t)(b.makeSome(ctx, ix)); done {
		t.Fatal("all at once")
	}
	p := ok[Page[Account]](t)(b.accounts(Query{Prefix: "@before", Limit: 1}))
	if !p.Partial || len(p.Rows) != 1 {
		t.Errorf("partly made: %+v", p)
	}
	// Meanwhile one is made that this index has passed, one that it has not, and both ends go.
	for _, email := range []string{"a0000a@before.example", "z@before.example"} {
		ok[Account](t)(b.Accounts.Ensure(ctx, email))
	}
	programs.Must(t, b.Accounts.Remove(ctx, "a0000@before.example"), b.Accounts.Remove(ctx, fmt.Sprintf("a%04d@before.example", before-1)))
	other := b.node() // as after a crash, or another one
	done := make(chan error)
	for _, s := range []*Service{b.Service, other} {
		go func() { done <- s.Overview.IndexAll(ctx) }()
	}
	programs.Must(t, <-done, <-done)
	if got := len(all(t, b.accounts, Query{Prefix: "@before"}, MaxPage)); got != before {
		t.Errorf("%d accounts are found, want %d", got, before)
	}
	want := ok[[]Account](t)(b.Accounts.List(ctx))
	n := 0
	for key := range b.stored() {
		if strings.HasPrefix(key, keyAccountDomains) {
			n++
		}
	}
	if n != len(want) {
		t.Errorf("%d keys for %d accounts", n, len(want))
	}
}

package control

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
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
// written, and go on after a crash; until then a list says that it is partial. In the end
// there is a key for each account that is there, and no other.
func TestIndexesAreMade(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"memory":     func(*testing.T) string { return "memory:" },
		"file":       func(t *testing.T) string { return filepath.Join(t.TempDir(), "control.db") },
		"PostgreSQL": func(t *testing.T) string { return pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testIndexes(t, newBenchOn(t, url(t)))
		})
	}
}

// People sign in while the indexes are still to be made, for as long as that takes: here a row
// that nobody can read holds it up.
func TestSignInNeedsNoIndex(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	b.keepAll(map[string]any{keyMade(indexAccountDomain): "half"})
	b.run()
	browser, _, code := b.begin("maya@example.com", 1)
	if in := ok[SignedIn](t)(b.SignIn.WithCode(t.Context(), browser, code, home)); in.Account.Email != "maya@example.com" {
		t.Errorf("signed in as %+v", in.Account)
	}
	if done, err := b.makeSome(t.Context(), indexesMade()[0]); done || err == nil {
		t.Errorf("the index was made: %v, %v", done, err)
	}
}

func testIndexes(t *testing.T, b *bench) {
	const before = 3*indexAtOnce + 7
	old := func(i int) string { return fmt.Sprintf("a%04d@before.example", i) }
	rows := map[string]any{}
	for i := range before {
		id := anID()
		rows[keyAccountEmail(old(i))], rows[keyAccount(id)] = id, Account{ID: id, Email: old(i)}
	}
	b.keepAll(rows)
	ctx := t.Context()
	if done := ok[bool](t)(b.makeSome(ctx, indexesMade()[0])); done {
		t.Fatal("all at once")
	}
	p := ok[Page[Account]](t)(b.accounts(Query{Prefix: "@before", Limit: 1}))
	if !p.Partial || len(p.Rows) != 1 {
		t.Errorf("partly made: %+v", p)
	}
	if c := ok[Cuts](t)(b.Overview.Cuts(ctx, SuspendDomain, "before.example")); !c.More {
		t.Errorf("partly made, and counted as if it were all: %+v", c)
	}
	// Two nodes go on, as after a crash, and meanwhile accounts come and go on both sides of
	// where they are.
	var all errgroup.Group
	for _, s := range []*Service{b.Service, b.node()} {
		all.Go(func() error { return s.Overview.IndexAll(ctx) })
	}
	for w := range 3 {
		all.Go(func() error {
			for i := range 20 {
				if err := b.Accounts.Remove(ctx, old(before*(w+1)/4+i)); err != nil {
					return err
				}
				if _, err := b.Accounts.Ensure(ctx, fmt.Sprintf("a%04d-%d@before.example", i*30, w)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	programs.Must(t, all.Wait())
	var keys, below, want []string
	for key := range b.stored() {
		if rest, is := strings.CutPrefix(key, keyAccountsBelow("example")+"before./"); is {
			below = append(below, rest)
		} else if rest, is := strings.CutPrefix(key, "account-domain/before.example/"); is {
			keys = append(keys, rest)
		} else if rest, is := strings.CutPrefix(key, keyAccountEmail("")); is {
			want = append(want, rest)
		}
	}
	for _, all := range [][]string{keys, below, want} {
		slices.Sort(all)
	}
	if len(want) != before || !slices.Equal(keys, want) || !slices.Equal(below, want) {
		t.Errorf("%d and %d keys for %d accounts", len(keys), len(below), len(want))
	}
	if p := ok[Page[Account]](t)(b.accounts(Query{Prefix: "@before", Limit: MaxPage})); p.Partial || len(p.Rows) != MaxPage {
		t.Errorf("all are made: %d rows, partial %v", len(p.Rows), p.Partial)
	}
}

// The audit log of all nodes is told newest first, each row once on pages of any size, also of
// a node whose clock was set back.
func TestOverviewAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i, node := range strings.Split("a b a a c b a c c c b a", " ") {
		log := audit.New(audit.Config{Store: b.store, Node: node, Now: func() time.Time {
			back := 0
			if node == "c" {
				back = 3 * i // its later rows are older
			}
			return b.clock.Now().Add(time.Duration(i-back) * time.Minute)
		}})
		log.Add(audit.Event{Kind: "sign-in"})
		programs.Must(t, log.Flush(t.Context()))
	}
	list := func(q Query) (Page[audit.Row], error) { return b.Overview.Audit(t.Context(), q) }
	whole := all(t, list, Query{}, MaxPage)
	if len(whole) != 12 || whole[0].Node != "a" || whole[0].Seq != 5 {
		t.Errorf("%d rows, the newest %+v", len(whole), whole[0])
	}
	for limit := 1; limit < 13; limit++ {
		if rows := all(t, list, Query{}, limit); !slices.Equal(rows, whole) {
			t.Errorf("%d a page: %d rows", limit, len(rows))
		}
	}
	last := map[string]uint64{}
	for _, row := range whole {
		if before, seen := last[row.Node]; seen && row.Seq != before-1 {
			t.Errorf("of %s %d follows %d", row.Node, row.Seq, before)
		}
		last[row.Node] = row.Seq
	}
}

// Suspensions are found by the beginning of their name or id, of any kind, and go on by key; what
// one would cut off is counted, and no further than to 1,000.
func TestSuspensionsByNameAndCuts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	programs.Must(t, b.Overview.IndexAll(t.Context()))
	e := b.owner()
	b.apps(e, "app1")
	b.joined(e.Computer.ID, "bob@example.com", "app1")
	ok[Account](t)(b.Accounts.Ensure(t.Context(), "cid@mail.example.com"))
	ok[Account](t)(b.Accounts.Ensure(t.Context(), "dot@sample.com"))
	programs.Must(t, b.Accounts.Remove(t.Context(), "dot@sample.com"))
	for kind, ids := range map[SuspensionKind][]string{SuspendDomain: {"spam.example", "spam.net"}, SuspendAddress: {"Spam@porch.example"}, SuspendComputer: {"maya"}} {
		for _, id := range ids {
			ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), kind, id, "spam", ByCommandLine))
		}
	}
	list := func(q Query) (Page[Suspension], error) { return b.Overview.Suspensions(t.Context(), q) }
	for prefix, want := range map[string]int{"spam": 3, " SPAM.": 2, "@spam.n": 1, "may": 1, e.Computer.ID[:8]: 1, "pam": 0, "": 4} {
		if rows := all(t, list, Query{By: ByName, Prefix: prefix}, 1); len(rows) != want {
			t.Errorf("%q finds %+v", prefix, rows)
		}
	}
	cuts := func(kind SuspensionKind, id string) Cuts {
		t.Helper()
		return ok[Cuts](t)(b.Overview.Cuts(t.Context(), kind, id))
	}
	for name, tt := range map[string]struct {
		kind SuspensionKind
		id   string
		want Cuts
	}{
		"a computer":           {SuspendComputer, "maya", Cuts{Computers: 1, People: 1}},
		"its owner":            {SuspendAccount, e.Email, Cuts{Accounts: 1, Computers: 1, People: 1}},
		"her address":          {SuspendAddress, e.Email, Cuts{Accounts: 1, Computers: 1, People: 1}},
		"an address of nobody": {SuspendAddress, "nobody@example.com", Cuts{}},
		"her domain":           {SuspendDomain, "example.com", Cuts{Accounts: 3, Computers: 1}},
		"one below it":         {SuspendDomain, "mail.example.com", Cuts{Accounts: 1}},
		"one that ends alike":  {SuspendDomain, "ample.com", Cuts{}},
		"nobody's":             {SuspendDomain, "nobody.example", Cuts{}},
		"nothing":              {SuspendComputer, "nobody", Cuts{}},
	} {
		if got := cuts(tt.kind, tt.id); got != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	rows := map[string]any{}
	for i := range maxCounted + 5 {
		rows[keyPerson(e.Computer.ID, fmt.Sprintf("guest%d", i))] = person{Role: controlapi.RoleMember}
	}
	b.keepAll(rows)
	if got := cuts(SuspendAccount, e.Email); got != (Cuts{Accounts: 1, Computers: 1, People: maxCounted, More: true}) {
		t.Errorf("of many: %+v", got)
	}
}

// The audit log is read by what happened and of whom: of many others some are looked at for a
// page, which goes on where it ended.
func TestAuditIsSearched(t *testing.T) {
	t.Parallel()
	var log *audit.Log
	b := newBench(t, auditing(&log))
	maya := ok[Account](t)(b.Accounts.Ensure(t.Context(), "maya@example.com"))
	for i := range 3 * auditLooked / 2 {
		switch i % 2500 {
		case 7:
			log.Add(audit.Event{Kind: "sign-in", On: maya.ID})
		case 8:
			log.Add(audit.Event{Kind: "operator-looked", By: maya.ID, On: "x"})
		default:
			log.Add(audit.Event{Kind: "sign-in", On: "another"})
		}
	}
	list := func(q Query) (Page[audit.Row], error) { return b.Overview.Audit(t.Context(), q) }
	for _, tt := range []struct {
		q    Query
		want int
	}{
		{Query{About: maya.ID}, 7}, {Query{About: "Maya@example.com"}, 7}, {Query{About: maya.ID, Kind: "sign-in"}, 3},
		{Query{Kind: "operator-looked"}, 3}, {Query{Kind: "operator-looked", About: "another"}, 0},
	} {
		for _, limit := range []int{1, 2, MaxPage} {
			rows := all(t, list, tt.q, limit)
			if len(rows) != tt.want || !slices.IsSortedFunc(rows, func(a, b audit.Row) int { return int(b.Seq) - int(a.Seq) }) {
				t.Errorf("%+v by %d: %d rows", tt.q, limit, len(rows))
			}
		}
	}
	var lines int
	programs.Must(t, b.Overview.EachAudit(t.Context(), Query{About: maya.ID}, func(audit.Row) error { lines++; return nil }))
	if lines != 7 {
		t.Errorf("%d are taken along", lines)
	}
	if first := ok[Page[audit.Row]](t)(list(Query{Kind: "none"})); len(first.Rows) != 0 || first.Next == "" {
		t.Errorf("of %d rows all were looked at for one page", 3*auditLooked/2)
	}
	_, err := list(Query{About: "nobody@example.com"})
	wantRefusal(t, err, controlapi.CodeNotFound)
	_, err = b.accounts(Query{Kind: "sign-in"})
	wantRefusal(t, err, controlapi.CodeInvalid)
}

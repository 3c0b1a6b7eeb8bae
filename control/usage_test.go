package control

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// tokenBegin is what a token of the admin API begins with.
const tokenBegin = "pla_"

// What is carried is counted by computer and day, over nodes and restarts, and goes after 90
// days; of a computer that is gone nothing is kept, and what a store that is away could not
// take is written later.
func TestUsage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, ctx := b.owner(), t.Context()
	id := e.Computer.ID
	days := func() []UsageDay { t.Helper(); return ok[ComputerDetail](t)(b.Overview.Computer(ctx, id)).Usage }
	b.Usage.Count(id, 100, 2000)
	if len(days()) != 0 {
		t.Error("it is written at once")
	}
	writes := func(node *Service) { node.Usage.flush(ctx) }
	writes(b.Service)
	b.Usage.Count(id, 1, 2)
	writes(b.Service)
	two := b.node(func(c *Config) { c.Node = "two" })
	two.Usage.Count(id, 10, 20)
	two.Usage.Count("nobody", 1, 1)
	writes(two)
	want := UsageDay{"2026-11-20", 3, 111, 2022}
	if got := days(); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := ok[[]UsageDay](t)(b.Overview.Usage(ctx)); len(got) != 1 || got[0] != (UsageDay{"2026-11-20", 4, 112, 2023}) {
		t.Errorf("of all: %+v", got)
	}
	b.noneLeft("usage/nobody/")

	away, during := errors.New("away"), func() {}
	failing := programs.Got(New(Config{Store: kvFailing{b.store, &away, func() { during() }}, Naming: b.made.Naming, Mail: b.outbox, Now: b.clock.Now, Node: "three"}))(t)
	away = kv.ErrUnavailable
	during = func() { failing.Usage.Count(id, 0, 0) } // who comes while it fails
	failing.Usage.Count(id, 1, 1)
	writes(failing)
	during, away = func() {}, nil
	writes(failing)
	writes(failing)
	if got := days(); got[0].Visits != 5 {
		t.Errorf("with those of when the store was away: %+v", got)
	}

	b.clock.Add((UsageDays - 1) * 24 * time.Hour)
	b.Usage.Count(id, 1, 1)
	writes(b.Service)
	if got := days(); len(got) != 2 || got[1] != (UsageDay{"2026-11-20", 5, 112, 2023}) {
		t.Errorf("89 days later: %+v", got)
	}
	b.clock.Add(24 * time.Hour)
	if got := days(); len(got) != 1 {
		t.Errorf("90 days later: %+v", got)
	}
	b.clock.Add(7 * 24 * time.Hour)
	for key := range b.stored() {
		if key == keyUsages(id)+"2026-11-16/alone" || key == "usage-sum/2026-11-16/alone" {
			t.Errorf("%s is kept for longer", key)
		}
	}
	programs.Must(t, b.Computers.Remove(ctx, e.AccountID, e.Computer.Name))
	b.noneLeft(keyUsages(id))
}

// kvFailing fails writes with what it points at.
type kvFailing struct {
	kv.Store
	err    *error
	during func()
}

func (s kvFailing) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if *s.err != nil && errors.Is(*s.err, kv.ErrUnavailable) {
		s.during()
		return *s.err
	}
	return s.Store.Update(ctx, fn)
}

// Numbers that wait are bounded, and visits of many goroutines are counted each once.
func TestUsageIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.owner().Computer.ID
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 500 {
				b.Usage.Count(id, 1, 1)
				if i%100 == 0 {
					b.Usage.flush(t.Context())
				}
			}
		})
	}
	all.Wait()
	b.Usage.flush(t.Context())
	if got := ok[ComputerDetail](t)(b.Overview.Computer(t.Context(), id)).Usage; len(got) != 1 || got[0].Visits != 4000 {
		t.Errorf("4000 visits are %+v", got)
	}
	for range maxUsagePending + 10 {
		b.Usage.Count(anID(), 1, 1)
	}
	if n := len(b.Usage.pending); n != maxUsagePending || b.Usage.lost != 10 {
		t.Errorf("%d wait, %d are lost", n, b.Usage.lost)
	}
}

// A token may what it was made for until it ends or is removed; its secret is kept nowhere,
// and nothing that is nearly one is taken.
func TestAdminTokens(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, both := t.Context(), []TokenScope{ScopeSuspend, ScopeRead, ScopeRead}
	token, secret, err := b.AdminTokens.Add(ctx, " abuse desk ", both, time.Hour)
	programs.Must(t, err)
	reader, readSecret, err := b.AdminTokens.Add(ctx, "monitoring", []TokenScope{ScopeRead}, 0)
	programs.Must(t, err)
	if token.Name != "abuse desk" || len(token.Scopes) != 2 || reader.Ends != b.clock.Now().Add(TokenLife) {
		t.Errorf("made are %+v and %+v", token, reader)
	}
	for _, scope := range both {
		if got := ok[AdminToken](t)(b.AdminTokens.Use(ctx, secret, scope)); got.By() != "token:"+token.ID {
			t.Errorf("it acts as %s", got.By())
		}
	}
	use := func(presented string, scope TokenScope) error {
		_, err := b.AdminTokens.Use(ctx, presented, scope)
		return err
	}
	wantRefusal(t, use(readSecret, ScopeSuspend), controlapi.CodeForbidden)
	wantRefusal(t, use(readSecret, "operator"), controlapi.CodeForbidden)
	swapped := tokenBegin + reader.ID + secret[len(tokenBegin)+len(token.ID):]
	for _, wrong := range []string{"", tokenBegin, secret[:len(secret)-1], secret + "x", swapped, secret[len(tokenBegin):], tokenBegin + "../" + secret[len(tokenBegin):], secret[:len(secret)-1] + "\x00"} {
		wantRefusal(t, use(wrong, ScopeRead), controlapi.CodeUnauthorized)
	}
	for key, value := range b.stored() {
		if strings.Contains(key+value, secret[len(secret)-tokenLen:]) {
			t.Errorf("its secret is in %s", key)
		}
	}
	if list := ok[[]AdminToken](t)(b.AdminTokens.List(ctx)); len(list) != 2 || list[0].UsedAt.IsZero() == list[1].UsedAt.IsZero() { // made at once, they have no order
		t.Errorf("listed are %+v", list)
	}
	long, longSecret, err := b.AdminTokens.Add(ctx, "a day", both, 24*time.Hour+30*time.Minute)
	programs.Must(t, err)
	b.clock.Add(time.Hour)
	wantRefusal(t, use(secret, ScopeRead), controlapi.CodeUnauthorized)
	ok[AdminToken](t)(b.AdminTokens.Remove(ctx, reader.ID, ByCommandLine))
	wantRefusal(t, use(readSecret, ScopeRead), controlapi.CodeUnauthorized)
	_, err = b.AdminTokens.Remove(ctx, reader.ID, ByCommandLine)
	wantRefusal(t, err, controlapi.CodeNotFound)
	b.clock.Add(23*time.Hour + 45*time.Minute) // its row is there for a while more
	wantRefusal(t, use(longSecret, ScopeRead), controlapi.CodeUnauthorized)
	if _, there := b.stored()["admin-token/"+long.ID]; !there {
		t.Error("the row of a token that ended is gone: the test sees nothing")
	}
	if list := ok[[]AdminToken](t)(b.AdminTokens.List(ctx)); len(list) != 0 {
		t.Errorf("left are %+v", list)
	}
	for _, wrong := range []struct {
		name   string
		scopes []TokenScope
		life   time.Duration
	}{{"", both, 0}, {"a\nb", both, 0}, {"x", nil, 0}, {"x", []TokenScope{"operator"}, 0}, {"x", both, time.Second}, {"x", both, -1}, {"x", both, 367 * 24 * time.Hour}} {
		_, _, err := b.AdminTokens.Add(ctx, wrong.name, wrong.scopes, wrong.life)
		wantRefusal(t, err, controlapi.CodeInvalid)
	}
	for range maxTokens {
		_, _, err := b.AdminTokens.Add(ctx, "many", both, 0)
		programs.Must(t, err)
	}
	_, _, err = b.AdminTokens.Add(ctx, "one too many", both, 0)
	wantRefusal(t, err, controlapi.CodeInvalid)
}

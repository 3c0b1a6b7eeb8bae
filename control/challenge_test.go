package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// challengeLook is how often it is looked for those whose time is over.
const challengeLook = challengesEvery

// challengeLife is how long a challenge stands.
const challengeLife = challengeLives

// answered is what a node's DNS says of a computer.
func answered(t *testing.T, node *Service, short string) Certifying {
	t.Helper()
	return ok[Certifying](t)(node.Challenges.Of(t.Context(), short))
}

// Weakness: whoever has a challenge in the DNS of a name gets certificates for it. Checked: a
// computer sets those of its own name alone, all nodes answer them at once, they are gone when
// taken away, after their time, and with the computer's credential; and what has another form,
// or comes too often, is refused, taking away never.
func TestChallenges(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"memory":     func(*testing.T) string { return "memory:" },
		"PostgreSQL": func(t *testing.T) string { return pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBenchOn(t, url(t), func(c *Config) { c.Challenges = true })
			other := b.node()
			maya := b.owner()
			anna := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "anna@example.com", "anna"))
			put := func(c controlapi.Enrolled, all controlapi.Challenges) error {
				return b.Challenges.Put(t.Context(), c.Computer.ID, all)
			}
			one, two := NewChallenge(), NewChallenge()
			programs.Must(t, put(maya, controlapi.Challenges{Values: []string{one}}))
			b.clock.Add(challengeLife / 2)
			account := controlapi.Challenges{Values: []string{one, two}, Authority: "ca.example", Account: "https://ca.example/acct/1"}
			programs.Must(t, put(maya, account))
			for _, node := range []*Service{b.Service, other} {
				if got := answered(t, node, maya.Computer.Name); !slices.Equal(got.Challenges, []string{one, two}) ||
					got.CAA != "ca.example; accounturi=https://ca.example/acct/1; validationmethods=dns-01,tls-alpn-01" {
					t.Errorf("the DNS says %+v", got)
				}
				for _, none := range []string{"anna", "nobody", "", CheckName, maya.Computer.Name + ".porch"} {
					if got := answered(t, node, none); len(got.Challenges) != 0 || got.CAA != "" {
						t.Errorf("of %q the DNS says %+v", none, got)
					}
				}
			}
			programs.Must(t, put(anna, controlapi.Challenges{Values: []string{two}}))
			if got := answered(t, other, maya.Computer.Name); len(got.Challenges) != 2 {
				t.Errorf("after another computer set its own: %+v", got)
			}
			b.clock.Add(challengeLife / 2) // the first one's time is over
			if got := answered(t, other, maya.Computer.Name); !slices.Equal(got.Challenges, []string{two}) {
				t.Errorf("after ten minutes: %+v", got)
			}
			// Without a word of the agent's, as of one that went back to an earlier version, its
			// account goes on having certificates in both ways.
			account.Values = nil
			programs.Must(t, put(maya, account))
			if got := answered(t, other, maya.Computer.Name); len(got.Challenges) != 0 || !strings.HasSuffix(got.CAA, "validationmethods=dns-01,tls-alpn-01") {
				t.Errorf("taken away: %+v", got)
			}

			for what, all := range map[string]controlapi.Challenges{
				"five":               {Values: []string{NewChallenge(), NewChallenge(), NewChallenge(), NewChallenge(), NewChallenge()}},
				"the same twice":     {Values: []string{one, one}},
				"a short one":        {Values: []string{one[1:]}},
				"a long one":         {Values: []string{one + "x"}},
				"another alphabet":   {Values: []string{one[1:] + "+"}},
				"an empty one":       {Values: []string{""}},
				"no authority":       {Account: "https://ca.example/acct/1"},
				"no account":         {Authority: "ca.example"},
				"one more parameter": {Authority: "ca.example", Account: "https://ca.example/acct/1; validationmethods=http-01"},
				"a quote":            {Authority: "ca.example", Account: `https://ca.example/"`},
				"everybody":          {Authority: ";", Account: "https://ca.example/acct/1"},
				"a long account":     {Authority: "ca.example", Account: "https://ca.example/" + strings.Repeat("x", 300)},
			} {
				if err := put(maya, all); !IsRefusal(err, controlapi.CodeInvalid) {
					t.Errorf("%s: %v", what, err)
				}
			}
			spent := 0
			for range 40 {
				if err := put(maya, controlapi.Challenges{Values: []string{NewChallenge()}}); IsRefusal(err, controlapi.CodeTooMany) {
					spent++
				}
			}
			if spent < 10 || spent > 12 {
				t.Errorf("%d of 40 more were too many", spent)
			}
			programs.Must(t, put(maya, controlapi.Challenges{}))
			programs.Must(t, put(anna, controlapi.Challenges{Values: []string{one}}))

			// Whoever connects the computer anew begins anew.
			programs.Must(t, put(maya, controlapi.Challenges{Authority: "ca.example", Account: "https://ca.example/acct/1"}))
			programs.Must(t, b.Computers.Remove(t.Context(), ok[Account](t)(b.Accounts.ByEmail(t.Context(), "maya@example.com")).ID, maya.Computer.Name))
			again := b.owner()
			if got := answered(t, other, again.Computer.Name); got.CAA != "" || len(got.Challenges) != 0 {
				t.Errorf("of the next computer of that name: %+v", got)
			}
			record := ok[controlapi.DNSRecord](t)(other.Challenges.Check(t.Context()))
			if got := answered(t, b.Service, CheckName); !slices.Equal(got.Challenges, []string{record.Value}) || !strings.HasPrefix(record.Name, "_acme-challenge._check.") {
				t.Errorf("an operator's %+v is answered by %+v", record, got)
			}
		})
	}
}

// Where another server answers, it is told of each challenge, and once more when the time of
// one is over: until it has taken that.
func TestChallengesAtAnotherServer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var away bool
	tries := 0
	told := map[string][]string{}
	b := newBench(t, func(c *Config) {
		c.Challenges = true
		c.PublishDNS = func(_ context.Context, name string, values []string) error {
			mu.Lock()
			defer mu.Unlock()
			tries++
			if away {
				return errors.New("away")
			}
			told[name] = values
			return nil
		}
	})
	leave := func(is bool) { mu.Lock(); defer mu.Unlock(); away = is }
	at := func() []string { mu.Lock(); defer mu.Unlock(); return told["_acme-challenge.maya.localhost"] }
	due := func() int {
		return len(ok[[]string](t)(viewed(t.Context(), b.core, func(tx *txn) (keys []string, err error) {
			for rest := range below(tx, "challenge-due/") {
				keys = append(keys, rest)
			}
			return keys, nil
		})))
	}
	maya, value := b.owner(), NewChallenge()
	put := func(values ...string) error {
		return b.Challenges.Put(t.Context(), maya.Computer.ID, controlapi.Challenges{Values: values})
	}
	programs.Must(t, put(value))
	if !slices.Equal(at(), []string{value}) {
		t.Errorf("told: %v", told)
	}
	programs.Must(t, b.Challenges.endDue(t.Context()))
	if !slices.Equal(at(), []string{value}) || due() != 1 {
		t.Errorf("before its time: %v, %d due", told, due())
	}
	// What it was not told of is not said to be there, also to who asks once more; and what it was
	// told of it is told once.
	leave(true)
	other := NewChallenge()
	for range 2 {
		if err := put(value, other); !IsRefusal(err, controlapi.CodeUnavailable) {
			t.Errorf("the other server is away: %v", err)
		}
	}
	leave(false)
	mu.Lock()
	before := tries
	mu.Unlock()
	for range 3 {
		programs.Must(t, put(value, other))
	}
	if !slices.Equal(at(), []string{value, other}) || tries != before+1 {
		t.Errorf("once it is back: %v, after %d tries", told, tries-before)
	}
	leave(true)
	programs.Must(t, put()) // the agent need not wait
	b.clock.Add(challengeLife + challengeLook)
	programs.Must(t, b.Challenges.endDue(t.Context()))
	if !slices.Equal(at(), []string{value, other}) || due() != 1 {
		t.Errorf("after its time, away: %v, %d due", told, due())
	}
	leave(false)
	b.clock.Add(challengeAgain + challengeLook)
	programs.Must(t, b.Challenges.endDue(t.Context()))
	if len(at()) != 0 || due() != 0 {
		t.Errorf("after its time: %v, %d due", told, due())
	}

	// A computer that is gone leaves nothing there, and whoever has its name now keeps theirs.
	remove := func() {
		owner := ok[Account](t)(b.Accounts.ByEmail(t.Context(), "maya@example.com"))
		programs.Must(t, b.Computers.Remove(t.Context(), owner.ID, maya.Computer.Name))
	}
	programs.Must(t, put(value))
	remove()
	b.clock.Add(challengeLife / 2)
	maya = b.owner()
	programs.Must(t, put(value[1:]+"x"))
	b.clock.Add(challengeLife/2 + challengeLook)
	programs.Must(t, b.Challenges.endDue(t.Context()))
	if !slices.Equal(at(), []string{value[1:] + "x"}) || due() != 1 {
		t.Errorf("of the next computer of that name: %v, %d due", told, due())
	}
	remove()
	leave(true)
	b.clock.Add(challengeLife)
	programs.Must(t, b.Challenges.endDue(t.Context()))
	leave(false)
	b.clock.Add(challengeAgain + challengeLook)
	programs.Must(t, b.Challenges.endDue(t.Context()))
	if len(at()) != 0 || due() != 0 {
		t.Errorf("after both are gone: %v, %d due", told, due())
	}
}

package control

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: rotating replaced the signing key alone, and a copy of the store from before was
// a node of this control plane, and sealed its cookies, for ever.
// Checked: over a planned rotation the old copy and the new keys both count, and after its
// end the old copy does not; after a leak it does not from then on, also in the middle
// of a planned one; other nodes and the next start say the same; what rows are found by, and
// the names of cookies, stay.
func TestRotatingWhatNodesAndCookiesAreKnownBy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old := b.node() // what a copy of the store knows: it never reads again
	other := b.node()
	secrets := func(s *Service) [][]byte { return ok[[][]byte](t)(s.Keys.PeerSecrets()) }
	mark, instance := b.Keys.mark("a", "text"), b.Keys.Instance()
	was := secrets(old)[0]
	b.owner()
	account := ok[Account](t)(b.Accounts.ByEmail(t.Context(), "maya@example.com"))
	programs.Must(t, b.Computers.Remove(t.Context(), account.ID, "maya"))
	agree := func(when string, takesOld, showsOld bool) {
		t.Helper()
		other.Feed.Look(t.Context())
		for name, s := range map[string]*Service{"here": b.Service, "another node": other, "after a restart": b.node()} {
			_, opens := s.Keys.Unseal("a", old.Keys.Seal("a", "text"))
			_, taken := old.Keys.Unseal("a", s.Keys.Seal("a", "text"))
			all := secrets(s)
			known := slices.ContainsFunc(all, func(x []byte) bool { return bytes.Equal(x, was) })
			if opens != takesOld || known != takesOld || taken != showsOld || bytes.Equal(all[0], was) != showsOld {
				t.Errorf("%s, %s: a cookie of before opens: %t, its node is one: %t; shown is the old: %t, %t", when, name, opens, known, taken, bytes.Equal(all[0], was))
			}
			if !bytes.Equal(s.Keys.mark("a", "text"), mark) || s.Keys.Instance() != instance {
				t.Errorf("%s, %s: marks or the instance changed", when, name)
			}
		}
	}
	agree("before", true, true)
	programs.Must(t, b.Keys.Rotate(t.Context()))
	agree("made known", true, true)
	b.clock.Add(keyLead)
	agree("used", true, false)
	b.clock.Add(formerLife - keyLead - time.Second)
	agree("at the end", true, false)
	wantRefusal(t, b.Keys.Rotate(t.Context()), controlapi.CodeInvalid)
	b.clock.Add(time.Second)
	agree("ended", false, false)

	// The account whose name was kept back gets it again.
	ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", "maya"))

	old, was = b.node(), secrets(b.Service)[0]
	programs.Must(t, b.Keys.RotateNow(t.Context()))
	agree("after a leak", false, false)
	if keys := b.Keys.Public(); len(keys) != 1 || keys[0] == old.Keys.Signing() || b.Keys.Signing() != keys[0] {
		t.Error("the old signing key counts after a leak")
	}
	programs.Must(t, b.Keys.Rotate(t.Context()))
	planned := b.node() // a copy from the middle of a rotation has both
	programs.Must(t, b.Keys.RotateNow(t.Context()))
	for _, s := range []*Service{b.Service, b.node()} {
		for _, leaked := range secrets(planned) {
			if slices.ContainsFunc(secrets(s), func(x []byte) bool { return bytes.Equal(x, leaked) }) {
				t.Error("a copy from the middle of a rotation is a node")
			}
		}
		for _, leaked := range planned.Keys.Public() {
			if slices.Contains(s.Keys.Public(), leaked) {
				t.Error("a copy from the middle of a rotation signs")
			}
		}
	}
}

// A node that may have missed something reads the keys at once: one that has rotated them at
// once cannot be heard before.
func TestKeysAreReadWhereNewsIsMissed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	missed := false
	other := b.node(func(c *Config) { c.Missed = func() bool { return missed } })
	programs.Must(t, b.Keys.RotateNow(t.Context()))
	for _, missed = range []bool{false, true} {
		m := missing{read: time.Now().Add(-readMissedEvery)}
		other.Agents.versionsDue(t.Context(), &m)
		if follows := other.Keys.Signing() == b.Keys.Signing(); follows != missed {
			t.Errorf("missed: %t, and the new key is known: %t", missed, follows)
		}
	}
}

// A read that began before a rotation does not bring back what it ended, whatever the clock
// of the node that rotated shows.
func TestOlderKeysAreNotBelievedAtOnce(t *testing.T) {
	t.Parallel()
	for _, clock := range []time.Duration{time.Second, -time.Minute} {
		b := newBench(t)
		stored, _, err := b.keysStored(t.Context())
		programs.Must(t, err)
		other := b.node() // has not read the new ones yet
		b.clock.Add(clock)
		programs.Must(t, b.Keys.RotateNow(t.Context()))
		now := b.Keys.Signing()
		b.Keys.readAgain(stored)
		if b.Keys.Signing() != now {
			t.Errorf("%v later, the key of before a leak is back", clock)
		}
		stored, _, err = b.keysStored(t.Context())
		programs.Must(t, err)
		other.Keys.readAgain(stored)
		if other.Keys.Signing() != now {
			t.Errorf("%v later, another node does not follow at once", clock)
		}
	}
}

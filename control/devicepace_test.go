package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// public makes a bench that is not local mode's.
func public(cfg *Config) {
	cfg.Domain, cfg.AuthHost, cfg.PublicPort = "porch.example", "control.example", 443
}

// asks counts how many of n requests at one moment are let in, and checks what
// the others are told.
func (b *bench) asks(n int, credential, client string) (in int) {
	b.t.Helper()
	for range n {
		_, err := b.Agents.AuthenticateFrom(b.t.Context(), credential, netip.MustParseAddr(client), false)
		switch {
		case !IsRefusal(err, controlapi.CodeTooMany):
			in++
		case err.(*controlapi.Error).RetryAfter <= 0 || err.(*controlapi.Error).RetryAfter > time.Minute:
			b.t.Fatalf("refused for %v", err.(*controlapi.Error).RetryAfter)
		}
	}
	return in
}

func TestComputersAskAsOftenAsTheyMay(t *testing.T) {
	t.Parallel()
	b := newBench(t, public)
	maya := b.owner()
	ben, err := b.Computers.Ensure(t.Context(), "ben@example.com", "ben")
	programs.Must(t, err)
	const here = "192.0.2.7"
	if in := b.asks(700, maya.Credential, here); in != bucketComputer.Size {
		t.Errorf("%d requests at once got in", in)
	}
	if in := b.asks(1, maya.Credential, "198.51.100.1"); in != 0 {
		t.Error("another network is another bucket")
	}
	if in := b.asks(10, ben.Credential, here); in != 10 {
		t.Errorf("another computer of the network got in %d times", in)
	}
	b.clock.Add(time.Second)
	if in := b.asks(100, maya.Credential, here); in != 20 {
		t.Errorf("%d requests got in a second later", in)
	}
	b.clock.Add(time.Hour)
	if in := b.asks(700, maya.Credential, here); in != bucketComputer.Size {
		t.Errorf("%d requests at once got in an hour later", in)
	}
	b.clock.Add(-24 * time.Hour) // the clock was wrong, and is set right
	if b.clock.Add(time.Minute); b.asks(1, maya.Credential, here) != 1 {
		t.Error("a clock that was set back keeps a computer out")
	}
}

func TestLocalModeIsNotBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if in := b.asks(2000, b.owner().Credential, "127.0.0.1"); in != 2000 {
		t.Errorf("%d of 2000 got in", in)
	}
}

// Weakness: a credential that is not good costs a look into the store each time
// it is shown, so whoever shows many keeps the store busy. Attack: a network does
// so. Checked: after a while nothing is looked up for it, but for computers whose
// credential was good a moment ago, and other networks.
func TestRefusedCredentialsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, public)
	maya := b.owner()
	const here, elsewhere = "2001:db8:1:2::7", "2001:db8:1:3::7"
	if b.asks(1, maya.Credential, here) != 1 {
		t.Fatal("the credential is not good")
	}
	wrong := func(i int) string { return fmt.Sprintf("%043d", i) }
	in := 0
	for i := range 500 {
		in += b.asks(1, wrong(i), fmt.Sprintf("2001:db8:1:2::%x", i)) // every address of one customer
	}
	if in != bucketRefused.Size {
		t.Errorf("%d wrong credentials were looked up", in)
	}
	if b.asks(50, maya.Credential, here) != 50 {
		t.Error("a computer of that network was kept out")
	}
	if b.asks(1, wrong(1), elsewhere) != 1 {
		t.Error("another network was kept out")
	}
	b.clock.Add(10 * time.Second)
	if in := b.asks(50, wrong(2), here); in != 10 {
		t.Errorf("%d got in ten seconds later", in)
	}

	// What no credential looks like is refused without a look, and counts for nothing.
	b.clock.Add(time.Minute)
	for _, none := range []string{"", "short", wrong(3) + "="} {
		if in := b.asks(100, none, here); in != 100 {
			t.Errorf("%q was told to wait, after %d times", none, in)
		}
	}
	// Who gives up waiting has been looked up.
	gone, giveUp := context.WithCancel(t.Context())
	giveUp()
	for i := range bucketRefused.Size {
		if _, err := b.Agents.AuthenticateFrom(gone, wrong(i), netip.MustParseAddr(here), false); !errors.Is(err, context.Canceled) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if in := b.asks(1, wrong(1), here); in != 0 {
		t.Error("requests that were given up were not counted")
	}

	// A credential that is over loses its place at once.
	programs.Must(t, b.Agents.EndCredential(t.Context(), maya.Credential))
	b.clock.Add(time.Hour)
	if in := b.asks(500, maya.Credential, here); in > bucketRefused.Size+1 {
		t.Errorf("a credential that is over was looked up %d times", in)
	}
}

func TestDevicePaceIsBounded(t *testing.T) {
	t.Parallel()
	p, now := newDevicePace(), newClock().Now()
	for i := range 3 * devicePaceSize {
		hash, network := fmt.Sprint("hash", i), fmt.Sprint("network", i)
		p.enter(now, hash, network, i%3 == 0)
		p.note(now, hash, network, i%3 == 0, true, i%2 == 0)
		if len(p.computers) > devicePaceSize {
			t.Fatalf("%d computers are remembered", len(p.computers))
		}
	}
}

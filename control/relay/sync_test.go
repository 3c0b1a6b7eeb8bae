package relay

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// told reads the parts of one snapshot.
func (a *agent) told() (snapshot []byte, last tunnelwire.Frame) {
	a.t.Helper()
	for f := range a.frames {
		if f.Type != tunnelwire.Synced {
			continue
		}
		if snapshot = append(snapshot, f.Part...); !f.More {
			return snapshot, f
		}
	}
	a.t.Fatal("the connection ended")
	return nil, tunnelwire.Frame{}
}

func (a *agent) send(f tunnelwire.Frame) {
	a.t.Helper()
	if err := tunnelwire.WriteFrame(a.control, f); err != nil {
		a.t.Fatal(err)
	}
}

// Weakness: the sync shares its connection with what visitors need.
// Attack: an agent asks as fast as it can, or is told snapshots without a pause.
// Checked: one ask is followed at a time and the newest answered, and what waits to be
// told is one snapshot.
func TestFloodsOfSyncs(t *testing.T) {
	t.Parallel()
	var under, most, asks atomic.Int32
	snapshot := bytes.Repeat([]byte("x"), 400*tunnelwire.MaxPart+1)
	_, addr := serveRelay(t, func(c *Config) {
		c.Sync = func(ctx context.Context, _ string, client netip.Addr, version string, tell func([]byte) error) error {
			asks.Add(1)
			if n := under.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer under.Add(-1)
			if client != netip.MustParseAddr("127.0.0.1") {
				return errors.New("from somewhere else")
			}
			if version != "last" {
				<-ctx.Done()
				return ctx.Err()
			}
			for range 100 { // the agent cannot read that fast
				if err := tell([]byte("superseded")); err != nil {
					return err
				}
			}
			if err := tell(snapshot); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}
	}, nil)
	a := connectSyncingAgent(t, addr, "maya")
	for range 5000 {
		a.send(tunnelwire.Frame{Type: tunnelwire.Sync, Version: "not the last"})
	}
	a.send(tunnelwire.Frame{Type: tunnelwire.Sync, Version: "last"})
	got, last := a.told()
	for string(got) == "superseded" {
		got, last = a.told()
	}
	if !bytes.Equal(got, snapshot) || last.Code != "" {
		t.Fatalf("%d bytes of %d, %+v", len(got), len(snapshot), last)
	}
	if most.Load() != 1 {
		t.Errorf("%d syncs at a time", most.Load())
	}
	t.Logf("%d of 5001 asks were followed", asks.Load())
}

// A snapshot is told in parts, before each of which comes what a visitor needs.
func TestTicketsComeBetweenParts(t *testing.T) {
	t.Parallel()
	s := &session{relay: newRelay(t, nil), wake: make(chan struct{}, 1), pending: make(map[ticketID]issued)}
	if err := s.tell(bytes.Repeat([]byte("x"), 3*tunnelwire.MaxPart)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p := &s.pools[plainPool]
		p.waiting = append(p.waiting, make(waiter, 1))
		frames := s.compose(false)
		if len(frames) != 2 || frames[0].Type != tunnelwire.Open || frames[1].Type != tunnelwire.Synced ||
			frames[1].More != (i < 2) || len(frames[1].Part) != tunnelwire.MaxPart {
			t.Fatalf("part %d comes as %d frames", i, len(frames))
		}
	}
	if frames := s.compose(false); len(frames) > 0 {
		t.Errorf("more than there is: %+v", frames)
	}
	if err := s.tell(make([]byte, tunnelwire.MaxSnapshot+1)); !errors.Is(err, errSnapshot) {
		t.Errorf("too large a snapshot: %v", err)
	}
}

// A sync that ends is told why, and an older connection carries none.
func TestSyncEnds(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		&controlapi.Error{Code: controlapi.CodeUnauthorized, Message: "Gone."}: controlapi.CodeUnauthorized,
		errors.New("the store is away, at 10.0.0.1"):                           controlapi.CodeUnavailable,
	} {
		r, addr := serveRelay(t, func(c *Config) {
			c.Sync = func(context.Context, string, netip.Addr, string, func([]byte) error) error { return err }
		}, nil)
		a := connectSyncingAgent(t, addr, "maya")
		a.send(tunnelwire.Frame{Type: tunnelwire.Sync})
		if _, last := a.told(); last.Code != want || last.Message == "" || last.Message == err.Error() && want == controlapi.CodeUnavailable {
			t.Errorf("%v is told as %+v", err, last)
		}
		if n := r.Stats().Parked; n != 0 {
			t.Errorf("%d parked", n)
		}
		older := connectAgent(t, addr, "ben")
		older.send(tunnelwire.Frame{Type: tunnelwire.Sync})
		programs.Eventually(t, "an ask on an older connection ends it", func() bool { return r.Stats().Sessions == 1 })
	}
}

package tunnel_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/relay"
	"porchlight/test/programs"
)

// A computer that knows no relay, or none that can be reached, goes to the auth host, which
// tells it of them, and from there to those that are there; what is connected elsewhere
// leaves the auth host alone.
func TestLastRelay(t *testing.T) {
	t.Parallel()
	p := newPlane("1")
	w := start(t, options{relay: func(c *relay.Config) { p.config(c); c.Node = "auth" }})
	first, firstAddr, stopFirst := startRelay(t, "127.0.0.1:0", nil, named("first"))
	second, secondAddr, stopSecond := startRelay(t, "127.0.0.1:0", nil, named("second"))
	var list atomic.Pointer[[]controlapi.Relay]
	list.Store(&[]controlapi.Relay{})
	cfg := toRelays()
	cfg.Relays = func() []controlapi.Relay { return *list.Load() }
	cfg.Last = controlapi.Relay{Address: w.addr, ServerName: authHost}
	w.anew(cfg, 20*time.Millisecond)
	if got := w.next(""); got.Version != "1" {
		t.Fatalf("%+v", got)
	}
	relays := listOf(firstAddr, secondAddr)()
	list.Store(&relays)
	w.tunnel.Relist()
	sessions := func(auth, one, two int) func() bool {
		return func() bool {
			return w.relay.Stats().Sessions == auth && first.Stats().Sessions == one && second.Stats().Sessions == two
		}
	}
	programs.Eventually(t, "it is at the relays", sessions(0, 1, 1))
	stopFirst()
	programs.Eventually(t, "one is enough", sessions(0, 0, 1))
	stopSecond()
	programs.Eventually(t, "it is at the auth host", sessions(1, 0, 0))
	if got := w.next("1"); got.Version != "1" || !got.Unchanged {
		t.Errorf("%+v", got)
	}
}

// Where no relay is connected the sync says why: what the last attempt met, and what a
// relay refused in its own words.
func TestSyncSaysWhyThereIsNone(t *testing.T) {
	t.Parallel()
	var known atomic.Bool
	known.Store(true)
	p := newPlane("1")
	w := start(t, options{relay: func(c *relay.Config) {
		p.config(c)
		c.Authenticate = func(ctx context.Context, sent string) (controlapi.Computer, error) {
			if known.Load() {
				return authenticate(ctx, sent)
			}
			return controlapi.Computer{}, &controlapi.Error{Code: controlapi.CodeUnauthorized, Message: "Not any more."}
		}
	}})
	w.next("")
	known.Store(false)
	w.relay.Kick("computer-1")
	why := func(so func(error) bool) {
		t.Helper()
		programs.Eventually(t, "the sync says why", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			err := w.tunnel.Sync(ctx, "1", func(controlapi.Snapshot) error { return nil })
			if err == nil {
				t.Fatal("it is answered")
			}
			return so(err)
		})
	}
	why(func(err error) bool {
		refusal, ok := errors.AsType[*controlapi.Error](err)
		return ok && refusal.Code == controlapi.CodeUnauthorized
	})
	w.stopRelay()
	w.tunnel.Wake()
	why(func(err error) bool {
		_, refused := errors.AsType[*controlapi.Error](err)
		return !refused
	})
}

// Where the nodes of both relays have lost the store and that of a spare one has not, the
// computer comes to the spare one, and learns there what changed.
func TestSpareRelayCarriesTheSync(t *testing.T) {
	t.Parallel()
	var addresses []string
	planes := map[string]*plane{}
	relays := map[string]*relay.Relay{}
	for _, name := range []string{"first", "second", "spare"} {
		planes[name] = newPlane("1")
		r, addr, _ := startRelay(t, "127.0.0.1:0", nil, func(c *relay.Config) { planes[name].config(c); c.Node = name })
		relays[name], addresses = r, append(addresses, addr)
	}
	w := start(t, options{})
	w.anew(toRelays(addresses...), 20*time.Millisecond)
	w.next("")
	programs.Eventually(t, "both are connected", func() bool {
		return relays["first"].Stats().Sessions == 1 && relays["second"].Stats().Sessions == 1
	})
	planes["spare"].set(controlapi.Snapshot{Version: "2"})
	for _, name := range []string{"first", "second"} {
		planes[name].lose()
	}
	programs.Eventually(t, "it is told by the spare one", func() bool {
		var got controlapi.Snapshot
		err := w.tunnel.Sync(t.Context(), "1", func(s controlapi.Snapshot) error { got = s; return nil })
		return err == nil && got.Version == "2"
	})
}

// Where the node of the auth host is a listed relay, by another address, a computer that was
// just enrolled goes there as soon as it is told, and to the auth host no more.
func TestLastRelayIsAListedOne(t *testing.T) {
	t.Parallel()
	for _, node := range []string{"node-1", ""} {
		p := newPlane("1")
		w := start(t, options{relay: func(c *relay.Config) { p.config(c); c.Node = node }})
		_, own := startMiddlebox(t, w.addr, "")
		var list atomic.Pointer[[]controlapi.Relay]
		list.Store(&[]controlapi.Relay{})
		cfg := toRelays()
		cfg.Relays = func() []controlapi.Relay { return *list.Load() }
		cfg.Last = controlapi.Relay{Address: w.addr, ServerName: authHost}
		w.anew(cfg, 0)
		w.next("")
		relays := listOf(own)()
		list.Store(&relays)
		w.tunnel.Relist()
		programs.Eventually(t, "it left the auth host for the relay", func() bool {
			return strings.Contains(w.log.String(), "relay="+own+" host") && w.relay.Stats().Sessions == 1
		})
	}
}

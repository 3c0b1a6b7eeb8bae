package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/certs"
	"porchlight/agent/engine"
	"porchlight/agent/procinfo"
	"porchlight/agent/remote"
	"porchlight/agent/settings"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// farAway is a control plane without a network, so that simulated time can pass:
// a sync waits there as long as at a real one, and can be away.
type farAway struct {
	snapshot controlapi.Snapshot
	away     atomic.Bool
	refusal  error // of every sync; nil for none
	of       error // what HTTPS answers
}

func (f *farAway) Sync(ctx context.Context, version string, take func(controlapi.Snapshot) error) error {
	if f.away.Load() {
		return errors.New("no route to host")
	}
	if f.refusal != nil {
		return f.refusal
	}
	if version != f.snapshot.Version {
		return take(f.snapshot)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(tunnelwire.SilenceAsleep):
	}
	if f.away.Load() {
		return errors.New("connection reset")
	}
	return take(controlapi.Snapshot{Unchanged: true})
}

func (f *farAway) Answers(context.Context) error {
	if f.away.Load() {
		return errors.New("no route to host")
	}
	return f.of
}

func (f *farAway) PutApps(context.Context, controlapi.Apps) error {
	if f.away.Load() {
		return errors.New("no route to host")
	}
	return nil
}

// mortal is a process that ends when it is told to.
type mortal struct{ over chan struct{} }

func (m mortal) Ended() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

func (m mortal) Wait(ctx context.Context) error {
	select {
	case <-m.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (mortal) Close() {}

// dayLong issues certificates that live for a day.
func dayLong(t *testing.T) func(string) (*tls.Certificate, error) {
	t.Helper()
	key := programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	serial := int64(0)
	return func(name string) (*tls.Certificate, error) {
		serial++
		leaf := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{name}, NotBefore: time.Now(), NotAfter: time.Now().Add(24 * time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
		if err != nil {
			return nil, err
		}
		if leaf, err = x509.ParseCertificate(der); err != nil {
			return nil, err
		}
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
	}
}

// TestADay is 24 hours of simulated time of the parts that time moves, wired as
// in an agent: the sync and who may visit, registrations and their heartbeats,
// certificates. The control plane is away from the sixth to the twelfth hour,
// with access for four hours of that; one app falls silent, one dies; the
// certificate is renewed on the way. Every minute the state is what it has to be.
// (Each part has a day, or half a year, of its own where it lives.)
func TestADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := programs.Got(store.Open(t.TempDir()))(t)
		defer kept.Close()
		const bob, notes, name = "acc-bob", "id-notes", "notes.maya.test"
		plane := &farAway{snapshot: controlapi.Snapshot{
			Version: "v1", Computer: controlapi.Computer{ID: "c", Name: "maya", Host: "maya.test"},
			People: []controlapi.Person{{AccountID: bob, Email: "bob@example.com", Role: controlapi.RoleMember, Status: controlapi.PersonActive, Apps: []string{notes}, Epoch: 1}},
		}}
		programs.Must(t, kept.SaveSettings(agentapi.Settings{FailStaticHours: 4}))
		chosen := programs.Got(settings.New(kept, nil, nil))(t)
		who := programs.Got(access.New(access.Config{Store: kept, Settings: chosen}))(t)
		sync := remote.New(remote.Config{
			Control: plane, Tunnel: plane, Apps: func() []controlapi.App { return nil }, AppsChanged: make(chan struct{}),
			Knocks:     func() controlapi.KnocksFrom { return controlapi.KnocksFromKnown },
			OnSnapshot: func(s controlapi.Snapshot) { who.SetSnapshot(s) },
			OnContact:  who.Touch, OnChange: func() {}, Log: slog.New(slog.DiscardHandler),
		})
		lives := map[int]mortal{1: {make(chan struct{})}, 2: {make(chan struct{})}, 3: {make(chan struct{})}}
		registry := engine.NewRegistry(engine.RegistryConfig{Open: func(pid int) (procinfo.Handle, error) { return lives[pid], nil }})
		keeper := certs.New(certs.Config{Issue: dayLong(t), Allowed: func(n string) bool { return n == name }})

		ctx, cancel := context.WithCancel(t.Context())
		var parts errgroup.Group
		parts.Go(func() error { return who.Run(ctx) })
		parts.Go(func() error { return registry.Run(ctx) })
		parts.Go(func() error { return sync.Run(ctx) })
		defer func() { cancel(); _ = parts.Wait() }() // sync ends with ctx's error

		app := func(pid int) agentapi.RegisterRequest {
			return agentapi.RegisterRequest{AppID: "com.example.notes", PID: pid}
		}
		for pid := range lives {
			programs.Got(registry.Register(engine.Caller{}, app(pid), func() procinfo.Process { return procinfo.Process{} }))(t)
		}
		synctest.Wait()
		visitor := access.Identity{AccountID: bob, Epoch: 1}
		var cut atomic.Int64
		enter := func() (leave func()) {
			d, leave := who.Enter(visitor, notes, func() { cut.Add(1) })
			if !d.Allowed {
				t.Fatalf("refused: %+v", d)
			}
			return leave
		}
		leave := enter()
		first := programs.Got(keeper.Certificate(name))(t)

		const silentFrom, diesAt, awayFrom, backAt = 3 * time.Hour, 5 * time.Hour, 6 * time.Hour, 12 * time.Hour
		began, died := time.Now(), false
		for beat := range int(24 * time.Hour / agentapi.HeartbeatEvery) {
			time.Sleep(agentapi.HeartbeatEvery)
			synctest.Wait()
			passed := time.Since(began)
			plane.away.Store(passed >= awayFrom && passed < backAt)
			if !died && passed >= diesAt {
				died = true
				close(lives[3].over)
			}
			want := 1
			for pid, beats := range map[int]bool{1: true, 2: passed <= silentFrom, 3: !died} {
				if !beats {
					continue
				}
				if _, err := registry.Heartbeat(engine.Caller{}, app(pid)); err != nil {
					t.Fatalf("after %v the app %d is gone: %v", passed, pid, err)
				}
			}
			if beat%6 != 0 {
				continue // looked at once a minute
			}
			synctest.Wait()
			if passed <= silentFrom+agentapi.ReapAfter {
				want++
			}
			if !died {
				want++
			}
			if n := registry.Count(); n != want && passed != silentFrom+agentapi.ReapAfter {
				t.Fatalf("after %v there are %d registrants, want %d", passed, n, want)
			}
			cert, err := keeper.Certificate(name)
			if err != nil || time.Until(cert.Leaf.NotAfter) < 8*time.Hour-time.Minute {
				t.Fatalf("after %v the certificate lives for another %v, %v", passed, time.Until(cert.Leaf.NotAfter), err)
			}
			// The last word comes up to a hold before the control plane goes, and
			// the first up to a backoff after it is back.
			switch d := who.Decide(visitor, notes); {
			case passed < awayFrom+4*time.Hour-tunnelwire.SilenceAsleep || passed > backAt+time.Minute:
				if !d.Allowed {
					t.Fatalf("after %v: %+v", passed, d)
				}
			case passed > awayFrom+4*time.Hour+agentapi.HeartbeatEvery && passed < backAt:
				if d.Reason != access.ReasonStale || cut.Load() != 1 {
					t.Fatalf("after %v: %+v, and %d connections were closed", passed, d, cut.Load())
				}
			}
		}
		leave()
		enter()()
		if last, err := keeper.Certificate(name); err != nil || last == first {
			t.Errorf("the certificate was not renewed: %v", err)
		}
		if cut.Load() != 1 || !sync.State().Connected {
			t.Errorf("%d connections were closed, connected %v", cut.Load(), sync.State().Connected)
		}
	})
}

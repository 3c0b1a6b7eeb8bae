// Package authhost is a control plane's auth host for the tests of agents: its listener,
// which takes tunnels, too, in front of a control plane that the test makes.
package authhost

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"porchlight/control/relay"
	"porchlight/internal/localca"
	"porchlight/test/programs"
)

// Name is its host name, which leads to this computer everywhere.
const Name = "control.localhost"

// Host is made by Start.
type Host struct {
	URL   string
	PEM   []byte // the authority to trust
	Roots *x509.CertPool
	// End ends it as when its machine goes, and Begin has it there again, at the same
	// address.
	End, Begin func()
}

// Start has an auth host there until the test is over, by cfg without AuthHost and TLS.
func Start(t testing.TB, cfg relay.Config) *Host {
	t.Helper()
	ca, err := localca.Create(filepath.Join(t.TempDir(), "authority"), localca.Options{Names: []string{"localhost"}})
	programs.Must(t, err)
	certificate := programs.Got(ca.Issue(Name))(t)
	cfg.AuthHost, cfg.TLS, cfg.Grace = Name, &tls.Config{Certificates: []tls.Certificate{*certificate}}, time.Millisecond
	address := programs.FreeAddress(t)
	h := &Host{URL: "https://" + Name + address[len("127.0.0.1"):], PEM: ca.RootPEM(), Roots: ca.Pool()}
	h.Begin = func() {
		t.Helper()
		r := programs.Got(relay.New(cfg))(t)
		l := programs.Got(relay.Listen(t.Context(), address))(t)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Serve(ctx, l) }()
		h.End = sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the auth host ended with %v", err)
			}
		})
	}
	h.Begin()
	t.Cleanup(func() { h.End() })
	return h
}

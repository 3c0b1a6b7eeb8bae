// Package told is a computer as far as its control plane tells it something: a tunnel with
// nothing behind it.
package told

import (
	"context"
	"crypto/x509"
	"sync"
	"testing"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// Computer is made by New.
type Computer struct {
	tunnel *tunnel.Tunnel
	Close  func()
}

// New connects a computer to its auth host until the test is over.
func New(t testing.TB, auth controlapi.Relay, roots *x509.CertPool, credential string) *Computer {
	t.Helper()
	way, err := tunnel.New(tunnel.Config{
		Relays: func() []controlapi.Relay { return nil }, Last: auth, RootCAs: roots,
		Credential: func() string { return credential },
		Open:       func() bool { return false }, Opened: new(broadcast.Signal).Subscribe,
	})
	programs.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- way.Run(ctx) }()
	c := &Computer{tunnel: way, Close: sync.OnceFunc(func() { cancel(); <-ended })}
	t.Cleanup(c.Close)
	return c
}

// Next waits for the snapshot of another version than the computer has, or why it is told
// none.
func (c *Computer) Next(ctx context.Context, version string) (next controlapi.Snapshot, err error) {
	for next.Version == "" && err == nil {
		err = c.tunnel.Sync(ctx, version, func(s controlapi.Snapshot) error {
			if !s.Unchanged {
				next = s
			}
			return nil
		})
	}
	return next, err
}

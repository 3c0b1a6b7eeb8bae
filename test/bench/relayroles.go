package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/relay"
	"porchlight/internal/broadcast"
)

// playRelay is the relay whole. Arguments: the directory with the certificate, and a
// profile to write or "".
func playRelay(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("want a directory and a profile")
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(args[0], "cert.pem"), filepath.Join(args[0], "key.pem"))
	if err != nil {
		return err
	}
	r, err := relay.New(relay.Config{
		AuthHost: authHost, TLS: &tls.Config{Certificates: []tls.Certificate{pair}}, Handler: http.NotFoundHandler(),
		Authenticate: func(context.Context, string) (controlapi.Computer, error) {
			return controlapi.Computer{ID: "bench", Host: rootHost}, nil
		},
		Sync:   func(string, netip.Addr, string, func([]byte) error, func(error)) func() { return func() {} }, // nothing is news
		Limits: relay.Limits{Visitors: 16384, VisitorsPerComputer: 16384, VisitorsPerSource: 16384},           // all visit one computer from here
	})
	if err != nil {
		return err
	}
	ln, err := relay.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	stop, err := startProfile(args[1])
	if err != nil {
		return err
	}
	defer stop()
	if err := announce(ready{Addr: ln.Addr().String()}); err != nil {
		return err
	}
	return r.Serve(ctx, ln)
}

// tunnelTo is the agent's side of one relay, or of two.
func tunnelTo(dir string, addrs ...string) (*tunnel.Tunnel, error) {
	certificate, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	var relays []controlapi.Relay
	for _, addr := range addrs {
		relays = append(relays, controlapi.Relay{Address: addr, ServerName: authHost})
	}
	return tunnel.New(tunnel.Config{
		Open: func() bool { return false }, Opened: new(broadcast.Signal).Subscribe,
		Relays:     func() []controlapi.Relay { return relays },
		Credential: func() string { return "bench" }, RootCAs: pool,
	})
}

func awaitConnected(ctx context.Context, t *tunnel.Tunnel) error {
	for {
		changes := t.Changes()
		if t.Connected() {
			return nil
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return fmt.Errorf("await the tunnel: %w", ctx.Err())
		}
	}
}

// playBehind is an app that speaks bytes, reached through a relay and, for the
// others, directly. Arguments: the directory with the certificate, the relay's
// address.
func playBehind(ctx context.Context, direct net.Listener, args []string) error {
	if len(args) != 2 {
		return errors.New("want a directory and a relay")
	}
	t, err := tunnelTo(args[0], args[1])
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.Run(ctx) })
	if err := awaitConnected(ctx, t); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { direct.Close() })
	for _, l := range []net.Listener{t.Listener(), direct} {
		g.Go(func() error {
			for {
				conn, err := l.Accept()
				if err != nil {
					return nil // it ends with us
				}
				go speakBytes(conn)
			}
		})
	}
	if err := announce(ready{Addr: direct.Addr().String()}); err != nil {
		return err
	}
	return g.Wait()
}

// speakBytes reads a ClientHello and answers one byte; then each message's first byte
// says what is wanted: 'b' and digits that many MiB, else its echo.
func speakBytes(conn net.Conn) {
	defer conn.Close()
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, conn, int64(head[3])<<8|int64(head[4])); err != nil {
		return
	}
	if _, err := conn.Write([]byte{'.'}); err != nil {
		return
	}
	var buf [256]byte
	var bulk []byte
	for {
		n, err := conn.Read(buf[:])
		if err != nil {
			return
		}
		if buf[0] != 'b' {
			if _, err := conn.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		mib, _ := strconv.Atoi(string(buf[1:n])) // ours, and right
		if bulk == nil {
			bulk = make([]byte, 1<<20)
		}
		for range mib {
			if _, err := conn.Write(bulk); err != nil {
				return
			}
		}
	}
}

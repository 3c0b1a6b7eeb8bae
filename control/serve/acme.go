package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"

	"porchlight/internal/acmeorder"
)

const (
	// orderWithin bounds one try to have a certificate issued; after a failure the
	// next is orderAgain later, then twice as long, up to orderSlowest: public
	// authorities allow few failures an hour.
	orderWithin  = 2 * time.Minute
	orderAgain   = time.Minute
	orderSlowest = time.Hour
)

// acme has the certificate of the auth host issued by an authority over ACME (RFC
// 8555), and renewed as long as run runs. The authority makes sure of the host by
// connecting to it through our own listener, so nothing else has to be reachable.
type acme struct {
	host      string
	dir       string // account, certificates and keys, 0700
	directory string // URL; empty means Let's Encrypt
	log       *slog.Logger

	ready chan struct{} // closed once magic is there
	magic *certmagic.Config
	has   atomic.Bool // the certificate is at hand
}

// acmeDir is where a data directory has what belongs to ACME. It is not backed
// up: all of it can be had again.
func acmeDir(dataDir string) string { return filepath.Join(dataDir, "acme") }

// config is for the relay. Handshakes wait for run to begin.
func (a *acme) config() *tls.Config {
	get := func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		select {
		case <-a.ready:
			return a.magic.GetCertificate(hello)
		case <-hello.Context().Done():
			return nil, hello.Context().Err()
		}
	}
	challenge := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{acmeorder.ChallengeALPN}, GetCertificate: get}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: get,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if acmeorder.IsChallenge(hello) {
				return challenge, nil
			}
			return nil, nil
		},
	}
}

// run orders the certificate, or finds it in the directory, and keeps it renewed
// until ctx is done.
func (a *acme) run(ctx context.Context) error {
	magic, cache, err := acmeorder.New(acmeorder.Config{
		Storage: &certmagic.FileStorage{Path: a.dir}, Directory: a.directory, OnEvent: a.note,
	})
	if err != nil {
		return err
	}
	defer cache.Stop()
	a.magic = magic
	close(a.ready)

	for wait := orderAgain; ; wait = min(2*wait, orderSlowest) {
		err := a.order(ctx)
		if err == nil {
			a.has.Store(true)
			a.log.Info("the certificate is at hand", "host", a.host)
			<-ctx.Done()
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		a.log.Error("no certificate could be had, so nobody can sign in and no agent connect", "host", a.host, "error", err, "again_in", wait.String())
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil
		}
	}
}

func (a *acme) order(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orderWithin)
	defer cancel()
	return a.magic.ManageSync(ctx, []string{a.host})
}

// note says what the library does by itself, which is renewing.
func (a *acme) note(_ context.Context, event string, data map[string]any) error {
	if renewal, _ := data["renewal"].(bool); !renewal {
		return nil
	}
	switch event {
	case "cert_obtained":
		a.log.Info("the certificate was renewed", "host", a.host)
	case "cert_failed":
		a.log.Error("the certificate could not be renewed; the old one still serves", "host", a.host, "error", data["error"])
	}
	return nil
}

// completeACME is the part of Config.Complete.
func (c *Config) completeACME() error {
	switch {
	case c.TLS != TLSACME && c.ACMEDirectory != "":
		return errors.New("--acme-directory belongs to --tls acme")
	case c.TLS != TLSACME:
		return nil
	case c.DataDir == "":
		return errors.New("certificates of --tls acme are kept in a data directory: give --data DIR too")
	case c.ACMEDirectory == "" && c.PublicPort != 443:
		return fmt.Errorf("a public authority looks at port 443, and visitors use %d: give --public-port 443 if that port leads here, or --tls files", c.PublicPort)
	}
	return nil
}

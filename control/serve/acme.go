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

	"porchlight/control/certstore"
	"porchlight/internal/acmeorder"
)

const (
	// orderWithin bounds one try to have a certificate issued; after a failure the
	// next is orderAgain later, then twice as long, up to orderSlowest: public
	// authorities allow few failures an hour.
	orderWithin  = 2 * time.Minute
	orderAgain   = time.Minute
	orderSlowest = time.Hour

	// challengesAtOnce bounds the authority's connections that are answered at a time:
	// where several nodes have the account, each may read the store. It comes from a
	// handful of places.
	challengesAtOnce = 16
)

// acme has the certificate of the auth host issued by an authority over ACME (RFC
// 8555), and renewed as long as run runs. The authority makes sure of the host by
// connecting to it through our own listener, so nothing else has to be reachable.
type acme struct {
	host      string
	dir       string             // account, certificates and keys, 0700
	shared    *certstore.Storage // what all nodes have of these, in place of dir; nil without a key that seals
	directory string             // URL; empty means Let's Encrypt
	log       *slog.Logger

	ready chan struct{} // closed once magic is there
	magic *certmagic.Config
	cache *certmagic.Cache
	has   atomic.Bool // the certificate is at hand
}

// acmeDir is where a data directory has what belongs to ACME. It is not backed
// up: all of it can be had again.
func acmeDir(dataDir string) string { return filepath.Join(dataDir, "acme") }

// sealedDir is where a node has its sealed copy of what the store has of ACME.
func sealedDir(dataDir string) string { return filepath.Join(dataDir, "acme-sealed") }

// openACME prepares what acme needs. The store is open.
func (n *Node) openACME(ctx context.Context) error {
	n.acme = &acme{
		host: n.cfg.AuthHost, dir: acmeDir(n.cfg.DataDir), directory: n.cfg.ACMEDirectory,
		log: n.cfg.Log.With("part", "certs"), ready: make(chan struct{}),
	}
	if n.cfg.SealKey == "" {
		return nil
	}
	keys, err := certstore.ReadKeys(n.cfg.SealKey)
	if err != nil {
		return err
	}
	n.acme.shared, err = certstore.Open(ctx, certstore.Config{
		Store: n.store, Keys: keys, Dir: sealedDir(n.cfg.DataDir), Files: n.acme.dir, Log: n.acme.log,
	})
	return err
}

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
	places := make(chan struct{}, challengesAtOnce)
	getChallenge := func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			return get(hello)
		case <-hello.Context().Done():
			return nil, hello.Context().Err()
		}
	}
	challenge := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{acmeorder.ChallengeALPN}, GetCertificate: getChallenge}
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
	cfg := acmeorder.Config{Storage: &certmagic.FileStorage{Path: a.dir}, Directory: a.directory, OnEvent: a.note}
	if a.shared != nil {
		cfg.Storage, cfg.Copy = a.shared, a.shared.Copy()
	}
	magic, cache, err := acmeorder.New(cfg)
	if err != nil {
		return err
	}
	defer cache.Stop()
	a.magic, a.cache = magic, cache
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
		if a.has.Load() {
			a.log.Error("the certificate could not be looked after; the one at hand serves", "host", a.host, "err", err, "again_in", wait.String())
		} else {
			a.log.Error("no certificate could be had, so nobody can sign in and no agent connect", "host", a.host, "err", err, "again_in", wait.String())
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// ends is when the certificate at hand ends; zero where there is none.
func (a *acme) ends() (ends time.Time) {
	select {
	case <-a.ready:
	default:
		return ends
	}
	for _, cert := range a.cache.AllMatchingCertificates(a.host) {
		if cert.Leaf != nil && cert.Leaf.NotAfter.After(ends) {
			ends = cert.Leaf.NotAfter
		}
	}
	return ends
}

func (a *acme) order(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orderWithin)
	defer cancel()
	if a.shared != nil {
		if err := a.shared.Prepare(ctx); err != nil {
			a.serveCopy(ctx)
			return err
		}
	}
	return a.magic.ManageSync(ctx, []string{a.host})
}

// serveCopy serves what this node has of its own, and orders nothing: what the nodes
// have in the store is not known.
func (a *acme) serveCopy(ctx context.Context) {
	cert, err := a.magic.CacheManagedCertificate(ctx, a.host)
	a.has.Store(err == nil && !cert.Expired())
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
		a.log.Error("the certificate could not be renewed; the old one still serves", "host", a.host, "err", data["error"])
	}
	return nil
}

// completeACME is the part of Config.Complete.
func (c *Config) completeACME() error {
	switch {
	case c.TLS != TLSACME && c.ACMEDirectory != "":
		return errors.New("--acme-directory belongs to --tls acme")
	case c.TLS != TLSACME && c.SealKey != "":
		return errors.New("--seal-key belongs to --tls acme: it seals what that keeps in the store")
	case c.TLS != TLSACME:
		return nil
	case c.DataDir == "":
		return errors.New("certificates of --tls acme are kept in a data directory: give --data DIR too")
	case c.ACMEDirectory == "" && c.PublicPort != 443:
		return fmt.Errorf("a public authority looks at port 443, and visitors use %d: give --public-port 443 if that port leads here, or --tls files", c.PublicPort)
	}
	return nil
}

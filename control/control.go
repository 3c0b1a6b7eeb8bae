// Package control is the control plane's domain: accounts, computers, who may
// reach which computer, signing in by mail, and the codes that take a visitor's
// browser to an app. It is written once, above kv.Store, and knows nothing of
// HTTP; package web puts pages and the agent interface in front of it.
//
// What comes in is checked here, or was parsed by a function of this package before
// (Visits.Parse, Knocks.ParseDoor, ParseEmail for SignIn.Begin); what goes out is a
// value or a *controlapi.Error whose message can be shown to a person.
// Every change that an agent has to hear of goes through core.update, which
// raises the version of the computers it touched and wakes their waiting syncs.
//
// Secrets (device credentials, links, codes, sessions, tokens) are made here, handed out
// once, and stored only as hashes.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control/clientdoc"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/control/feed"
)

// Service is a control plane's domain. It is safe for concurrent use, and so is
// each of its parts.
type Service struct {
	Naming
	Accounts    *Accounts
	SignIn      *SignIn
	Sessions    *Sessions
	Computers   *Computers
	Enrolment   *Enrolment
	Agents      *Agents
	People      *People
	Visits      *Visits
	Clients     *Clients
	Grants      *Grants
	Passwords   *Passwords
	Passkeys    *Passkeys
	Providers   *Providers
	Recovery    *Recovery
	Knocks      *Knocks
	Keys        *Keys
	Suspensions *Suspensions
	Operators   *Operators
	AdminTokens *AdminTokens
	Overview    *Overview
	Usage       *Usage
	Domains     *Domains
	Challenges  *Challenges

	*core
}

// Sweeping removes rows whose time is over; they are unreadable long before.
const (
	sweepEvery = 5 * time.Minute
	sweepBatch = 1000
	// lastUsage is how long the last numbers of computers may take when Run ends.
	lastUsage = 5 * time.Second
)

// New opens the domain above cfg.Store, making the signing key when there is
// none yet. It starts nothing; call Run.
func New(cfg Config) (*Service, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("control: no store given")
	case cfg.Mail == nil:
		return nil, errors.New("control: no mail queue given")
	}
	if err := cfg.Naming.check(); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Fetch == nil {
		cfg.Fetch = clientdoc.NewFetcher().Get
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &core{
		cfg:   cfg,
		store: cfg.Store,
		now:   cfg.Now,
		log:   cfg.Log,
		pace:  newPace(),

		endsWake:  make(chan struct{}, 1),
		endedWake: make(chan struct{}, 1),
	}
	keys, clients := &Keys{s}, &Clients{s, newProvers()}
	agents := &Agents{core: s, keys: keys, devices: feed.NewPace(s.now), sweepVersions: sweepVersionsEvery}
	s.Feed = feed.New(feed.Config{
		First: agents.firstSnapshot, Again: agents.nextSnapshot, Ended: agents.endedCredentials, WriteSeen: agents.writeSeen,
		Now: s.now, Log: s.log,
	})
	ring, err := s.loadKeys(context.Background())
	if err != nil {
		return nil, fmt.Errorf("control: reading the keys: %w", err)
	}
	s.keyRing.Store(ring)
	line, err := s.loadLine(context.Background())
	if err != nil {
		return nil, fmt.Errorf("control: reading the line of changes: %w", err)
	}
	s.line.Store(&line)
	relying, err := cfg.relyingParty()
	if err != nil {
		s.log.Warn("passkeys are not offered", "err", err)
	}
	domains := newDomains(s)
	signIn := &SignIn{core: s, keys: keys, attempts: make(chan attempt, 256)}
	return &Service{
		Naming:      cfg.Naming,
		Accounts:    &Accounts{s},
		SignIn:      signIn,
		Sessions:    &Sessions{s},
		Computers:   &Computers{s},
		Enrolment:   &Enrolment{s},
		Agents:      agents,
		People:      &People{s},
		Visits:      &Visits{s, domains},
		Clients:     clients,
		Grants:      &Grants{core: s, clients: clients},
		Passwords:   &Passwords{s},
		Passkeys:    &Passkeys{s, keys, relying},
		Providers:   &Providers{s, keys, signIn},
		Recovery:    &Recovery{s, signIn},
		Knocks:      &Knocks{s},
		Keys:        keys,
		Suspensions: &Suspensions{s},
		Operators:   &Operators{s},
		AdminTokens: &AdminTokens{s},
		Overview:    &Overview{s},
		Usage:       &Usage{core: s},
		Domains:     domains,
		Challenges:  &Challenges{s, make(chan struct{}, mostChallengeLooks)},
		core:        s,
	}, nil
}

// Run does what is not anybody's request: it writes the mails of sign-ins, delivers
// mail, notes when computers were seen, ends the shares whose time has come, lets
// recoveries take effect, writes what computers carried, makes indexes, sweeps expired rows and, on a shared store, looks for other nodes' changes. It blocks until
// ctx is done, and then until the mails of the sign-ins answered so far are written;
// later ones are refused. Waiting syncs are answered. It may be called once.
func (s *Service) Run(ctx context.Context) error {
	defer s.Feed.Drain()
	g, ctx := errgroup.WithContext(ctx)
	for range signInWorkers {
		g.Go(func() error { return s.SignIn.run(ctx) })
	}
	g.Go(func() error {
		return repeat(ctx, sweepEvery, func(ctx context.Context) { s.Recovery.due(ctx); s.Usage.flush(ctx); s.sweep(ctx) })
	})
	g.Go(func() error { return s.makeIndexes(ctx) })
	g.Go(func() error { return s.People.runEnds(ctx) })
	g.Go(func() error { return s.Domains.run(ctx) })
	g.Go(func() error { return s.Challenges.run(ctx) })
	g.Go(func() error { return s.Feed.Seen.Run(ctx) })
	look := feed.LookEvery
	if !s.cfg.SharedStore {
		look = tunnelwire.BeatAsleep // a computer with a control plane of its own wakes up once for both
	}
	g.Go(func() error { return repeat(ctx, look, s.Feed.Look) })
	g.Go(func() error { return s.cfg.Mail.Run(ctx) })
	for _, p := range s.cfg.Providers {
		g.Go(func() error { return p.Run(ctx) })
	}
	if s.cfg.SharedStore {
		g.Go(func() error { return s.Agents.runVersionReader(ctx) })
		g.Go(func() error { return s.Agents.runEndedReader(ctx) })
	}
	err := g.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastUsage)
	defer cancel()
	s.Usage.flush(last)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// sweep deletes what has expired, in batches.
func (s *Service) sweep(ctx context.Context) {
	for {
		n, err := s.store.Sweep(ctx, sweepBatch)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("sweeping expired rows failed", "err", err)
		}
		if err != nil || n < sweepBatch {
			return
		}
	}
}

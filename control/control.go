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
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/control/kv"
	"porchlight/control/mail"
)

// Config of a Service. Store, Naming and Mail are required.
type Config struct {
	Store kv.Store
	Naming
	// Mail takes the mails this service writes, within the transaction that
	// caused them, and delivers them when Run is called.
	Mail mail.Queue
	// Relays are handed to every agent.
	Relays []controlapi.Relay
	// RelaysFor takes the place of Relays where it is given and answers with any:
	// the relays for the agent of one computer, of several nodes'. Feed.WakeAll is called
	// where it answers something else from now on.
	RelaysFor func(computerID string) []controlapi.Relay
	// OpenSignUp lets any address make an account by signing in. Without it an
	// address that has no account gets the same answer as one that has, and no
	// mail.
	OpenSignUp bool
	// MembersEnrol lets accounts that exist only because they were invited
	// connect computers of their own.
	MembersEnrol bool
	// OnCredentialEnded, if set, is called after a device credential has ended,
	// by this node or, on a shared store, by another: the tunnel it opened is to
	// end. It may be called from several goroutines, and once too often.
	OnCredentialEnded func(computerID string)
	// UpdateNotice is where agents are told that a newer version is there; nil for
	// nowhere.
	UpdateNotice *controlapi.UpdateNotice
	// Tell, if set, tells the other nodes, for their Agents.Heard, that computers changed
	// or a mail was put. Missed says whether what others told may have been missed since
	// it was last asked. Neither may block.
	Tell   func(computers []string)
	Missed func() bool
	// SharedStore says that other nodes write to the same store, so that waiting
	// syncs have to look for their changes, and other nodes for those of this
	// process where it has no Tell: it leaves word of each in one row.
	SharedStore bool
	Now         func() time.Time
	Log         *slog.Logger
}

// Service is a control plane's domain. It is safe for concurrent use, and so is
// each of its parts.
type Service struct {
	Naming
	Accounts  *Accounts
	SignIn    *SignIn
	Sessions  *Sessions
	Computers *Computers
	Enrolment *Enrolment
	Agents    *Agents
	People    *People
	Visits    *Visits
	Clients   *Clients
	Grants    *Grants
	Passwords *Passwords
	Knocks    *Knocks
	Keys      *Keys

	*core
}

// core is what the parts share: the store, and what this process remembers.
type core struct {
	cfg     Config
	store   kv.Store
	now     func() time.Time
	log     *slog.Logger
	keyRing atomic.Pointer[keyRing]
	line    atomic.Pointer[string] // see keyLine; follows the row while this runs
	// Feed tells the agents of computers what concerns them.
	Feed *feed.Feed
	// endedHere are the endings of credentials this node told of itself, on a
	// shared store: endedEvent, true.
	endedHere sync.Map
	pace      *pace         // what one node remembers of the budgets
	endsWake  chan struct{} // there is an end to look at
	endedWake chan struct{} // another node may have ended a credential
}

// Sweeping removes rows whose time is over; they are unreadable long before.
const (
	sweepEvery = 5 * time.Minute
	sweepBatch = 1000
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
	keys, clients := &Keys{s}, &Clients{s}
	agents := &Agents{core: s, keys: keys, devices: feed.NewPace(s.now), sweepVersions: sweepVersionsEvery}
	s.Feed = feed.New(feed.Config{
		First: agents.first, Again: agents.again, Ended: agents.ended, WriteSeen: agents.writeSeen,
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
	sessions, computers, people := &Sessions{s}, &Computers{s}, &People{s}
	return &Service{
		Naming:    cfg.Naming,
		Accounts:  &Accounts{s, sessions, computers, people},
		SignIn:    &SignIn{core: s, keys: keys, attempts: make(chan attempt, 256)},
		Sessions:  sessions,
		Computers: computers,
		Enrolment: &Enrolment{s},
		Agents:    agents,
		People:    people,
		Visits:    &Visits{s},
		Clients:   clients,
		Grants:    &Grants{core: s, clients: clients},
		Passwords: &Passwords{s},
		Knocks:    &Knocks{s},
		Keys:      keys,
		core:      s,
	}, nil
}

// Run does what is not anybody's request: it writes the mails of sign-ins, delivers
// mail, notes when computers were seen, ends the shares whose time has come, sweeps
// expired rows and, on a shared store, looks for other nodes' changes. It blocks until
// ctx is done, and then until the mails of the sign-ins answered so far are written;
// later ones are refused. Waiting syncs are answered. It may be called once.
func (s *Service) Run(ctx context.Context) error {
	defer s.Feed.Drain()
	g, ctx := errgroup.WithContext(ctx)
	for range signInWorkers {
		g.Go(func() error { return s.SignIn.run(ctx) })
	}
	g.Go(func() error { return repeat(ctx, sweepEvery, s.sweep) })
	g.Go(func() error { return s.People.runEnds(ctx) })
	g.Go(func() error { return s.Feed.Seen.Run(ctx) })
	g.Go(func() error { return repeat(ctx, feed.LookEvery, s.Feed.Look) })
	g.Go(func() error { return s.cfg.Mail.Run(ctx) })
	if s.cfg.SharedStore {
		g.Go(func() error { return s.Agents.runVersionReader(ctx) })
		g.Go(func() error { return s.Agents.runEndedReader(ctx) })
	}
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// repeat calls do every so often until ctx ends.
func repeat(ctx context.Context, every time.Duration, do func(context.Context)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			do(ctx)
		}
	}
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

// refuse makes an error a person may read.
func refuse(code, sentence string) error {
	return &controlapi.Error{Code: code, Message: sentence}
}

// IsRefusal says whether err is a refusal with the given code of controlapi.
func IsRefusal(err error, code string) bool {
	var e *controlapi.Error
	return errors.As(err, &e) && e.Code == code
}

// busySentence is for whoever the store has no room for.
const busySentence = "The service has more to do than it can just now. Nothing was changed. Try again in a moment."

// awayFor is when to ask again after the answer that the store is away.
const awayFor = 5 * time.Second

// Away says whether err is of a store that passes: it does not answer, has no room, too many
// wait for it, or it is being closed. The refusal tells a person so.
func Away(err error) (refusal *controlapi.Error, away bool) {
	if busy, ok := errors.AsType[*kv.BusyError](err); ok {
		return &controlapi.Error{Code: controlapi.CodeUnavailable, Message: busySentence, RetryAfter: busy.RetryAfter}, true
	}
	sentence := "The service cannot get at its data just now. Nothing was changed. Try again in a moment."
	switch {
	case errors.Is(err, kv.ErrFull):
		sentence = "The service has no room to keep anything just now. Nothing was changed. Try again in a moment."
	case errors.Is(err, kv.ErrOutcomeUnknown):
		sentence = "The service lost its data store while it kept this. Look whether it was done before you try again."
	case !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrContended) && !errors.Is(err, kv.ErrClosed):
		return nil, false
	}
	return &controlapi.Error{Code: controlapi.CodeUnavailable, Message: sentence, RetryAfter: awayFor}, true
}

// Package runner has an agent to ask: it runs one in this process, or attaches to that of
// another, waits for the owner secret, and tells what it hears. It shows nothing.
package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/internal/words"
)

// firstPartyApp is the appId the desktop's engine reports (GET /engine/info).
const firstPartyApp = "app.porchlight.desktop"

// askFor is long enough for a keychain that is open.
const askFor = 300 * time.Millisecond

// Runner runs the agent inside this process and listens to it. The desktop
// speaks to it over the owner tier's socket like any other client, and shows a
// secret like any other: no route is without one. Where another process
// serves the data directory already, the desktop listens to that one's agent
// instead, and takes over when it ends.
type Runner struct {
	Options
	// secrets is where the owner secret is kept, and inFile where when the owner chooses a
	// file, which they may where no keychain answers.
	secrets, inFile ownersecret.Store
	// keychain says whether secrets is one: the agent's own go there, too.
	make func(ctx context.Context, deskSecretHash, ownerSecretHash []byte, keychain bool) (*host.Host, error)
	dial func(socket, secret string) *agentapi.Client
	// other looks for the agent of another process; nil when there is none.
	other func(ctx context.Context) (*elsewhere, error)
	// locked looks whether the keychain is still locked without asking anybody
	// for its password: the first try did, and may have been dismissed.
	locked      func(ctx context.Context) bool
	unlockEvery time.Duration // between two looks
	askFor      time.Duration // how long the start waits for the keychain
}

// Options of New.
type Options struct {
	Log *slog.Logger
	// DataDir, API and HTTPS are as host.Config has them.
	DataDir, API, HTTPS string
	SecretFile          bool            // there is no keychain, or it is not to be asked
	Unlock              <-chan struct{} // has the keychain ask for its password again
	ChosenFile          <-chan struct{} // the owner chose to keep the secret in a file

	// OnStart is told that an agent serves: once, also where this process takes over from
	// another.
	OnStart func()
	// OnSecretless is told why there is no owner secret: ownersecret.ErrLocked or
	// ErrUnavailable. Only looking and taking away is possible until there is one.
	OnSecretless func(why error)
	OnClient     func(*agentapi.Client)    // the owner tier can be asked
	OnState      func(agentapi.OwnerState) // a snapshot; called from one goroutine
	// OnUnanswered is told whether another process's agent has stopped answering.
	OnUnanswered func(unanswered bool)
}

// New makes a Runner that has started nothing.
func New(o Options) *Runner {
	e := &Runner{
		Options:     o,
		secrets:     ownersecret.Keychain(o.DataDir),
		inFile:      ownersecret.File(o.DataDir),
		locked:      keychainLocked,
		unlockEvery: 2 * time.Second,
		askFor:      askFor,
		make: func(ctx context.Context, desk, hash []byte, keychain bool) (*host.Host, error) {
			return host.New(ctx, host.Config{
				DataDir: o.DataDir, API: o.API, Local: true, HTTPS: o.HTTPS,
				Mode: agentapi.ModeDesktop, FirstPartyApp: firstPartyApp,
				OwnerSecretHash: hash, DeskSecretHash: desk, Keychain: keychain, Log: o.Log,
			})
		},
		dial:  agentapi.NewOwner,
		other: func(ctx context.Context) (*elsewhere, error) { return findElsewhere(ctx, o.DataDir, o.API) },
	}
	if o.SecretFile {
		e.secrets = e.inFile
		o.Log.Info("the owner secret is kept in a file, as asked for")
	}
	return e
}

// Run serves until ctx ends, and then drains. An error is a sentence for the
// owner, about a start that failed or an agent that stopped by itself.
func (e *Runner) Run(ctx context.Context) error {
	e.OnStart = sync.OnceFunc(e.OnStart)
	there, err := e.other(ctx)
	for there != nil && err == nil {
		e.Log.Info("another process serves this data directory already; the menu bar attaches to it")
		e.attach(ctx, *there)
		there, err = e.other(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	return e.runOwn(ctx)
}

// attach listens to another process's agent until that has ended, or ctx.
func (e *Runner) attach(ctx context.Context, there elsewhere) {
	listening, stop := context.WithCancel(ctx)
	defer stop()
	c := e.dial(there.socket, there.secret)
	e.OnStart()
	e.OnClient(c)
	watched := make(chan struct{})
	go func() { defer close(watched); watch(listening, c.EngineInfo, e.OnUnanswered) }()
	defer func() { stop(); <-watched }()
	e.listen(listening, c, func() {
		if now, err := e.other(ctx); err != nil || now == nil || *now != there {
			stop()
		}
	})
}

// runOwn is run with an agent of this process. The agent does not wait for the
// keychain: until that gives the owner secret, the menu bar shows a secret of its
// own, which is in no file and ends with the process, and with which it can look
// and take away.
func (e *Runner) runOwn(ctx context.Context) error {
	own := ownersecret.New()
	asked := e.ask(ctx)
	var known answer
	select {
	case known = <-asked:
		asked = nil
	case <-time.After(e.askFor):
		known.err = ownersecret.ErrLocked
	case <-ctx.Done():
		return nil
	}
	if known.err != nil && secretless(known.err) == nil {
		return known.err
	}
	agent, err := e.make(ctx, ownersecret.Hash(own), hashOf(known.secret), e.secrets != e.inFile)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	if err != nil {
		return words.Errorf("Porchlight cannot start: %w", err)
	}
	return e.serve(ctx, agent, own, known, asked)
}

// hashOf is nil of a secret that is not known.
func hashOf(secret string) []byte {
	if secret == "" {
		return nil
	}
	return ownersecret.Hash(secret)
}

// serve runs an agent of this process until ctx ends, or it ends by itself. Known is
// what the keychain said, and asked where it will say more.
func (e *Runner) serve(ctx context.Context, agent *host.Host, own string, known answer, asked <-chan answer) error {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { defer stop(); ended <- agent.Run(running) }()
	var noSecret error
	select {
	case <-agent.Ready():
		noSecret = e.accompany(running, agent, own, known, asked)
	case <-running.Done():
	}
	stop()
	err := <-ended
	switch {
	case noSecret != nil:
		return errors.Join(noSecret, err)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return words.Errorf("Porchlight did not stop cleanly: %w", err)
	}
	return words.Errorf("Porchlight stopped: %w", err)
}

// accompany listens to an agent while it runs, and tells it of the owner secret once
// that is known. It returns when ctx ends, or the secret cannot be had for good.
func (e *Runner) accompany(ctx context.Context, agent *host.Host, own string, known answer, asked <-chan answer) error {
	e.OnStart()
	c := e.dial(agent.OwnerSocket(), cmp.Or(known.secret, own))
	e.OnClient(c)
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	listening.Go(func() { e.listen(ctx, c, func() {}) })
	if known.err != nil {
		known = e.awaitSecret(ctx, known.err, asked)
		switch {
		case known.err != nil:
			return known.err
		case known.secret != "":
			agent.SetOwnerSecret(ownersecret.Hash(known.secret), e.secrets != e.inFile)
			e.OnClient(e.dial(agent.OwnerSocket(), known.secret))
		}
	}
	<-ctx.Done()
	return nil
}

// listen follows the agent's event stream, again whenever it ends; lost is
// called in between.
func (e *Runner) listen(ctx context.Context, c *agentapi.Client, lost func()) {
	const least, most = 100 * time.Millisecond, 5 * time.Second
	wait := least
	for ctx.Err() == nil {
		err := c.Events(ctx, func(s agentapi.OwnerState) { wait = least; e.OnState(s) })
		if ctx.Err() != nil {
			return
		}
		e.Log.Info("the agent's events ended", "err", err)
		lost()
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, most)
	}
}

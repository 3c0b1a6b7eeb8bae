package desktop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/export"
	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/internal/words"
)

// askFor is long enough for a keychain that is open.
const askFor = 300 * time.Millisecond

// client is the owner tier of the agent, as the desktop uses it.
type client interface {
	prober
	export.Source
	Events(ctx context.Context, fn func(agentapi.OwnerState)) error
	// Call is any request, for the window.
	Call(ctx context.Context, method, path string, body any) (json.RawMessage, error)

	ApproveSeen(ctx context.Context, name string, seen agentapi.Seen) (agentapi.Approved, error)
	ApproveAlone(ctx context.Context, name string, seen agentapi.Seen) (agentapi.Approved, error)
	Deny(ctx context.Context, name string) (agentapi.Denied, error)
	Open(ctx context.Context, name string) (agentapi.OpenLink, error)
	Pause(ctx context.Context, name string) (agentapi.Closed, error)
	Resume(ctx context.Context, name string) error
	Revoke(ctx context.Context, name string) (agentapi.Closed, error)
	RevokeGrant(ctx context.Context, id string) (agentapi.Closed, error)
	GoDark(ctx context.Context) (agentapi.Closed, error)
	LightUp(ctx context.Context) error
	UndoNotice(ctx context.Context, id uint64) error
	SettleHeld(ctx context.Context, h agentapi.HeldChange) error
	UndoHeld(ctx context.Context, h agentapi.HeldChange) (agentapi.PersonChanged, error)
	Remove(ctx context.Context, accountID string) (agentapi.PersonChanged, error)
	RemoveHeld(ctx context.Context, r agentapi.RemoveRequest) (agentapi.PersonChanged, error)
	SetAccess(ctx context.Context, r agentapi.AccessRequest) (agentapi.PersonChanged, error)
	Visitors(ctx context.Context) ([]agentapi.Visitor, error)
	DisconnectVisitor(ctx context.Context, d agentapi.DisconnectRequest) (agentapi.Closed, error)
	AnswerKnock(ctx context.Context, id, answer string) (agentapi.KnockAnswered, error)
	Listening(ctx context.Context) ([]agentapi.Listening, error)
	AllowUser(ctx context.Context, id string) (agentapi.LocalUser, error)
	DenyUser(ctx context.Context, id string) (agentapi.LocalUser, error)
}

// agentRunner runs the agent inside this process and listens to it. The desktop
// speaks to it over the owner tier's socket like any other client, and shows a
// secret like any other: no route is without one. Where another process
// serves the data directory already, the desktop listens to that one's agent
// instead, and takes over when it ends.
type agentRunner struct {
	log     *slog.Logger
	secrets ownersecret.Store
	// keychain says whether secrets is one: the agent's own go there, too.
	make func(ctx context.Context, deskSecretHash, ownerSecretHash []byte, keychain bool) (*host.Host, error)
	dial func(socket, secret string) client
	// other looks for the agent of another process; nil when there is none.
	other func(ctx context.Context) (*elsewhere, error)

	// locked looks whether the keychain is still locked without asking anybody
	// for its password: the first try did, and may have been dismissed.
	locked      func(ctx context.Context) bool
	unlockEvery time.Duration // between two looks
	askFor      time.Duration // how long the start waits for the keychain
	// unlock has the keychain ask for its password again.
	unlock <-chan struct{}
	// inFile is where the secret is kept when the owner chooses that, which they
	// may where no keychain answers.
	inFile     ownersecret.Store
	chosenFile <-chan struct{}

	probeEvery, probeFor time.Duration // see watch

	// onStart is told that an agent serves: once, also where this process takes over from
	// another.
	onStart func()
	// onSecretless is told why there is no owner secret: ownersecret.ErrLocked or
	// ErrUnavailable. Only looking and taking away is possible until there is one.
	onSecretless func(why error)
	onClient     func(client)              // the owner tier can be asked
	onState      func(agentapi.OwnerState) // a snapshot; called from one goroutine
	// onUnanswered is told whether another process's agent has stopped answering.
	onUnanswered func(unanswered bool)
}

// elsewhere is an agent in another process.
type elsewhere struct{ socket, secret string }

// run serves until ctx ends, and then drains. An error is a sentence for the
// owner, about a start that failed or an agent that stopped by itself.
func (e *agentRunner) run(ctx context.Context) error {
	e.onStart = sync.OnceFunc(e.onStart)
	there, err := e.other(ctx)
	for there != nil && err == nil {
		e.log.Info("another process serves this data directory already; the menu bar attaches to it")
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
func (e *agentRunner) attach(ctx context.Context, there elsewhere) {
	listening, stop := context.WithCancel(ctx)
	defer stop()
	c := e.dial(there.socket, there.secret)
	e.onStart()
	e.onClient(c)
	watched := make(chan struct{})
	go func() { defer close(watched); e.watch(listening, c) }()
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
func (e *agentRunner) runOwn(ctx context.Context) error {
	own, err := ownersecret.New()
	if err != nil {
		return words.Errorf("Porchlight cannot start: %w", err)
	}
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
func (e *agentRunner) serve(ctx context.Context, agent *host.Host, own string, known answer, asked <-chan answer) error {
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
func (e *agentRunner) accompany(ctx context.Context, agent *host.Host, own string, known answer, asked <-chan answer) error {
	e.onStart()
	c := e.dial(agent.OwnerSocket(), cmp.Or(known.secret, own))
	e.onClient(c)
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
			e.onClient(e.dial(agent.OwnerSocket(), known.secret))
		}
	}
	<-ctx.Done()
	return nil
}

// listen follows the agent's event stream, again whenever it ends; lost is
// called in between.
func (e *agentRunner) listen(ctx context.Context, c client, lost func()) {
	const least, most = 100 * time.Millisecond, 5 * time.Second
	wait := least
	for ctx.Err() == nil {
		err := c.Events(ctx, func(s agentapi.OwnerState) { wait = least; e.onState(s) })
		if ctx.Err() != nil {
			return
		}
		e.log.Info("the agent's events ended", "err", err)
		lost()
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, most)
	}
}

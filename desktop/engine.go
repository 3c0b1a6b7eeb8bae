package desktop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/desktop/ui"
)

const (
	// draining is how long the agent may take to finish what is under way.
	draining = 10 * time.Second
)

// client is the owner tier of the agent, as the desktop uses it.
type client interface {
	ui.Agent
	prober
	Events(ctx context.Context, fn func(agentapi.OwnerState)) error
	Open(ctx context.Context, name string) (agentapi.OpenLink, error)
}

// runningAgent is an agent in this process.
type runningAgent interface {
	OwnerSocket() string
	Done() <-chan struct{}
	Wait() error
	Close(ctx context.Context) error
}

// engine runs the agent inside this process and listens to it. The desktop
// speaks to it over the owner tier's socket like any other client: the agent
// gives nothing to code that merely shares its process. Where another process
// serves the data directory already, the desktop listens to that one's agent
// instead, and takes over when it ends.
type engine struct {
	log     *slog.Logger
	secrets ownersecret.Store
	// keychain says whether secrets is one: the agent's own go there, too.
	start func(ctx context.Context, ownerSecretHash []byte, keychain bool) (runningAgent, error)
	dial  func(socket, secret string) client
	// other looks for the agent of another process; nil when there is none.
	other func(ctx context.Context) (*elsewhere, error)

	// locked looks whether the keychain is still locked without asking anybody
	// for its password: the first try did, and may have been dismissed.
	locked      func(ctx context.Context) bool
	unlockEvery time.Duration // between two looks
	// inFile is where the secret is kept when the owner chooses that, which they
	// may where no keychain answers.
	inFile     ownersecret.Store
	chosenFile <-chan struct{}

	probeEvery, probeFor time.Duration // see watch

	onStart func() // the agent serves
	// onSecretless is told why there is no owner secret: ownersecret.ErrLocked or
	// ErrUnavailable. The owner tier is closed until there is one.
	onSecretless func(why error)
	onClient     func(client)              // the owner tier can be asked
	onState      func(agentapi.OwnerState) // a snapshot; called from one goroutine
	// onSilence is told whether another process's agent has stopped answering.
	onSilence func(silent bool)
}

// elsewhere is an agent in another process.
type elsewhere struct{ socket, secret string }

// run serves until ctx ends, and then drains. An error is a sentence for the
// owner, about a start that failed or an agent that stopped by itself.
func (e *engine) run(ctx context.Context) error {
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
func (e *engine) attach(ctx context.Context, there elsewhere) {
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

// runOwn is run with an agent of this process.
func (e *engine) runOwn(ctx context.Context) error {
	secret, err := e.ownerSecret(ctx)
	if ctx.Err() != nil {
		return nil
	}
	why := secretless(err)
	if err != nil && why == nil {
		return err
	}
	// Without the secret the apps are served all the same; only approving and
	// revoking wait.
	var hash []byte
	if why == nil {
		hash = ownersecret.Hash(secret)
	}
	agent, err := e.begin(ctx, hash)
	if err != nil {
		return err
	}
	e.onStart()
	if why != nil {
		secret, err = e.awaitSecret(ctx, agent, why)
		if err != nil {
			return errors.Join(err, e.end(agent))
		}
		if ctx.Err() == nil && secret != "" {
			// The hash is part of how an agent starts: a secret cannot be swapped
			// under a running one.
			if err := e.end(agent); err != nil {
				return err
			}
			if agent, err = e.begin(ctx, ownersecret.Hash(secret)); err != nil {
				return err
			}
		}
	}
	if secret != "" {
		listening, stop := context.WithCancel(ctx)
		listened := make(chan struct{})
		go func() {
			defer close(listened)
			c := e.dial(agent.OwnerSocket(), secret)
			e.onClient(c)
			e.listen(listening, c, func() {})
		}()
		defer func() { stop(); <-listened }()
	}
	select {
	case <-ctx.Done():
		return e.end(agent)
	case <-agent.Done():
		if err := agent.Wait(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("Porchlight stopped: %w", err)
		}
		return nil
	}
}

func (e *engine) begin(ctx context.Context, hash []byte) (runningAgent, error) {
	// Not ended by ctx but by end, which lets it drain.
	agent, err := e.start(context.WithoutCancel(ctx), hash, e.secrets != e.inFile)
	if err != nil {
		return nil, fmt.Errorf("Porchlight cannot start: %w", err)
	}
	return agent, nil
}

func (e *engine) end(agent runningAgent) error {
	ctx, cancel := context.WithTimeout(context.Background(), draining)
	defer cancel()
	if err := agent.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("Porchlight did not stop cleanly: %w", err)
	}
	return nil
}

// listen follows the agent's event stream, again whenever it ends; lost is
// called in between.
func (e *engine) listen(ctx context.Context, c client, lost func()) {
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

// ownerSecret reads the owner secret, and makes it at the first start.
func (e *engine) ownerSecret(ctx context.Context) (string, error) {
	secret, err := ownersecret.Ensure(ctx, e.secrets)
	if err == nil || secretless(err) != nil || ctx.Err() != nil {
		return secret, err
	}
	return "", fmt.Errorf("Porchlight has no owner secret: %w", err)
}

// secretless is why there is no secret where that may change while the owner
// waits, and nil for every other error.
func secretless(err error) error {
	for _, why := range []error{ownersecret.ErrLocked, ownersecret.ErrUnavailable} {
		if errors.Is(err, why) {
			return why
		}
	}
	return nil
}

// awaitSecret waits until the keychain gives the secret, or the owner chooses to
// keep it in a file. It returns "" when ctx or the agent ended first.
func (e *engine) awaitSecret(ctx context.Context, agent runningAgent, why error) (string, error) {
	e.onSecretless(why)
	tick := time.NewTicker(e.unlockEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", nil
		case <-agent.Done():
			return "", nil
		case <-e.chosenFile:
			e.secrets = e.inFile
		case <-tick.C:
		}
		now := ownersecret.ErrLocked
		if e.secrets == e.inFile || !e.locked(ctx) {
			secret, err := e.ownerSecret(ctx)
			if ctx.Err() != nil {
				return "", nil
			}
			if now = secretless(err); now == nil {
				return secret, err
			}
		}
		if now != why {
			why = now
			e.onSecretless(why)
		}
	}
}

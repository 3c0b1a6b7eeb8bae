package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryStore is a keychain; err, while set, is what it answers.
type memoryStore struct {
	mu     sync.Mutex
	secret string
	err    error
	gets   int
}

func (m *memoryStore) fail(err error) { m.mu.Lock(); m.err = err; m.mu.Unlock() }

func (m *memoryStore) Get(context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	switch {
	case m.err != nil:
		return "", m.err
	case m.secret == "":
		return "", ownersecret.ErrNotFound
	}
	return m.secret, nil
}

func (m *memoryStore) Set(_ context.Context, secret string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.secret = secret
	return nil
}

func (m *memoryStore) Delete(context.Context) error { return nil }
func (m *memoryStore) Kind() string                 { return "memory" }

// made is an agent of the engine, and what it was made with.
type made struct {
	*host.Host
	desk, owner []byte // hashes of the secrets
}

// opens says whether a secret looks at the owner's state, and whether the owner's
// secret was known then.
func (m made) opens(t *testing.T, secret string) (looks, known bool) {
	t.Helper()
	state, err := agentapi.NewOwner(m.OwnerSocket(), secret).State(t.Context())
	if err != nil && agentapi.CodeOf(err) != agentapi.CodeForbidden {
		t.Fatal(err)
	}
	return err == nil, err == nil && !state.Locked
}

// serves says whether it answers.
func (m made) serves(t *testing.T) bool {
	t.Helper()
	_, err := agentapi.New(m.API()).Status(t.Context())
	if err != nil && !errors.Is(err, agentapi.ErrNotRunning) {
		t.Fatal(err)
	}
	return err == nil
}

var errBroken = errors.New("the stream broke")

// streaming is an agent whose streams of events have one state, and end when ended is
// closed.
func streaming(t *testing.T, mode agentapi.Mode, ended <-chan struct{}) *agentapi.Client {
	t.Helper()
	s := programs.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: %s\ndata: {\"seq\":1,\"mode\":%q}\n\n", agentapi.EventState, mode)
		w.(http.Flusher).Flush()
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	return agentapi.New(s.Listener.Addr().String())
}

// bench is an engine with everything around it replaced.
type bench struct {
	*Runner
	store   *memoryStore
	started chan made
	choose  chan struct{}
	unlock  chan struct{}
	without chan error
	clients chan elsewhere // as they were dialled
	states  chan agentapi.OwnerState
	result  chan error
	cancel  context.CancelFunc
}

func newBench(t *testing.T, store *memoryStore) *bench {
	t.Helper()
	dir, api := t.TempDir(), programs.FreeAddress(t) // where nobody else listens once it has ended
	ended := make(chan struct{})
	close(ended)
	broken := streaming(t, agentapi.ModeDesktop, ended)
	b := &bench{
		store:   store,
		started: make(chan made, 8),
		choose:  make(chan struct{}, 1),
		unlock:  make(chan struct{}, 1),
		without: make(chan error, 8),
		clients: make(chan elsewhere, 8),
		states:  make(chan agentapi.OwnerState, 64),
		result:  make(chan error, 1),
	}
	b.Runner = &Runner{
		Options: Options{
			Log: slog.New(slog.DiscardHandler), Unlock: b.unlock, ChosenFile: b.choose,
			OnUnanswered: func(bool) {},
			OnStart:      func() {},
			OnSecretless: func(why error) { b.without <- why },
			OnClient:     func(*agentapi.Client) {},
			OnState: func(s agentapi.OwnerState) {
				select {
				case b.states <- s:
				default:
				}
			},
		},
		secrets:     store,
		unlockEvery: time.Millisecond,
		locked: func(context.Context) bool {
			store.mu.Lock()
			defer store.mu.Unlock()
			return errors.Is(store.err, ownersecret.ErrLocked)
		},
		inFile: &memoryStore{},
		askFor: time.Minute,
		make: func(ctx context.Context, desk, owner []byte, keychain bool) (*host.Host, error) {
			h, err := host.New(ctx, host.Config{
				DataDir: dir, API: api, Mode: agentapi.ModeDesktop,
				OwnerSecretHash: owner, DeskSecretHash: desk, Keychain: keychain, Log: slog.New(slog.DiscardHandler),
			})
			if err == nil {
				b.started <- made{h, desk, owner}
			}
			return h, err
		},
		dial: func(socket, secret string) *agentapi.Client {
			b.clients <- elsewhere{socket, secret}
			return broken
		},
		other: func(context.Context) (*elsewhere, error) { return nil, nil },
	}
	return b
}

func (b *bench) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	ended := make(chan struct{})
	go func() { defer close(ended); b.result <- b.Runner.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}

func TestFirstStartMakesTheSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t, &memoryStore{})
	b.run(t)
	a, c := <-b.started, <-b.clients
	if c.secret == "" || c.secret != b.store.secret || !bytes.Equal(a.owner, ownersecret.Hash(c.secret)) {
		t.Errorf("client has %q, keychain %q, and the agent the hash of neither", c.secret, b.store.secret)
	}
	// A stream that breaks is taken up again.
	<-b.states
	<-b.states
	b.cancel()
	if err := <-b.result; err != nil {
		t.Error(err)
	}
	if a.serves(t) {
		t.Error("the agent was left running")
	}
}

// TestLockedKeychainServesAndWaits: the menu bar asks with a secret of its own, and
// with the owner's once there is one. Nothing is started again for it.
func TestLockedKeychainServesAndWaits(t *testing.T) {
	t.Parallel()
	store := &memoryStore{}
	store.fail(ownersecret.ErrLocked)
	b := newBench(t, store)
	b.run(t)
	a, c := <-b.started, <-b.clients
	if looks, known := a.opens(t, c.secret); c.secret == "" || !looks || known || a.owner != nil {
		t.Errorf("the menu bar looks: %v; the owner secret is known with the keychain locked: %v", looks, known)
	}
	<-b.states // it is followed already
	<-b.without
	store.mu.Lock()
	asked := store.gets
	store.mu.Unlock()
	if asked != 1 {
		t.Errorf("the keychain was asked %d times, each time a question on the screen", asked)
	}
	b.unlock <- struct{}{}
	for store.mu.Lock(); store.gets == 1; store.mu.Lock() {
		store.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	store.mu.Unlock()
	store.fail(nil)
	c2 := <-b.clients
	if _, known := a.opens(t, c2.secret); !known || c2.secret == c.secret {
		t.Error("the agent has another secret than the keychain")
	}
	select {
	case <-b.result:
		t.Error("the agent was stopped")
	case <-b.started:
		t.Error("another agent was started")
	default:
	}
}

// TestSlowKeychainHoldsNothingUp: the agent serves before the keychain answers.
func TestSlowKeychainHoldsNothingUp(t *testing.T) {
	t.Parallel()
	store := &memoryStore{}
	b := newBench(t, store)
	b.askFor = time.Millisecond
	b.Runner.locked = func(context.Context) bool { return true }
	store.mu.Lock() // no answer so far
	b.run(t)
	a, c := <-b.started, <-b.clients
	if a.owner != nil || !bytes.Equal(a.desk, ownersecret.Hash(c.secret)) {
		t.Error("the agent knows an owner secret that nobody told")
	}
	if why := <-b.without; !errors.Is(why, ownersecret.ErrLocked) {
		t.Errorf("told of %v", why)
	}
	store.mu.Unlock()
	if _, known := a.opens(t, (<-b.clients).secret); !known {
		t.Error("the agent has another secret than the keychain")
	}
}

// TestNoKeychain: the apps are served, and whichever comes first of a keychain and
// the owner's choice of a file opens the owner tier.
func TestNoKeychain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end      func(b *bench)
		keychain bool
	}{
		"a file is chosen":        {func(b *bench) { b.choose <- struct{}{} }, false},
		"a keychain comes":        {func(b *bench) { b.store.fail(nil) }, true},
		"a locked keychain comes": {func(b *bench) { b.store.fail(ownersecret.ErrLocked); <-b.without; b.store.fail(nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &memoryStore{}
			store.fail(fmt.Errorf("nothing answers: %w", ownersecret.ErrUnavailable))
			b := newBench(t, store)
			b.run(t)
			a := <-b.started
			if a.owner != nil {
				t.Error("the owner tier is open without a secret")
			}
			<-b.clients
			if why := <-b.without; !errors.Is(why, ownersecret.ErrUnavailable) {
				t.Errorf("told of %v", why)
			}
			c.end(b)
			client := <-b.clients
			kept := b.inFile.(*memoryStore)
			if c.keychain {
				kept = store
			}
			keychain := b.Runner.secrets != b.Runner.inFile
			if _, known := a.opens(t, client.secret); client.secret != kept.secret || !known || keychain != c.keychain {
				t.Errorf("client has %q, the store %q, the agent knows it: %v (keychain %v)", client.secret, kept.secret, known, keychain)
			}
		})
	}
}

func TestQuitWhileLocked(t *testing.T) {
	t.Parallel()
	store := &memoryStore{}
	store.fail(ownersecret.ErrLocked)
	b := newBench(t, store)
	b.run(t)
	a := <-b.started
	<-b.without
	b.cancel()
	if err := <-b.result; err != nil {
		t.Error(err)
	}
	if a.serves(t) {
		t.Error("the agent was left running")
	}
}

func TestStartsThatFail(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		store error
		start error
		want  string
	}{
		"broken keychain": {store: boom, want: "Porchlight has no owner secret: boom"},
		"busy port":       {start: boom, want: "Porchlight cannot start: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &memoryStore{err: c.store})
			if c.start != nil {
				b.make = func(context.Context, []byte, []byte, bool) (*host.Host, error) { return nil, c.start }
			}
			b.run(t)
			if err := <-b.result; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestAttachesToAnotherProcess: with a headless agent on the data directory the
// desktop starts none of its own, and takes over when that one has ended.
func TestAttachesToAnotherProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t, &memoryStore{})
	ended := make(chan struct{})
	b.other = func(context.Context) (*elsewhere, error) {
		select {
		case <-ended:
			return nil, nil
		default:
			return &elsewhere{socket: "theirs", secret: "their secret"}, nil
		}
	}
	dial := b.dial
	theirs := streaming(t, agentapi.ModeHeadless, ended)
	b.dial = func(socket, secret string) *agentapi.Client {
		broken := dial(socket, secret)
		if socket == "theirs" {
			return theirs
		}
		return broken
	}
	var starts atomic.Int32
	b.OnStart = func() { starts.Add(1) }
	b.run(t)
	if got := <-b.clients; got.secret != "their secret" {
		t.Errorf("attached with %+v", got)
	}
	if s := <-b.states; s.Mode != agentapi.ModeHeadless {
		t.Errorf("the state is that of a %s engine", s.Mode)
	}
	select {
	case <-b.started:
		t.Fatal("a second agent was started beside the other one")
	default:
	}
	close(ended)
	<-b.started
	<-b.clients
	b.cancel()
	if err := <-b.result; err != nil {
		t.Error(err)
	}
	// Weakness: a window that the owner had closed was shown again when it took over.
	if n := starts.Load(); n != 1 {
		t.Errorf("it started %d times", n)
	}
}

func TestCannotAttach(t *testing.T) {
	t.Parallel()
	b := newBench(t, &memoryStore{})
	b.other = func(context.Context) (*elsewhere, error) { return nil, errBroken }
	b.run(t)
	if err := <-b.result; !errors.Is(err, errBroken) {
		t.Errorf("err = %v", err)
	}
}

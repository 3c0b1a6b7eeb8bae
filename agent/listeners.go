package agent

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/localapi"
)

// Listeners are the two of the loopback API. An agent that is replaced by
// another in the same process, because the computer was connected to a control
// plane or taken off one, leaves them open: whoever calls meanwhile is not
// refused but answered a moment later, and neither the port nor the owner's
// socket can be taken by somebody else.
//
// They are safe for concurrent use.
type Listeners struct {
	dataDir, address string

	mu          sync.Mutex // protects what follows
	open, owner *lasting   // nil until an agent needed them
	socket      string
	announced   bool // DATA/agent.json names us
}

// NewListeners describes the listeners of a data directory; the first agent made
// with them opens them. Address is as Config.API. Call Close in the end.
func NewListeners(dataDir, address string) *Listeners {
	return &Listeners{dataDir: dataDir, address: address}
}

// listen opens them, unless they are open. The errors are sentences for the
// owner.
func (l *Listeners) listen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open != nil {
		return nil
	}
	open, err := localapi.ListenOpen(l.address)
	if err != nil {
		return err
	}
	owner, socket, err := localapi.ListenOwner(l.dataDir)
	if err != nil {
		return errors.Join(err, open.Close())
	}
	l.open, l.owner, l.socket = &lasting{Listener: open}, &lasting{Listener: owner}, socket
	return nil
}

// lease gives listeners whose Close stops their own Accept and leaves these
// open. The ones before must be closed, and nobody be in their Accept.
func (l *Listeners) lease() (open, owner net.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open.lease(), l.owner.lease()
}

// announce writes DATA/agent.json.
func (l *Listeners) announce() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.announced {
		return nil
	}
	err := agentapi.WriteRunning(l.dataDir, agentapi.Running{
		API:         l.open.Addr().String(),
		PID:         os.Getpid(),
		Protocol:    agentapi.Protocol,
		OwnerSocket: l.socket,
		StartedAt:   time.Now().UTC().Format(time.RFC3339),
	})
	l.announced = err == nil
	return err
}

// API is the address of the loopback API, host and port; OwnerSocket the path of
// the owner tier's unix socket. Both are empty until an agent was made.
func (l *Listeners) API() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		return ""
	}
	return l.open.Addr().String()
}

// OwnerSocket is described with API.
func (l *Listeners) OwnerSocket() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket
}

// Close closes them for good, once no agent uses them any more.
func (l *Listeners) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		return nil
	}
	l.open.shut()
	l.owner.shut()
	l.open, l.owner = nil, nil
	if !l.announced {
		return nil
	}
	l.announced = false
	return agentapi.RemoveRunning(l.dataDir)
}

// lasting is one listener that outlives who accepts from it.
type lasting struct {
	net.Listener

	mu   sync.Mutex // protects what follows
	kept []net.Conn // accepted for a lease that was over by then
}

func (l *lasting) lease() net.Listener {
	l.setDeadline(time.Time{})
	return &lease{from: l}
}

// setDeadline bounds the Accept under way too. Listeners of TCP and of unix
// sockets all have it.
func (l *lasting) setDeadline(t time.Time) {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		_ = d.SetDeadline(t) // fails on a listener that is closed, where Accept fails as well
	}
}

func (l *lasting) shut() {
	l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.kept {
		c.Close()
	}
	l.kept = nil
}

func (l *lasting) take() net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == 0 {
		return nil
	}
	c := l.kept[0]
	l.kept = l.kept[1:]
	return c
}

func (l *lasting) keep(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, c)
}

// lease is a listener for the time of one agent.
type lease struct {
	from *lasting

	mu   sync.Mutex // protects what follows
	over bool
}

// Accept returns the next connection, or net.ErrClosed after Close.
func (l *lease) Accept() (net.Conn, error) {
	if l.ended() {
		return nil, net.ErrClosed
	}
	if c := l.from.take(); c != nil {
		return c, nil
	}
	c, err := l.from.Accept()
	if !l.ended() {
		return c, err
	}
	if err == nil {
		l.from.keep(c)
	}
	return nil, net.ErrClosed
}

func (l *lease) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// Close ends the lease, and the Accept under way.
func (l *lease) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		l.from.setDeadline(time.Unix(1, 0))
	}
	return nil
}

func (l *lease) Addr() net.Addr { return l.from.Addr() }

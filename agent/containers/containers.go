// Package containers tells which container is behind a port of this computer, and which
// containers ask for an address by their labels.
//
// It asks one container engine, docker's or podman's, at the socket that the owner named, and
// nothing while they named none: whoever has that socket rules over this computer, as root
// where the engine is root's. Two things are asked, GET /_ping and GET /containers/json; what
// comes back is bounded, read once into values that are valid, and decides nothing: the engine
// of the apps does. Nothing here starts, stops or changes a container.
package containers

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

// lookEvery is how often containers are looked at for labels.
const lookEvery = 5 * time.Second

// Config of New. All of it is required but Every.
type Config struct {
	// Socket is where the container engine is; empty for nowhere.
	Socket func() string
	// Host is this computer's root host without a port; empty while it has none.
	Host func() string
	// Publish asks for an address in the name of a container, and Gone takes a request back.
	Publish func(context.Context, agentapi.Container, agentapi.PublishRequest) error
	Gone    func(ctx context.Context, name string, c agentapi.Container) error
	// Holder is the container that a name was approved for, nil for none, and its port; and
	// whether the owner is asked about something else in its place.
	Holder  func(name string) (c *agentapi.Container, port int, waits bool)
	Changes *broadcast.Signal // raised after the settings changed, among others
	Every   time.Duration     // lookEvery when 0
	Log     *slog.Logger
}

// Containers is made by New and safe for concurrent use.
type Containers struct {
	cfg Config
	now atomic.Pointer[seen] // nil before the first answer

	looking sync.Mutex // one look at a time
	last    look       // guarded by looking

	asking  map[string]claim      // by name; of Run alone
	told    map[string]words.Text // what is wrong with a container, by its id, or with the engine, by its socket; of Run alone
	trouble atomic.Pointer[agentapi.ContainersTrouble]
}

// seen is what runs by one answer of an engine. It is never changed.
type seen struct {
	socket  string
	all     []container
	byPlace map[netip.AddrPort]agentapi.Container
	byID    map[string]agentapi.Container
	// listened are the sockets that listened before the engine was asked: one that still
	// does belongs to who the answer says.
	listened map[uint64]bool
}

type look struct {
	socket string
	began  time.Time
	seen   *seen
	err    error
}

// New starts nothing.
func New(cfg Config) *Containers {
	cfg.Every = cmp.Or(cfg.Every, lookEvery)
	return &Containers{cfg: cfg, asking: map[string]claim{}, told: map[string]words.Text{}}
}

// look asks the engine. Who waited for another's look that began later takes that.
func (c *Containers) look(ctx context.Context, socket string) (*seen, error) {
	came := time.Now()
	c.looking.Lock()
	defer c.looking.Unlock()
	if c.last.began.After(came) && c.last.socket == socket {
		return c.last.seen, c.last.err
	}
	began := time.Now()
	now := &seen{socket: socket, listened: map[uint64]bool{}}
	for _, b := range procinfo.AllBound() {
		now.listened[b.Inode] = true
	}
	var err error
	if now.all, err = list(ctx, socket); err != nil {
		c.last = look{socket: socket, began: began, err: err}
		return nil, err
	}
	now.byPlace, now.byID = index(now.all)
	c.now.Store(now)
	c.last = look{socket: socket, began: began, seen: now}
	return now, nil
}

// Behind says which container takes connections at a place of this computer, 127.0.0.1 or
// [::1] and a port, by the socket that listens there, 0 where none is seen, and calls who
// listens by it. It is zero for none, and nil where that is not known. fresh has the engine
// asked where its last answer may be about another socket.
func (c *Containers) Behind(at netip.AddrPort, socket uint64, l *agentapi.Listener, fresh bool) *agentapi.Container {
	engine := c.cfg.Socket()
	if engine == "" {
		return nil
	}
	now := c.now.Load()
	if now != nil && now.socket != engine {
		now = nil
	}
	if fresh && (now == nil || socket == 0 || !now.listened[socket]) {
		now, _ = c.look(context.Background(), engine) // Run says what is wrong
	}
	forwarded := l.Program == "" || forwards[l.Program]
	if now == nil || socket != 0 && !now.listened[socket] {
		if forwarded {
			l.Program = "" // which of them it is for is not known yet
		}
		return nil
	}
	found, there := now.byPlace[at]
	if !forwarded {
		found, there = now.byID[procinfo.ContainerOf(l.PID)] // in the computer's own network
	}
	if there {
		l.Program = found.String()
	}
	return &found
}

// at is the container that an app on a port would be of: on 127.0.0.1, and else on [::1].
func (s *seen) at(port int) agentapi.Container {
	for _, address := range loopback {
		if found, ok := s.byPlace[netip.AddrPortFrom(address, uint16(port))]; ok {
			return found
		}
	}
	return agentapi.Container{}
}

// runsAt says whether one is there that a container's approval is for, at a port of it.
func (s *seen) runsAt(c agentapi.Container, port int) bool {
	return slices.ContainsFunc(s.all, func(one container) bool { return one.Same(c) && slices.Contains(one.ports, port) })
}

// Name is what a program at a place is called to the owner: by its container, where one is
// known to be behind it.
func (c *Containers) Name(at netip.AddrPort, p procinfo.Process, socket uint64) string {
	l := agentapi.Listener(p)
	if behind := c.Behind(at, socket, &l, false); behind == nil || *behind == (agentapi.Container{}) {
		return p.Program
	}
	return l.Program
}

// forwards are the programs that listen in place of a container.
var forwards = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(`docker-proxy rootlessport rootlesskit rootlesskit-docker-proxy
		pasta pasta.avx2 slirp4netns conmon gvproxy com.docker.backend vpnkit-bridge`) {
		all[name] = true
	}
	return all
}()

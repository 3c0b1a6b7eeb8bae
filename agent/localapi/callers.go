package localapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"golang.org/x/net/netutil"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/procinfo"
)

// The open tier answers every program of this computer; those of the agent's own user
// and of root count as the owner's. The system is asked once for each connection who
// is at the other end, and only where that matters.

const (
	// crowded is how many connections there are before it matters whose another
	// one is.
	crowded = 64
	// Of connections beyond that, a user may have maxConnsOfUser, and all other
	// users together maxConnsOfOthers: the owner's programs keep the rest.
	maxConnsOfUser   = 64
	maxConnsOfOthers = 192
)

// entry is the open tier's listener.
type entry struct {
	net.Listener
	last   *lastAccepted
	server *Server

	mu     sync.Mutex
	open   int            // guarded by mu
	others int            // guarded by mu: connections that count for a user
	byUser map[string]int // guarded by mu: by the system's id, of other users
}

func (s *Server) newEntry(l net.Listener) *entry {
	e := &entry{last: &lastAccepted{Listener: l}, server: s, byUser: map[string]int{}}
	e.Listener = netutil.LimitListener(e.last, maxConns)
	return e
}

// lastAccepted keeps the connection accepted last as it was before the limit wrapped
// it up.
type lastAccepted struct {
	net.Listener
	conn net.Conn // used only by the goroutine that accepts
}

func (l *lastAccepted) Accept() (c net.Conn, err error) {
	l.conn, err = l.Listener.Accept()
	return l.conn, err
}

// called is a connection of the open tier.
type called struct {
	net.Conn
	user  func() procinfo.Process // looks once
	leave func()                  // at most once
}

func (c *called) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// tooManyHere refuses a connection before it said anything, so it is written as
// the bytes it is.
const tooManyHere = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 5\r\nConnection: close\r\n\r\n" +
	`{"error":"Programs of your user have too many connections to Porchlight open. Close some of them and try again."}` + "\n"

// Accept turns away whom there is no room for.
func (l *entry) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		raw := l.last.conn
		conn := &called{Conn: c, user: sync.OnceValue(func() procinfo.Process { return l.userOf(raw) })}
		if l.enter(conn) {
			return conn, nil
		}
		_, _ = io.WriteString(c, tooManyHere) // the buffer is empty: it does not wait
		c.Close()
	}
}

// userOf is who is at the other end of c. Weakness: the system is asked about two
// addresses. A program that sends a request, closes the connection and keeps all other
// ports busy has the next connection of somebody else come from the same address. So
// the answer counts only if c is still open then.
func (l *entry) userOf(c net.Conn) procinfo.Process {
	user := l.server.userOf(ends(c))
	if !procinfo.Stands(c) {
		return procinfo.Process{}
	}
	return user
}

func (l *entry) enter(c *called) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts, user := false, ""
	if l.open >= crowded {
		if by := l.server.caller(c.user()); by.Stranger {
			counts, user = true, by.UserID
		}
	}
	if counts && (l.byUser[user] >= maxConnsOfUser || l.others >= maxConnsOfOthers) {
		return false
	}
	l.count(1, counts, user)
	c.leave = sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.count(-1, counts, user)
	})
	return true
}

// count is called with mu held.
func (l *entry) count(n int, counts bool, user string) {
	l.open += n
	if !counts {
		return
	}
	l.others += n
	if l.byUser[user] += n; l.byUser[user] == 0 {
		delete(l.byUser, user)
	}
}

// ends are the addresses of a connection, the caller's first; zero where they are
// not of TCP.
func ends(c net.Conn) (from, to netip.AddrPort) {
	theirs, ok := c.RemoteAddr().(*net.TCPAddr)
	ours, too := c.LocalAddr().(*net.TCPAddr)
	if !ok || !too {
		return from, to
	}
	return theirs.AddrPort(), ours.AddrPort()
}

// callerOf is who sent r. What came by the owner's socket is the owner's; a program of
// which nothing can be learnt counts as another user's.
func (a *API) callerOf(r *http.Request) engine.Caller { return a.server.caller(userOf(r)) }

// ownUser stands for the agent's own user on the owner's socket, where nobody
// else comes in.
var ownUser = procinfo.Process{User: "the owner", UserID: "own"}

func userOf(r *http.Request) procinfo.Process {
	switch c := r.Context().Value(connKey{}).(type) {
	case *called:
		return c.user()
	case net.Conn:
		if _, owner := c.LocalAddr().(*net.UnixAddr); owner {
			return ownUser
		}
	}
	return procinfo.Process{}
}

func (s *Server) caller(p procinfo.Process) engine.Caller {
	if p == ownUser || procinfo.Own(p.UserID) {
		return engine.Caller{}
	}
	api := s.current.Load()
	return engine.Caller{UserID: p.UserID, Stranger: api == nil || !api.cfg.Settings.Get().TrustEverybody}
}

// letIn refuses programs of users whom the owner has not let in, and has the
// owner asked.
func (a *API) letIn(r *http.Request, by engine.Caller) error {
	if !by.Stranger {
		return nil
	}
	name := userOf(r).User
	switch a.cfg.Users.Standing(by.UserID) {
	case agentapi.UserAllowed:
		return nil
	case agentapi.UserDenied:
		return forbidden("The owner of this Porchlight does not let programs of the user %s in. They can change that in its settings, or with: porchlight users allow %s", name, name)
	}
	if by.UserID == "" {
		return forbidden("Porchlight cannot tell which user of this computer this program belongs to, so it is not let in. Keep the connection open until it has answered, and try again.")
	}
	switch err := a.cfg.Users.Ask(by.UserID, name); {
	case errors.Is(err, engine.ErrManyAsk):
		return forbidden("This Porchlight belongs to another user of this computer, who has to answer about other users first, as many as can wait. Try again later.")
	case errors.Is(err, engine.ErrManyKept):
		return forbidden("This Porchlight belongs to another user of this computer, who has answered about as many other users as can be kept, and has to forget one first, in its settings, or with: porchlight users forget USER. Try again once they have.")
	case err != nil:
		return fmt.Errorf("ask the owner about a user: %w", err)
	}
	return forbidden("This Porchlight belongs to another user of this computer, who has been asked to let programs of the user %s in. Try again once they have.", name)
}

// peer is the process at the other end of the owner's socket; 0 where the system does
// not tell.
func peer(r *http.Request) int {
	if c, ok := r.Context().Value(connKey{}).(*owned); ok {
		return c.pid
	}
	return 0
}

// ownerEntry is the owner's socket, with a limit.
type ownerEntry struct {
	net.Listener
	last *lastAccepted
}

// owned is a connection of the owner's socket.
type owned struct {
	net.Conn
	pid int // at the other end; 0 where that is not known
}

func newOwnerEntry(l net.Listener) *ownerEntry {
	last := &lastAccepted{Listener: l}
	return &ownerEntry{netutil.LimitListener(last, maxConns), last}
}

func (l *ownerEntry) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &owned{Conn: c, pid: peerPID(l.last.conn)}, nil
}

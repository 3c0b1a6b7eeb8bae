package localapi

import (
	"net"
	"net/http"
	"os"
	"strconv"

	"golang.org/x/net/netutil"

	"porchlight/agent/agentapi"
)

// What the owner shares from a terminal.

func (a *API) port(r *http.Request) (any, error) {
	port, err := strconv.Atoi(r.PathValue("port"))
	if err != nil {
		return nil, nothingHere()
	}
	return a.cfg.Apps.PortSeen(r.Context(), port)
}

func (a *API) share(r *http.Request) (any, error) {
	f := readFields(r, "label", "localPort", "program", "user", "listening", "others", "keep")
	program, user := f.text("program"), f.text("user")
	s := agentapi.Share{Seen: agentapi.Seen{Label: f.text("label"), LocalPort: f.integer("localPort"), Program: &program, User: &user}}
	for name, set := range map[string]*bool{"listening": &s.Listening, "others": &s.Others, "keep": &s.Keep} {
		if f.has(name) {
			*set = f.truth(name)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	s.Menu = peer(r) == os.Getpid() // the menu bar's process is the agent's
	pub, err := a.cfg.Apps.Share(r.Context(), r.PathValue("name"), peer(r), s)
	if err != nil {
		return nil, err
	}
	a.announce(r.Context(), pub)
	return pub, nil
}

func (a *API) unshare(r *http.Request) (any, error) {
	return a.cfg.Apps.Unshare(r.Context(), r.PathValue("name"))
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
	conn := &owned{Conn: c}
	if raw, ok := l.last.conn.(*net.UnixConn); ok {
		conn.pid = peerPID(raw)
	}
	return conn, nil
}

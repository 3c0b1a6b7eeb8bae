package agent

import (
	"net"
	"os/user"
	"runtime"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/procinfo"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
)

// The address of the apps, and who listens on their ports.

// root is the address that everything is published under.
func (a *Agent) root() engine.Root {
	c := a.computer()
	return engine.Root{Name: c.Name, Host: c.Host}
}

// listenerUser is who listens where an app is, as quickly as the system tells it: the
// program too, where it was found before or comes with the user.
func listenerUser(target upstream.Target) (l agentapi.Listener, socket uint64) {
	if target.Socket != "" {
		return upstream.SocketOwner(target.Socket), 0
	}
	s := procinfo.ListenerSocket(target.IP(), target.Port)
	l = agentapi.Listener(s.Remembered())
	if s.Inode != 0 {
		return l, s.Inode
	}
	return l, uint64(l.PID) // where sockets have no numbers
}

// listener is who listens where an app is, with the program; last is the process that
// was there before, which is looked at first.
func listener(target upstream.Target, last int) agentapi.Listener {
	if target.Socket != "" {
		return upstream.SocketOwner(target.Socket)
	}
	return agentapi.Listener(procinfo.ListenerSocket(target.IP(), target.Port).Find(last))
}

// answersWithin is long enough for a program of this computer to take a
// connection; the system does that for one that is busy.
const answersWithin = 300 * time.Millisecond

// answers says whether anybody takes connections where an app is. At a socket nobody
// does whom listener does not name.
func answers(target upstream.Target) bool {
	if target.Socket != "" {
		return false
	}
	conn, err := net.DialTimeout("tcp", target.TCP(), answersWithin)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// listens is answers for many apps in a row: where the system says quickly who
// listens, nobody who does is troubled with a connection.
func listens(target upstream.Target) bool {
	if target.Socket != "" {
		return upstream.SocketOwner(target.Socket).UserID != ""
	}
	if runtime.GOOS != "darwin" && procinfo.ListenerSocket(target.IP(), target.Port).UserID != "" {
		return true
	}
	return answers(target)
}

// me is the user the agent runs as; zero when the system does not say.
func me() store.ListenerUser {
	u, err := user.Current()
	if err != nil {
		return store.ListenerUser{}
	}
	return store.ListenerUser{ID: u.Uid, Name: u.Username}
}

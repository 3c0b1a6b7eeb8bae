package agent

import (
	"net"
	"os/user"
	"runtime"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/procinfo"
	"porchlight/agent/proxy"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
)

// How the published apps look to the proxy, which carries visitors to them, and who
// listens on their ports.

// appLookup is the engine as the proxy sees it.
type appLookup struct{ *Agent }

func (l appLookup) Lookup(name string) (proxy.App, bool) {
	app, ok := l.apps.Lookup(name)
	return l.proxied(app), ok
}

func (a *Agent) liveApps() []proxy.App {
	var live []proxy.App
	for _, app := range a.apps.List() {
		if p := a.proxied(app); p.Live && !p.Paused {
			live = append(live, p)
		}
	}
	return live
}

// proxied is an app as the proxy sees it. One whose port has become ours is not
// reachable: its approval was for another program.
func (a *Agent) proxied(app engine.App) proxy.App {
	live := app.Status == agentapi.StatusLive && !slices.Contains(a.ownPorts, app.Port)
	return proxy.App{
		ID: app.ID, Name: app.Name, Label: app.Label, Port: app.Port, Address: app.Address, Key: app.Key, Live: live,
		Paused: app.Paused, Options: app.Options, Formers: app.Formers, User: app.User,
	}
}

// labels are the labels of the approved apps, by id.
func (a *Agent) labels() map[string]string {
	labels := map[string]string{}
	for _, app := range a.apps.Approved() {
		labels[app.ID] = app.Label
	}
	return labels
}

// listenerUser is who listens where an app is, as quickly as the system tells it: the
// program too, where it was found before or comes with the user.
func listenerUser(at upstream.Target) (l agentapi.Listener, socket uint64) {
	if at.Socket != "" {
		return upstream.SocketOwner(at.Socket), 0
	}
	s := procinfo.ListenerSocket(at.IP(), at.Port)
	l = agentapi.Listener(s.Remembered())
	if s.Inode != 0 {
		return l, s.Inode
	}
	return l, uint64(l.PID) // where sockets have no numbers
}

// listener is who listens where an app is, with the program; last is the process that
// was there before, which is looked at first.
func listener(at upstream.Target, last int) agentapi.Listener {
	if at.Socket != "" {
		return upstream.SocketOwner(at.Socket)
	}
	return agentapi.Listener(procinfo.ListenerSocket(at.IP(), at.Port).Find(last))
}

// answersWithin is long enough for a program of this computer to take a
// connection; the system does that for one that is busy.
const answersWithin = 300 * time.Millisecond

// answers says whether anybody takes connections where an app is. At a socket nobody
// does whom listener does not name.
func answers(at upstream.Target) bool {
	if at.Socket != "" {
		return false
	}
	conn, err := net.DialTimeout("tcp", at.TCP(), answersWithin)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// listens is answers for many apps in a row: where the system says quickly who
// listens, nobody who does is troubled with a connection.
func listens(at upstream.Target) bool {
	if at.Socket != "" {
		return upstream.SocketOwner(at.Socket).UserID != ""
	}
	if runtime.GOOS != "darwin" && procinfo.ListenerSocket(at.IP(), at.Port).UserID != "" {
		return true
	}
	return answers(at)
}

// me is the user the agent runs as; zero when the system does not say.
func me() store.ListenerUser {
	u, err := user.Current()
	if err != nil {
		return store.ListenerUser{}
	}
	return store.ListenerUser{ID: u.Uid, Name: u.Username}
}

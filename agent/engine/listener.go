package engine

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
)

// A port belongs to nobody: when an approved app ends, a program of any user of this
// computer can listen on its port. So an approval is for the programs of one user.
// The agent's own user and the administrator (root) count as one: either could
// approve for itself.

// Welcomes says whether a visitor's request may go to the program that listens on an
// app's port now. It is asked for every new connection to an app, when the connection
// is made and before a byte is sent. Where a program of another user listens than was
// approved, the app asks again by the time it returns. Where nobody listens any more,
// the answer is no and nothing else changes: a program could take a connection and
// stop listening at once, and nobody can say any more whose it was.
func (a *Apps) Welcomes(name string, port int) bool {
	app, ok := a.Lookup(name)
	if !ok || app.Status != agentapi.StatusLive {
		return false
	}
	e := event{Kind: onFound, Port: port, Own: a.cfg.Own}
	var socket uint64
	e.Listener, e.Listening, socket = a.glance(port)
	stranger := otherUser(app.kept, e)
	if stranger {
		a.noteListener(context.Background(), name, e)
	}
	if app.kept.ApprovedFor == nil || socket != 0 {
		a.lookLater(look{name, port, socket})
	}
	return e.Listening && !stranger
}

// look is what Run is given: to find the program at a port.
type look struct {
	name   string // of the app
	port   int
	socket uint64
}

// maxLooks is how many may wait for Run; what does not fit comes again with the
// next connection or publication.
const maxLooks = 64

func (a *Apps) lookLater(l look) {
	if was, ok := a.looked.Swap(l.name, l.socket); ok && was == l.socket {
		return
	}
	select {
	case a.looks <- l:
	default:
		a.looked.Delete(l.name)
	}
}

// Run looks which programs listen for the apps, one look at a time and off the way
// of any request, and tells the owner of others than before. It ends with ctx.
func (a *Apps) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l := <-a.looks:
			e := event{Port: l.port}
			e.Listener, e.Listening = a.look(l.name, l.port)
			if !a.noteListener(ctx, l.name, e) || !e.Listening {
				a.looked.Delete(l.name)
			}
		}
	}
}

// noteListener is false when who listens could not be noted.
func (a *Apps) noteListener(ctx context.Context, name string, e event) bool {
	e.Kind = onFound
	_, _, err := a.apply(ctx, name, e)
	if err != nil && agentapi.CodeOf(err) != agentapi.CodeNotFound && ctx.Err() == nil {
		a.cfg.Log.Warn("cannot note who listens on an app's port", "name", name, "err", err)
	}
	return err == nil
}

// look says who listens on a port that an app has or asks for, and whether anybody
// does.
func (a *Apps) look(name string, port int) (l agentapi.Listener, listening bool) {
	last := 0
	if app, ok := a.Lookup(name); ok {
		last = app.kept.Listener.PID
	}
	return a.lookTwice(port, func() agentapi.Listener { return a.cfg.Listener(port, last) })
}

// lookFor is how long approving waits to learn which program listens: the system
// may have many processes to show. Who does is known at once.
const lookFor = 3 * time.Second

// lookSoon is look with a limit of lookFor. A program that was not found in that time
// counts as one that cannot be seen: an owner who was shown one has to look again.
func (a *Apps) lookSoon(ctx context.Context, name string, port int) (agentapi.Listener, bool) {
	type answer struct {
		l         agentapi.Listener
		listening bool
	}
	found := make(chan answer, 1)
	go func() {
		l, listening := a.look(name, port)
		found <- answer{l, listening}
	}()
	ctx, cancel := context.WithTimeout(ctx, a.lookFor)
	defer cancel()
	select {
	case it := <-found:
		return it.l, it.listening
	case <-ctx.Done():
		l, listening, _ := a.glance(port)
		return l, listening
	}
}

// glance is look on the way of a request: the program is named where it is known
// already.
func (a *Apps) glance(port int) (l agentapi.Listener, listening bool, socket uint64) {
	l, listening = a.lookTwice(port, func() (l agentapi.Listener) {
		l, socket = a.cfg.ListenerUser(port)
		return l
	})
	return l, listening, socket
}

// lookTwice looks again before a listener counts as one that cannot be seen: a
// program that starts between asking who listens and connecting was just missed.
func (a *Apps) lookTwice(port int, who func() agentapi.Listener) (l agentapi.Listener, listening bool) {
	for range 2 {
		if l = who(); l.UserID != "" {
			return l, true
		}
		if a.cfg.Answers == nil || !a.cfg.Answers(port) {
			return l, false
		}
	}
	return l, true
}

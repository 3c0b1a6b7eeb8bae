package engine

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
)

// A port belongs to nobody: when an approved app ends, a program of any user of this
// computer can listen on its port. So an approval is for the programs of one user.
// The agent's own user and the administrator (root) count as one: either could
// approve for itself.

// Welcomes says whether a visitor's request may go to the program that listens where
// an app is. It is asked for every new connection to an app, when the connection is
// made and before a byte is sent; peer is who is at the other end, where the connection
// itself tells. Where a program of another user listens than was approved, the app asks
// again by the time it returns. Where nobody listens any more, the answer is no and
// nothing else changes: a program could take a connection and stop listening at once,
// and nobody can say any more whose it was.
func (a *Apps) Welcomes(name string, target upstream.Target, peer agentapi.Listener) bool {
	app, ok := a.Lookup(name)
	if !ok || app.Status != agentapi.StatusLive {
		return false
	}
	e := event{Kind: onFound, Port: target.Port, Own: a.cfg.Own, Contained: app.contained()}
	socket := a.glance(&e, []upstream.Target{target}, true)
	stranger := otherUser(app.kept, e)
	if !stranger && peer.UserID != "" && peer.UserID != e.Listener.UserID {
		e.Listener = peer
		stranger = otherUser(app.kept, e)
	}
	if stranger {
		a.noteListener(context.Background(), name, e)
	}
	if app.kept.ApprovedFor == nil || socket != 0 {
		a.lookLater(look{name: name, port: target.Port, socket: socket})
	}
	unsure := e.Contained && e.Behind == nil && target.Socket == "" // its engine does not answer, or is not asked any more
	return e.Listening && !stranger && !unsure
}

// Elsewhere is asked when nobody took a connection where an app was approved, and says
// whether another try may find it: its program listens on the other address of this
// computer by now. That is a change of who listens like any other: a program of the
// same user is followed and noted, for another user's the app asks again.
func (a *Apps) Elsewhere(ctx context.Context, name string, dead upstream.Target) bool {
	app, ok := a.Lookup(name)
	target := app.Target()
	switch {
	case !ok, app.Status != agentapi.StatusLive, target.Socket != "", dead.Socket != "", app.kept.ApprovedFor == nil:
		return false
	case target.Address != dead.Address || target.Port != dead.Port:
		return true // it has moved meanwhile
	}
	e := event{Kind: onFound, Port: target.Port, Moved: true, Contained: app.contained()}
	if a.glance(&e, []upstream.Target{target.Other()}, true); !e.Listening {
		return false
	}
	a.noteListener(ctx, name, e)
	now, ok := a.Lookup(name)
	return ok && now.Status == agentapi.StatusLive && now.Address == e.Address
}

// ShowedKey says whether an app may show this key, which is not the one that was kept:
// the first may be, and is kept by the time it returns. For any other the app asks
// again.
func (a *Apps) ShowedKey(ctx context.Context, name, key string) bool {
	if _, _, err := a.apply(ctx, name, event{Kind: onKey, Key: key}); err != nil {
		return false
	}
	app, ok := a.Lookup(name)
	return ok && app.Status == agentapi.StatusLive && (app.Key == key || !app.Options.Pin)
}

// Target is where the app is reached.
func (app *App) Target() upstream.Target {
	return upstream.Of(app.Address, app.Port, app.Key, app.Options)
}

// places are where a program may listen for the app on a port: where it was approved,
// and else on the other address of this computer.
func (app App) places(port int) []upstream.Target {
	target := upstream.Of(app.Address, port, app.Key, app.Options)
	if app.kept != nil {
		target.Address = approvedOf(app.kept).Address
	}
	if target.Socket != "" {
		return []upstream.Target{target}
	}
	return []upstream.Target{target, target.Other()}
}

// look is what Run is given: to find the program that listens for an app, or, where
// nobody does, to see whether it has moved to the other address.
type look struct {
	name   string // of the app
	port   int
	socket uint64
	moved  bool
}

// maxLooks is how many may wait for Run; what does not fit comes again with the
// next connection or publication.
const maxLooks = 64

func (a *Apps) lookLater(l look) {
	if was, ok := a.looked.Swap(l.name, l.socket); ok && was == l.socket && !l.moved {
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
			a.carryOut(ctx, l)
		}
	}
}

func (a *Apps) carryOut(ctx context.Context, l look) {
	app, ok := a.Lookup(l.name)
	switch {
	case !ok || app.Port != l.port:
	case l.moved:
		a.Elsewhere(ctx, l.name, app.Target())
	default:
		e := event{Port: l.port, Contained: app.contained()}
		a.look(&e, app, app.ID != "")
		again := app.Status == agentapi.StatusPending && e.Listener.Program == "" // see lookAtPorts
		if a.noteListener(ctx, l.name, e) && e.Listening && !again && (app.Status != agentapi.StatusLive || e.Address == app.Address) {
			return
		}
	}
	a.looked.Delete(l.name)
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

// look says in e who listens for an app, and whether anybody does.
func (a *Apps) look(e *event, app App, connect bool) {
	last := 0
	if app.kept != nil {
		last = app.kept.Listener.PID
	}
	a.lookAt(e, app.places(e.Port), connect, func(at upstream.Target) agentapi.Listener { return a.cfg.Listener(at, last) })
}

// lookFor is how long approving waits to learn which program listens: the system
// may have many processes to show. Who does is known at once.
const lookFor = 3 * time.Second

// lookSoon is look with a limit of lookFor. A program that was not found in that time
// counts as one that cannot be seen: an owner who was shown one has to look again.
func (a *Apps) lookSoon(ctx context.Context, e *event, app App, connect bool) {
	found := make(chan event, 1)
	go func(e event) {
		a.look(&e, app, connect)
		found <- e
	}(*e)
	ctx, cancel := context.WithTimeout(ctx, a.lookFor)
	defer cancel()
	select {
	case *e = <-found:
	case <-ctx.Done():
		e.Contained = false // nor is a container engine waited for any longer
		a.glance(e, app.places(e.Port), connect)
	}
}

// glance is look on the way of a request: the program is named where it is known
// already.
func (a *Apps) glance(e *event, places []upstream.Target, connect bool) (socket uint64) {
	a.lookAt(e, places, connect, func(at upstream.Target) (l agentapi.Listener) {
		l, socket = a.cfg.ListenerUser(at)
		return l
	})
	return socket
}

// lookAt says in e who listens at the first of some places where anybody does. It
// connects only where it may: nothing at all is sent to who was never approved.
func (a *Apps) lookAt(e *event, places []upstream.Target, connect bool, who func(upstream.Target) agentapi.Listener) {
	for _, target := range places {
		e.Address, e.Socket = target.Address, target.Socket
		if e.Listener, e.Listening = a.lookTwice(target, connect, who); e.Listening {
			a.nameContainer(e, target)
			return
		}
	}
	e.Address = places[0].Address
}

// lookTwice looks again before a listener counts as one that cannot be seen: a
// program that starts between asking who listens and connecting was just missed.
func (a *Apps) lookTwice(target upstream.Target, connect bool, who func(upstream.Target) agentapi.Listener) (l agentapi.Listener, listening bool) {
	for range 2 {
		if l = who(target); l.UserID != "" {
			return l, true
		}
		if !connect || a.cfg.Answers == nil || !a.cfg.Answers(target) {
			return l, false
		}
	}
	return l, true
}

package engine

import (
	"context"
	"fmt"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// A port belongs to nobody: whoever listens on it first has it, and what an
// approved app leaves behind any user of this computer can take. So an approval is
// for the programs of one user. The agent's own user and the one who may do
// everything on the computer count as one: either could approve for itself.

// Welcomes says whether a visitor's request may go to whoever listens on an app's
// port now. It is asked for every new connection to an app, once that stands and
// before a byte is sent. Where another user's program listens than was approved,
// the app has fallen into asking again when it returns. Where nobody listens any
// more nothing is known of who took the connection, so that is no either, and
// nothing else follows: a program could take one and stop listening at once.
func (a *Apps) Welcomes(name string, port int) bool {
	app, ok := a.Lookup(name)
	if !ok || app.Status != agentapi.StatusLive {
		return false
	}
	e := Event{Kind: Found, Port: port, Own: a.cfg.Own}
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
			e := Event{Port: l.port}
			e.Listener, e.Listening = a.look(l.name, l.port)
			if !a.noteListener(ctx, l.name, e) || !e.Listening {
				a.looked.Delete(l.name)
			}
		}
	}
}

// noteListener is false when who listens could not be noted.
func (a *Apps) noteListener(ctx context.Context, name string, e Event) bool {
	e.Kind = Found
	_, err := a.apply(ctx, name, e)
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
	return a.settled(port, func() agentapi.Listener { return a.cfg.Listener(port, last) })
}

// lookFor is how long approving waits to learn which program listens: the system
// may have many processes to show. Who does is known at once.
const lookFor = 3 * time.Second

// lookSoon is look that ends in time. A program that was not found by then counts
// as one that cannot be seen: an owner who was shown one has to look again.
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
	l, listening = a.settled(port, func() (l agentapi.Listener) {
		l, socket = a.cfg.ListenerUser(port)
		return l
	})
	return l, listening, socket
}

// settled looks twice before a listener counts as one that cannot be seen: a
// program that starts again may be missed between a look and a knock.
func (a *Apps) settled(port int, who func() agentapi.Listener) (l agentapi.Listener, listening bool) {
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

func (e Event) own(userID string) bool { return e.Own != nil && e.Own(userID) }

// otherUser says whether the program that listens is of another user than the one
// an app was approved for. One that cannot be seen is another for who approved what
// could be seen; where that could not, the agent's own user is none.
func otherUser(app *store.App, e Event) bool {
	switch was := app.ApprovedFor; {
	case was == nil, !e.Listening:
		return false
	case was.ID == "":
		return e.Listener.UserID != "" && !e.own(e.Listener.UserID)
	default:
		return !sameUser(*was, e)
	}
}

// becameAnother says whether a program of another user listens by now than when the
// app asked. One of the owner's own may have come where nobody was seen.
func becameAnother(asked agentapi.Listener, e Event) bool {
	if !e.Listening || sameUser(store.ListenerUser{ID: asked.UserID}, e) {
		return false
	}
	return asked.UserID != "" || !e.own(e.Listener.UserID)
}

// notAsSeen says whether another program listens by now than the owner was shown.
// Of one whose program was not known yet the user is compared; where nobody was
// shown, one of the owner's own may have come. Nobody listening is no other.
func notAsSeen(seen agentapi.Seen, e Event) bool {
	if !e.Listening {
		return false
	}
	program, user := e.Listener.Program, e.Listener.User
	if seen.Program != nil && *seen.Program != "" && *seen.Program != program {
		return true
	}
	switch {
	case seen.User == nil || *seen.User == user:
		return false
	case *seen.User == "":
		return !e.own(e.Listener.UserID)
	}
	return true
}

func sameUser(was store.ListenerUser, e Event) bool {
	return was.ID == e.Listener.UserID || e.own(was.ID) && e.own(e.Listener.UserID)
}

// approvedFor is the user an approval is for: who listens, or else listened when
// the app asked, or else, with nobody seen at all, the agent's own.
func approvedFor(asked agentapi.Listener, e Event) *store.ListenerUser {
	switch {
	case e.Listening:
		return &store.ListenerUser{ID: e.Listener.UserID, Name: e.Listener.User}
	case asked.UserID != "":
		return &store.ListenerUser{ID: asked.UserID, Name: asked.User}
	}
	return &e.Me
}

// found is what follows when somebody is found listening on an app's port without
// having published.
func found(now Row, e Event) Outcome {
	if now.App.LocalPort != e.Port || !e.Listening {
		return Outcome{Row: now}
	}
	app := *now.App
	out := Outcome{Row: Row{App: &app, Denial: now.Denial}}
	switch {
	case app.Status == agentapi.StatusPending:
		app.Listener = e.Listener
		if app.Approved != nil {
			held := *app.Approved
			held.OtherUser = otherUser(&app, e)
			app.Approved = &held
		}
	case app.Status != agentapi.StatusLive:
	case otherUser(&app, e):
		e.Label = app.Label
		out = askAgain(now, approvedOf(&app), e)
		out.App.Asker = app.Asker // nobody asked
	default:
		app.Listener = e.Listener
		out.Notices = changes(*now.App, app, e.At)
		if app.ApprovedFor == nil {
			out.Notices = append(out.Notices, record(&app, e))
		}
	}
	return out
}

// record notes whom an approval is for that was given before that was kept: who
// listens first. The owner is told, once.
func record(app *store.App, e Event) agentapi.Notice {
	app.ApprovedFor = &store.ListenerUser{ID: e.Listener.UserID, Name: e.Listener.User}
	return agentapi.Notice{At: e.At, Kind: agentapi.NoticeListener, App: app.Name, Text: fmt.Sprintf(
		"%s is answered on port %d by %s. From now on, a program of another user there waits for your approval.",
		app.Label, app.LocalPort, programOf(e.Listener))}
}

// approvedListener is who an app was approved for, as far as that is known.
func approvedListener(app *store.App) *agentapi.Listener {
	was := agentapi.Listener{User: app.ApprovedFor.Name, UserID: app.ApprovedFor.ID}
	if held := app.Approved.Listener; held.UserID == was.UserID {
		was.Program = held.Program
	}
	return &was
}

// programOf names a listener in a sentence.
func programOf(l agentapi.Listener) string {
	user := l.User
	if user == "" {
		user = l.UserID
	}
	switch {
	case l.Program != "" && user != "":
		return l.Program + ", run by " + user
	case l.Program != "":
		return l.Program
	case user != "":
		return "a program of the user " + user
	}
	return "a program that cannot be seen from here"
}

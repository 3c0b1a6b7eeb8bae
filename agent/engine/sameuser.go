package engine

import (
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/words"
)

// Whether a program that listens is of the user an approval is for.

func (e event) own(userID string) bool { return e.Own != nil && e.Own(userID) }

// otherUser says whether the program that listens is of another user than the one
// an app was approved for. A program that cannot be seen counts as another user's. An
// app that was approved for one that could not be seen may have such a one, or one of
// the agent's own user. At a socket, whose path the owner named, the agent's own user is
// never another.
func otherUser(app *store.App, e event) bool {
	switch was := app.ApprovedFor; {
	case e.Listening && e.Behind != nil && otherContainer(approvedOf(app).Container, e.behind()):
		return true // a container's ports are no user's
	case !e.Listening, e.Socket != "" && e.own(e.Listener.UserID):
		return false
	case was == nil:
		return e.Socket != "" // where nobody but the owner was ever said yes to
	case was.ID == "":
		return e.Listener.UserID != "" && !e.own(e.Listener.UserID)
	default:
		return !sameUser(*was, e)
	}
}

// becameAnother says whether a program of another user listens by now than when the
// app asked. Where nobody was seen then, the owner's own programs are no others.
func becameAnother(asked agentapi.Listener, e event) bool {
	if !e.Listening || sameUser(store.ListenerUser{ID: asked.UserID}, e) {
		return false
	}
	return asked.UserID != "" || !e.own(e.Listener.UserID)
}

// notAsSeen says whether another program listens by now than the owner was shown.
// Where no program was shown, the users are compared; where no user was shown either,
// the owner's own programs are no others. Nobody listening is no other program.
func notAsSeen(seen agentapi.Seen, e event) bool {
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

func sameUser(was store.ListenerUser, e event) bool {
	return was.ID == e.Listener.UserID || e.own(was.ID) && e.own(e.Listener.UserID)
}

// approvedFor is the user an approval is for: of the program that listens now, else
// of the one that listened when the app asked, else the agent's own.
func approvedFor(asked agentapi.Listener, e event) *store.ListenerUser {
	switch {
	case e.Listening:
		return &store.ListenerUser{ID: e.Listener.UserID, Name: e.Listener.User}
	case asked.UserID != "":
		return &store.ListenerUser{ID: asked.UserID, Name: asked.User}
	}
	return &e.Me
}

// approvedListener is who an app was approved for, as far as that is known.
func approvedListener(app *store.App) *agentapi.Listener {
	if app.ApprovedFor == nil {
		return &app.Approved.Listener
	}
	was := agentapi.Listener{User: app.ApprovedFor.Name, UserID: app.ApprovedFor.ID}
	if then := app.Approved.Listener; then.UserID == was.UserID {
		was.Program = then.Program
	}
	return &was
}

// lastSeen is who listens now. While only the user is known, and is the same, it stays
// the program that was seen before; if Run finds another one, that is told then.
func lastSeen(was, is agentapi.Listener) agentapi.Listener {
	same := is.UserID == was.UserID || was.UserID == "" && is.User == was.User
	if is.Program == "" && is.UserID != "" && same {
		is.PID, is.Program = was.PID, was.Program
	}
	return is
}

// programOf names a listener in a sentence.
func programOf(l agentapi.Listener) words.Sentence {
	user := l.User
	if user == "" {
		user = l.UserID
	}
	switch {
	case l.Program != "" && user != "":
		return words.Of("%[1]s, run by %[2]s", l.Program, user)
	case l.Program != "":
		return words.Of("%s", l.Program)
	case user != "":
		return words.Of("a program of the user %s", user)
	}
	return words.Of("a program that cannot be seen from here")
}

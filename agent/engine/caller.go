package engine

import (
	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/agent/store"
)

// What other users of this computer may use up, so that the owner's own programs
// always find room.
const (
	maxPendingOfUser   = 20             // requests of one user that wait
	maxPendingOfOthers = maxPending / 2 // and of all other users together

	maxPendingOfContainers = 20 // requests of containers that wait

	maxRegistrantsOfUser   = 50
	maxRegistrantsOfOthers = maxRegistrants / 2
)

// Caller is who asks something of the engine. The zero Caller is a program of
// the agent's own user.
type Caller struct {
	// UserID is the system's id of another user of this computer; empty where it
	// cannot be learnt.
	UserID string
	// Stranger may change only what is its own: a program of another user, unless
	// the owner trusts everybody on this computer.
	Stranger bool
	// Process finds the program that asks, for the owner to read: nothing is permitted
	// because of it. It may take a moment. nil: nobody can say.
	Process func() procinfo.Process
	// Container is the one whose labels ask; nil for a program.
	Container *agentapi.Container
}

// unknownUser stands in store.App for a stranger whose user could not be learnt.
// No user of a system has this id, so it matches nobody.
const unknownUser = "unknown"

// asker is c as store.App keeps who asked.
func (c Caller) asker() string {
	if c.Stranger && c.UserID == "" {
		return unknownUser
	}
	return c.UserID
}

// asks is what c is to the owner who reads its request.
func (c Caller) asks(req agentapi.PublishRequest) agentapi.Asks {
	asks := agentapi.Asks{Assistant: cleanClaim(req.Assistant)}
	if c.Process != nil {
		found := c.Process()
		asks.Program, asks.User = found.Program, found.User
	}
	return asks
}

// registers is the user to whom c's registrations belong: that of a Stranger, else the
// agent's own, written as empty.
func (c Caller) registers() string {
	if c.Stranger {
		return c.asker()
	}
	return ""
}

// mayChange says whether c may publish and withdraw an app that is there: one it
// asked for itself, or whose approved listener runs under the same user.
func (c Caller) mayChange(app *store.App) bool {
	switch {
	case !c.Stranger:
		return true
	case c.UserID == "":
		return false
	case app.Asker == c.UserID:
		return true
	}
	was := approvedOf(app)
	return approved(app) && (was.Asker == c.UserID || was.Listener.UserID == c.UserID)
}

func notYours() error {
	return agentapi.Errorf(agentapi.CodeForbidden,
		"This name was asked for by another user of this computer, so it is not yours to change. Choose another name, or ask that user.")
}

package procinfo

import "sync"

// Own says whether a user, by the system's own id, may do what the agent's own
// user may: the user the agent runs as, and the one who may do everything on the
// computer anyway (root, or LocalSystem on Windows). An id that is not known is
// nobody's.
func Own(userID string) bool {
	if userID == "" {
		return false
	}
	return userID == almighty || userID == self()
}

// self is the id of the user this process runs as, empty when the system does
// not say.
var self = sync.OnceValue(ownID)

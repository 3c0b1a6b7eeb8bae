package engine

import (
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// reachedAnew says whether visitors reach an app after a change and reached another
// one before, or the same in another way: another program, port or option.
func reachedAnew(before, after *store.App) bool {
	if !reachable(after) {
		return false
	}
	return !reachable(before) || before.ID != after.ID || before.LocalPort != after.LocalPort || before.Address != after.Address ||
		before.Listener != after.Listener || before.Options != after.Options
}

func reachable(app *store.App) bool {
	return app != nil && app.Status == agentapi.StatusLive && !app.Paused
}

// byOwner says whether with an event the owner changes how an app is reached. Resuming
// changes nothing of that.
func (k kind) byOwner() bool {
	return k == onApprove || k == onShare || k == onUnshare || k == onChoose
}

package engine

import (
	"context"

	"porchlight/agent/agentapi"
)

// decisions are the kinds of activity that the owner's events are, and the end that they
// gave, where they change something.
var decisions = map[kind]string{
	onApprove: agentapi.ActivityApproved,
	onShare:   agentapi.ActivityApproved,
	onDeny:    agentapi.ActivityDenied,
	onPause:   agentapi.ActivityPaused,
	onResume:  agentapi.ActivityResumed,
	onUnshare: agentapi.ActivityStopped,
	onRevoke:  agentapi.ActivityRevoked,
	onEnd:     agentapi.ActivityEnded,
	onChoose:  agentapi.ActivityOptions,
}

// happened is what a change is in the activity: a decision of the owner's, or what an
// app altered about itself.
func happened(name string, e event, out outcome, closed int) []agentapi.Activity {
	app := out.App
	if app == nil {
		app = out.before
	}
	if app == nil {
		return nil // a denial that is forgotten
	}
	line := agentapi.Activity{At: e.At, Name: name, App: app.Label}
	var lines []agentapi.Activity
	if kind := decisions[e.Kind]; kind != "" {
		line := line
		line.Kind, line.Owner, line.Closed = kind, e.Kind != onEnd, closed
		if kind == agentapi.ActivityApproved {
			line.Port, line.Program = app.LocalPort, app.Listener.Program
		}
		if app.Ends != nil && (kind == agentapi.ActivityApproved || kind == agentapi.ActivityEnded) {
			line.Until = app.Ends.At
		}
		lines = append(lines, line)
	}
	for _, n := range out.Notices {
		switch n.Kind {
		case agentapi.ActivityRenamed:
			line.What = out.before.Label
		case agentapi.ActivityPortChanged, agentapi.ActivityProgramChanged:
			line.Port, line.Program = app.LocalPort, app.Listener.Program
		default:
			continue
		}
		line.Kind = n.Kind
		lines = append(lines, line)
	}
	return lines
}

// tellHappened has the activity hold what changed.
func (a *Apps) tellHappened(lines ...agentapi.Activity) {
	if a.cfg.Happened == nil {
		return
	}
	for _, line := range lines {
		a.cfg.Happened(line)
	}
}

// UndoOf is how to take back a pause that a line of activity is about, where that is
// still as it was left.
func (a *Apps) UndoOf(line agentapi.Activity) func(context.Context) error {
	app, ok := a.Lookup(line.Name)
	if !line.Owner || line.Kind != agentapi.ActivityPaused || !ok || !app.Paused || app.Status != agentapi.StatusLive {
		return nil
	}
	return func(ctx context.Context) error {
		_, err := a.Resume(ctx, line.Name)
		return err
	}
}

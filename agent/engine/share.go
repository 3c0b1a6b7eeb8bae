package engine

import (
	"context"
	"fmt"
	"strconv"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/agent/store"
	"porchlight/internal/words"
)

// Sharing is publishing and approving in one: the owner, at a terminal, puts a port
// at an address for as long as they stay there. What the name was before is kept with
// it, so that it can be put back, also by another program when the first was killed.

// PortSeen says who listens on a port that the owner may want to share.
func (a *Apps) PortSeen(ctx context.Context, port int) (agentapi.PortSeen, error) {
	if err := checkPort(port, a.cfg.OwnPorts); err != nil {
		return agentapi.PortSeen{}, err
	}
	e := event{Port: port, Own: a.cfg.Own}
	a.lookSoon(ctx, &e, App{}, false)
	seen := agentapi.PortSeen{LocalPort: port, Listening: e.Listening, Listener: e.Listener, Own: !e.Listening || e.own(e.Listener.UserID)}
	if a.cfg.Network != nil && a.cfg.Network()[port] {
		seen.InNetwork = inNetwork(port, e.Listener.Program)
	}
	return seen, nil
}

// Share puts a port at the address of a name; pid is the process that does it.
func (a *Apps) Share(ctx context.Context, name string, pid int, s agentapi.Share) (agentapi.Publication, error) {
	if err := checkName(name, a.cfg.Root()); err != nil {
		return agentapi.Publication{}, err
	}
	label, err := cleanLabel(s.Label)
	if err != nil {
		return agentapi.Publication{}, err
	}
	if err := checkPort(s.LocalPort, a.cfg.OwnPorts); err != nil {
		return agentapi.Publication{}, err
	}
	e := event{Kind: onShare, NewID: newID(), Label: label, Written: s.Label, Port: s.LocalPort, Seen: &s.Seen, Others: s.Others, Keep: s.Keep, Terminal: !s.Menu, There: s.Listening, PID: pid, Me: a.cfg.Me}
	app, _ := a.Lookup(name)
	if app.kept != nil && app.kept.Shared != nil && !procinfo.Runs(app.kept.Shared.PID) {
		e.Killed = app.kept.Shared.PID
	}
	a.lookSoon(ctx, &e, app, false) // connects to nobody: who is there was not approved
	out, _, err := a.apply(ctx, name, e)
	if err != nil {
		return agentapi.Publication{}, err
	}
	return a.publication(out.App), nil
}

// Unshare puts back what was before a Share.
func (a *Apps) Unshare(ctx context.Context, name string) (agentapi.Closed, error) {
	_, closed, err := a.apply(ctx, name, event{Kind: onUnshare})
	return closed, err
}

// share makes a name live as the owner has seen it.
func share(now stored, e event) (outcome, error) {
	same := outcome{stored: now}
	if now.App != nil && !approved(now.App) {
		return same, agentapi.Errorf(agentapi.CodeConflict, "%q waits for your approval already. Approve it or deny it first, or choose another name.", now.App.Label)
	}
	switch {
	case now.App != nil && sharedByAnother(now.App.Shared, e):
		return same, agentapi.Errorf(agentapi.CodeConflict, "%q is shared by process %d already. End that one first, or choose another name. If it is another program by now, type: porchlight unshare %s",
			now.App.Label, now.App.Shared.PID, now.App.Name)
	case now.App != nil && now.App.Options.Socket() != "":
		return same, agentapi.Errorf(agentapi.CodeConflict, "%q is reached at a unix socket, so no port can be shared under its name. Choose another name.", now.App.Label)
	case now.App != nil && now.App.TCP:
		return same, otherKind(now.App)
	case e.LabelTaken:
		return same, labelTaken(e.Label)
	case e.There && !e.Listening:
		return same, agentapi.Errorf(agentapi.CodeConflict, "Port %d stopped listening.", e.Port)
	case notAsSeen(*e.Seen, e):
		return same, agentapi.Errorf(agentapi.CodeConflict,
			"Another program listens on port %d than you were shown: now it is %s. Look again before you share it.", e.Port, programOf(e.Listener))
	case e.Listening && !e.own(e.Listener.UserID) && !e.Others:
		return same, agentapi.Errorf(agentapi.CodeForbidden,
			"Port %d is not yours: there listens %s. To share it all the same, say so.", e.Port, programOf(e.Listener))
	}
	app := store.App{ID: e.NewID, RequestedAt: e.At, ApprovedAt: &e.At}
	var before *store.Before
	if now.App != nil {
		app = asApproved(now.App)
		before = beforeShare(now.App)
	}
	app.Status, app.Label, app.LocalPort, app.Quiet, app.Asker = agentapi.StatusLive, e.Label, e.Port, false, ""
	app.Listener, app.Address, app.ApprovedFor = e.Listener, e.Address, approvedFor(agentapi.Listener{}, e)
	app.Container = e.behind()
	if e.Keep {
		app.Ends = nil
	}
	if app.Shared = nil; !e.Keep {
		app.Shared = &store.Shared{At: e.At, PID: e.PID, Before: before}
	}
	out := outcome{stored: stored{App: &app}}
	if e.Terminal {
		out.Notices = []agentapi.Notice{approvedAtTerminal(app, e)}
	}
	if now.App != nil && now.App.Status == agentapi.StatusLive && (now.App.LocalPort != app.LocalPort || now.App.Address != app.Address) {
		out.Gone = app.ID // what is open goes to the other port
	}
	return out, nil
}

// sharedByAnother says whether a process shares a name that may run: what it put at
// the address it would take away under whoever came second.
func sharedByAnother(shared *store.Shared, e event) bool {
	return shared != nil && shared.PID != 0 && shared.PID != e.PID && shared.PID != e.Killed
}

// beforeShare is what an approved app was before it is shared; before the first time,
// where whoever shared it has ended without a word. It is nil for one that only a
// share has made.
func beforeShare(app *store.App) *store.Before {
	if app.Shared != nil {
		return app.Shared.Before
	}
	return &store.Before{Approved: approvedOf(app), ApprovedFor: app.ApprovedFor}
}

// unshare takes a name off its address and makes it what it was.
func unshare(now stored) (outcome, error) {
	switch was := now.App.Shared; {
	case was == nil:
		return outcome{stored: now}, agentapi.Errorf(agentapi.CodeConflict, "%q is not shared from a terminal.", now.App.Label)
	case was.Before == nil:
		return outcome{Gone: now.App.ID}, nil
	}
	app := *now.App
	before := app.Shared.Before.Approved
	app.Approved, app.ApprovedFor, app.Shared = &before, app.Shared.Before.ApprovedFor, nil
	app = asApproved(&app)
	app.Status, app.Quiet = agentapi.StatusStopped, false
	return outcome{stored: stored{App: &app, Denial: now.Denial}, Gone: app.ID}, nil
}

// approvedAtTerminal tells the owner of an approval that was not given in the menu
// bar or its window, in case it was not theirs.
func approvedAtTerminal(app store.App, e event) agentapi.Notice {
	who := words.Of("nobody listened there")
	if e.Listening {
		who = programOf(e.Listener)
	}
	text := words.Text{words.Of("%[1]s was approved at a terminal, on port %[2]s: %[3]s.", app.Label, strconv.Itoa(app.LocalPort), who)}
	if e.Kind == onApprove && e.Port == 0 { // it was approved before, and nobody looked
		text = words.Text{words.Of("%s was approved anew at a terminal.", app.Label)}
	}
	if app.Ends != nil {
		text = append(text, words.Of("It is approved until %s.", agentapi.LastDay(app.Ends.At, e.At)))
	}
	return agentapi.Notice{At: e.At, Kind: agentapi.NoticeApproved, App: app.Name, By: byProcess(e.PID), Text: text.String(), Words: text}
}

func byProcess(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf("process %d", pid)
}

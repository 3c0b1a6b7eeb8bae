package engine

import (
	"cmp"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// This file is the whole state machine of a published app. next is asked for every
// change. Each step takes the row as it is and the event, and returns the outcome to
// next; no step calls another. What two steps have in common comes after them.

// kind of an event.
type kind string

const (
	onPublish   kind = "publish"  // an app asks: POST /publish
	onUnpublish kind = "withdraw" // an app goes: DELETE /publish/:name
	onApprove   kind = "approve"  // the owner says yes
	onDeny      kind = "deny"     // the owner says no
	onRevoke    kind = "revoke"   // the owner takes the approval back
	onUnmute    kind = "unmute"   // the owner wants to hear of the name again
	onPause     kind = "pause"    // the owner closes the app and keeps its approval
	onResume    kind = "resume"   // the owner opens it again
	onChoose    kind = "choose"   // the owner sets the app's options
	onShare     kind = "share"    // the owner puts a port at an address, at a terminal
	onUnshare   kind = "unshare"  // they leave the terminal
	onFound     kind = "found"    // somebody was found listening on the app's port
	onKey       kind = "key"      // the app showed a key over HTTPS
	onEnd       kind = "end"      // the approval may have come to its end
)

// event is what happens to one name, with everything that decides its outcome.
type event struct {
	Kind kind
	At   time.Time
	// Passed is the count of time that has passed for approvals that end.
	Passed time.Duration

	// By is who asks, of onPublish and onUnpublish.
	By Caller

	// Asks is what asks, of onPublish, for the owner to read.
	Asks agentapi.Asks

	// TCP is of onPublish: the owner asks for an app that is reached by TCP.
	TCP bool

	// Label is what an app that publishes wants to be called; clean. Written is as it wrote it.
	Label, Written string

	// Of onPublish, onApprove and onFound: who listens on Port of Address, which is
	// empty for 127.0.0.1, or at Socket. Listening without a Listener.UserID is
	// somebody the system does not show.
	Port      int
	Address   string
	Socket    string
	Listener  agentapi.Listener
	Listening bool
	// Behind is the container that takes the connections there: zero for none, nil where
	// that is not known, though it may be one if Unnamed. Contained has it looked for anew.
	Behind    *agentapi.Container
	Unnamed   bool
	Contained bool
	// Own says whether a user, by id, counts as the agent's own; nil for none.
	Own func(userID string) bool
	// Me is the agent's own user, whom an approval is for that is given while
	// nobody listens.
	Me store.ListenerUser

	// Moved is of onFound: nobody listens where the app was approved, and this is its
	// port on the other address of this computer.
	Moved bool

	// Key is of onKey: what the app showed over HTTPS.
	Key string

	// AskedLately keeps a new request quiet: the name was asked for moments ago
	// and withdrawn, and must not ring again and again.
	AskedLately bool

	// AskAgain has an approved app whose port changed wait for the owner.
	AskAgain bool

	// Change is what onChoose does to the options.
	Change func(*agentapi.AppOptions)

	// NewID is the random app id a first approval gives.
	NewID string
	// Seen is what the owner looked at when approving; nil approves whatever
	// is asked.
	Seen *agentapi.Seen
	// Alone gives an app that was approved before a new id: what anybody was given
	// belongs to the old one, and nobody gets in between.
	Alone bool
	// Until is of onApprove when the approval ends, zero for never; nil keeps its end.
	Until *time.Time
	// Others, of onShare, lets it be another user's program, and Keep is without an end.
	Others, Keep bool
	// There, of onShare, refuses it where nobody listens.
	There bool
	// Terminal is true of an approval that was given elsewhere than in the menu bar or
	// its window; PID is the process that gave it, or shares. 0: not known.
	Terminal bool
	PID      int
	// Killed, of onShare, is the process that was found to have left its share behind.
	Killed int
	// PortTaken is true when the request's port has become Porchlight's own.
	PortTaken bool
	// LabelTaken is true when another approved app has this name's label, or
	// the label it asks for.
	LabelTaken bool
}

// stored is all that is stored about one name; a nil App is the state "none".
type stored struct {
	App    *store.App
	Denial *store.Denial
}

// outcome of an event: the row afterwards, and what has to be told.
type outcome struct {
	stored
	Notices []agentapi.Notice
	// Gone is the app id whose connections have to be closed, or empty.
	Gone string

	reached bool       // see reachedAnew; noted when the outcome is kept
	before  *store.App // nil for none; noted then, too
}

// quietFor is how long a denied name asks without being heard.
const quietFor = 10 * time.Minute

// mutedAfter denials a name is not heard until the owner unmutes it.
const mutedAfter = 2

// next returns what follows from an event (docs/interface.md, States of a published
// app). It is pure; whatever changes an app's state asks it. A refusal is an
// *agentapi.Error and changes nothing.
func next(now stored, e event) (outcome, error) {
	same := outcome{stored: now}
	muted := e.Kind == onUnmute && now.Denial != nil
	switch {
	case now.App == nil && e.Kind != onPublish && e.Kind != onShare && !muted:
		return same, agentapi.NoApp()
	case now.App != nil && (e.Kind == onPublish || e.Kind == onUnpublish) && !e.By.mayChange(now.App):
		return same, notYours()
	case now.App != nil && now.App.TCP && e.Kind == onUnpublish:
		return same, agentapi.Errorf(agentapi.CodeConflict, "%q is reached over TCP, and only its owner takes it off: deny it, pause it or revoke it.", now.App.Label)
	}
	switch e.Kind {
	case onPublish:
		return publish(now, e)
	case onUnpublish:
		return withdraw(now), nil
	case onApprove:
		return approve(now, e)
	case onShare:
		return share(now, e)
	case onDeny:
		return deny(now, e)
	case onUnmute:
		return unmute(now), nil
	case onFound:
		return found(now, e), nil
	case onKey:
		return showed(now, e), nil
	}
	if e.Kind == onEnd && !hasEnded(now.App, e) {
		return same, nil
	}
	if !approved(now.App) {
		return same, agentapi.Errorf(agentapi.CodeConflict, "%q waits for your approval. Approve it or deny it.", now.App.Label)
	}
	app := *now.App
	out := outcome{stored: stored{App: &app, Denial: now.Denial}}
	switch e.Kind {
	case onRevoke:
		return outcome{Gone: app.ID}, nil
	case onEnd:
		return outcome{Gone: app.ID, Notices: []agentapi.Notice{approvalEnded(app, e)}}, nil
	case onUnshare:
		return unshare(now)
	case onPause:
		app.Paused = true
		out.Gone = app.ID // also when paused already: what slipped in is closed
	case onResume:
		app.Paused = false
		if app.Status == agentapi.StatusStopped { // who listens by now is looked at before anything is sent
			app.Status = agentapi.StatusLive
		}
	case onChoose:
		before := app.Options
		e.Change(&app.Options)
		var err error
		if app.Options, err = app.Options.Checked(); err != nil {
			return same, err
		}
		if app.TCP && app.Options != app.Options.OfTCP() {
			return same, agentapi.Errorf(agentapi.CodeInvalid, "%q is reached over TCP: of the options only those of passkeys are for it.", app.Label)
		}
		if !app.Options.Pin {
			forgetKey(&app)
		}
		if app.Options.OnlyPasskey && (!before.OnlyPasskey || app.Options.BesidesPasskey != before.BesidesPasskey) {
			out.Gone = app.ID // whoever is in has to come by a way that will do now
		}
	}
	return out, nil
}

// publish makes a request where there is no approval, and the app live at once
// where there is one and the port and its user are those it was given for.
func publish(now stored, e event) (outcome, error) {
	switch {
	case e.LabelTaken:
		return outcome{stored: now}, labelTaken(e.Label)
	case now.App != nil && now.App.TCP != e.TCP:
		return outcome{stored: now}, otherKind(now.App)
	case approved(now.App) && e.By.Container != nil && approvedOf(now.App).Container == nil:
		return outcome{stored: now}, notContainers(now.App)
	}
	if !approved(now.App) {
		app := store.App{Status: agentapi.StatusPending, RequestedAt: e.At, Quiet: e.AskedLately, TCP: e.TCP}
		if now.App != nil {
			app = *now.App
		}
		app.Quiet = quiet(now.Denial, e.At) || now.Denial == nil && app.Quiet
		app.Label, app.LocalPort, app.Listener, app.Asker = e.Label, e.Port, e.Listener, e.By.asker()
		app.Address, app.Container = e.Address, e.By.Container
		return outcome{stored: stored{App: &app, Denial: now.Denial}}, nil
	}
	was := approvedOf(now.App)
	// Because of its port or its key: another user's program may be gone by now.
	waits := now.App.Approved != nil && !was.OtherUser && (now.App.LocalPort != was.LocalPort || was.OtherKey)
	moved := was.LocalPort != e.Port && (e.AskAgain || waits || was.Container != nil)
	if moved || was.OtherKey || otherUser(now.App, e) || takenFrom(was.Container, e.By.Container) {
		return askingAgain(now, e), nil
	}
	before := asApproved(now.App)
	app := before
	app.Status, app.Label, app.LocalPort, app.Quiet = agentapi.StatusLive, e.Label, e.Port, false
	app.Asker = e.By.asker()
	if e.Listener != (agentapi.Listener{}) || e.Port != before.LocalPort {
		// Nobody seen on the same port keeps who was seen there last: another
		// program could otherwise slip in after a moment of silence.
		app.Listener = lastSeen(before.Listener, e.Listener)
	}
	if e.Listening {
		app.Address = e.Address
	}
	notices := changes(before, app, e.At)
	if app.ApprovedFor == nil && e.Listening {
		notices = append(notices, record(&app, e))
	}
	return outcome{stored: stored{App: &app, Denial: now.Denial}, Notices: notices}, nil
}

// withdraw takes a request back, and stops an approved app.
func withdraw(now stored) outcome {
	switch {
	case !approved(now.App):
		return outcome{stored: stored{Denial: now.Denial}}
	case now.App.Status == agentapi.StatusPending:
		return refused(now, now.Denial)
	case now.App.Status == agentapi.StatusStopped:
		return outcome{stored: now}
	}
	app := *now.App
	app.Status = agentapi.StatusStopped
	return outcome{stored: stored{App: &app, Denial: now.Denial}, Gone: app.ID}
}

// approve makes a request live. Of an app that is approved already it changes nothing
// but the end and, with Alone while it is live, the id.
func approve(now stored, e event) (outcome, error) {
	app := *now.App
	app.Ends = endsOf(app.Ends, e)
	if app.Status == agentapi.StatusStopped && (e.Alone || e.Until == nil) {
		return outcome{stored: now}, agentapi.Errorf(agentapi.CodeConflict,
			"%q is approved already. It is stopped, and comes back when the app publishes itself again.", app.Label)
	}
	if app.Status != agentapi.StatusPending {
		out := outcome{stored: stored{App: &app, Denial: now.Denial}}
		if e.Alone {
			app.ID, out.Gone = e.NewID, app.ID
		}
		if e.Until != nil && e.Terminal {
			out.Notices = append(out.Notices, approvedAtTerminal(app, e))
		}
		return out, nil
	}
	if err := approvable(now.App, e); err != nil {
		return outcome{stored: now}, err
	}
	gone := ""
	if app.ID == "" || e.Alone {
		app.ID, gone = e.NewID, app.ID
	}
	e.Listening = e.Listening && e.Port == app.LocalPort // which may have changed since the look
	app.ApprovedFor = approvedFor(app.Listener, e)
	if e.Listening {
		app.Listener, app.Address = e.Listener, e.Address
		app.Container = cmp.Or(app.Container, e.behind()) // as the owner was shown it, whoever asked
	}
	if app.Approved != nil && !app.Approved.OtherKey {
		app.Key = "" // another program may be there than showed it
	}
	app.Status, app.Quiet, app.ApprovedAt, app.Approved = agentapi.StatusLive, false, &e.At, nil
	out := outcome{stored: stored{App: &app}, Gone: gone}
	if e.Terminal {
		out.Notices = append(out.Notices, approvedAtTerminal(app, e))
	}
	return out, nil
}

// approvable refuses to approve what the owner cannot have meant. A program may
// change its request at any time, so between looking and clicking too.
func approvable(app *store.App, e event) error {
	switch {
	case e.LabelTaken:
		return labelTaken(app.Label)
	case e.PortTaken:
		return agentapi.Errorf(agentapi.CodeConflict, "Port %d is Porchlight's own by now. Deny the request.", app.LocalPort)
	case e.Port == app.LocalPort && becameAnother(app.Listener, e):
		return agentapi.Errorf(agentapi.CodeConflict,
			"Another program listens on port %d by now: %s. Look again before you approve it.", app.LocalPort, programOf(e.Listener))
	case e.Port == app.LocalPort && e.Listening && e.Behind == nil && (e.Unnamed || app.Container != nil):
		return agentapi.Errorf(agentapi.CodeUnavailable,
			"The container engine does not say which container listens on port %d now. Approve it once it answers: porchlight doctor says what is wrong.", app.LocalPort)
	case e.Port == app.LocalPort && e.Listening && otherContainer(app.Container, e.behind()):
		return agentapi.Errorf(agentapi.CodeConflict,
			"Not the container that asked listens on port %d now, but %s. Look again before you approve it.", app.LocalPort, programOf(e.Listener))
	case e.Seen != nil && (e.Seen.Label != app.Label || e.Seen.LocalPort != app.LocalPort):
		return agentapi.Errorf(agentapi.CodeConflict,
			"The request has changed meanwhile: it is %q on port %d now. Look again before you approve it.", app.Label, app.LocalPort)
	case e.Seen != nil && e.Seen.TCP != app.TCP:
		return agentapi.Errorf(agentapi.CodeConflict, "%q was another kind of app when you looked. Look again before you approve it.", app.Label)
	case e.Seen != nil && e.Port == app.LocalPort && notAsSeen(*e.Seen, e):
		return agentapi.Errorf(agentapi.CodeConflict,
			"Another program listens on port %d than you were shown: now it is %s. Look again before you approve it.", app.LocalPort, programOf(e.Listener))
	}
	return nil
}

// deny refuses a request. What was approved before it asked again stays approved.
func deny(now stored, e event) (outcome, error) {
	if now.App.Status != agentapi.StatusPending {
		return outcome{stored: now}, agentapi.Errorf(agentapi.CodeConflict,
			"%q is approved already. Revoke it to take its address away.", now.App.Label)
	}
	denial := store.Denial{At: e.At, Count: 1}
	if before := now.Denial; before != nil {
		denial.Count, denial.Muted = before.Count+1, before.Muted
	}
	denial.Muted = denial.Muted || denial.Count >= mutedAfter
	if approved(now.App) {
		return refused(now, &denial), nil
	}
	return outcome{stored: stored{Denial: &denial}}, nil
}

// refused ends asking again without a yes: the app is stopped, as what it was
// approved for.
func refused(now stored, denial *store.Denial) outcome {
	app := asApproved(now.App)
	app.Status, app.Quiet = agentapi.StatusStopped, false
	return outcome{stored: stored{App: &app, Denial: denial}}
}

// unmute forgets the denials of a name, and has a quiet request heard.
func unmute(now stored) outcome {
	if now.App == nil || now.App.Status != agentapi.StatusPending {
		return outcome{stored: stored{App: now.App}}
	}
	app := *now.App
	app.Quiet = false
	return outcome{stored: stored{App: &app}}
}

// approved says whether the owner said yes to an app once and did not take it
// back. One that has changed since may be waiting for another yes.
func approved(app *store.App) bool { return app != nil && app.ID != "" }

// approvedOf is what the approval of an approved app was given for.
func approvedOf(app *store.App) store.Approved {
	if app.Approved != nil {
		return *app.Approved
	}
	return store.Approved{
		Label: app.Label, LocalPort: app.LocalPort, Listener: app.Listener, Asker: app.Asker, Address: app.Address, Key: app.Key,
		Container: app.Container,
	}
}

// asApproved is an app without what it has asked for since it was approved.
func asApproved(app *store.App) store.App {
	was, out := approvedOf(app), *app
	out.Label, out.LocalPort, out.Listener, out.Asker, out.Approved = was.Label, was.LocalPort, was.Listener, was.Asker, nil
	out.Address, out.Key, out.Container = was.Address, was.Key, was.Container
	if !out.Options.Pin {
		out.Key = ""
	}
	return out
}

// quiet says whether a denied name asks without being heard.
func quiet(d *store.Denial, at time.Time) bool {
	return d != nil && (d.Muted || at.Before(d.At.Add(quietFor)))
}

// otherKind refuses to make an app of one kind one of the other: who was given it was given
// that.
func otherKind(app *store.App) error {
	if app.TCP {
		return agentapi.Errorf(agentapi.CodeConflict, "%q is reached over TCP, and only its owner publishes it. Choose another name.", app.Name)
	}
	return agentapi.Errorf(agentapi.CodeConflict, "%q is a web app, or asks to be one. Revoke it or deny it first, or choose another name.", app.Name)
}

func labelTaken(label string) error {
	return agentapi.Errorf(agentapi.CodeConflict,
		"Another app is called %q already. Choose another label, so that people can tell them apart.", label)
}

package engine

import (
	"fmt"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// Kind of an Event.
type Kind string

const (
	Publish  Kind = "publish"  // an app asks: POST /publish
	Withdraw Kind = "withdraw" // an app leaves: DELETE /publish/:name
	Approve  Kind = "approve"  // the owner says yes
	Deny     Kind = "deny"     // the owner says no
	Revoke   Kind = "revoke"   // the owner takes the approval back
	Unmute   Kind = "unmute"   // the owner wants to hear of the name again
	Pause    Kind = "pause"    // the owner closes a door and keeps its key
	Resume   Kind = "resume"   // the owner opens it again
	Choose   Kind = "choose"   // the owner sets the app's options
	Found    Kind = "found"    // somebody was found listening on the app's port
)

// Event is what happens to one name, with everything that decides its outcome.
type Event struct {
	Kind Kind
	At   time.Time

	// By is who asks, of Publish and Withdraw.
	By Caller

	// Of Publish.
	Label string // clean

	// Of Publish, Approve and Found: who listens on Port. Listening without a
	// Listener.UserID is somebody the system does not show.
	Port      int
	Listener  agentapi.Listener
	Listening bool
	// Own says whether a user, by id, counts as the agent's own; nil for none.
	Own func(userID string) bool
	// Me is the agent's own user, whom an approval is for that is given while
	// nobody listens.
	Me store.ListenerUser

	// AskedLately keeps a new request quiet: the name was asked for moments ago
	// and withdrawn, and must not ring again and again.
	AskedLately bool

	// AskAgain has an approved app whose port changed wait for the owner.
	AskAgain bool

	// Change is what Choose does to the options.
	Change func(*agentapi.AppOptions)

	// NewID is the random app id a first approval gives.
	NewID string
	// Seen is what the owner looked at when approving; nil approves whatever
	// is asked.
	Seen *agentapi.Seen
	// Alone gives an app that was approved before a new id: what anybody was given
	// belongs to the old one, and nobody gets in between.
	Alone bool
	// PortTaken is true when the request's port has become Porchlight's own.
	PortTaken bool
	// LabelTaken is true when another approved app has this name's label, or
	// the label it asks for.
	LabelTaken bool
}

// Row is all that is stored about one name; a nil App is the state "none".
type Row struct {
	App    *store.App
	Denial *store.Denial
}

// Outcome of an event: the row afterwards, and what has to be told.
type Outcome struct {
	Row
	Notices []agentapi.Notice
	// Gone is the app id whose connections have to be closed, or empty.
	Gone string
}

// quietFor is how long a denied name asks without being heard.
const quietFor = 10 * time.Minute

// mutedAfter denials a name is not heard until the owner unmutes it.
const mutedAfter = 2

// Next is the state machine of a published app: the interface's table (States:
// Published app) with the rows the design adds. It is pure; whatever changes an
// app's state asks it. A refusal is an *agentapi.Error and changes nothing.
func Next(now Row, e Event) (Outcome, error) {
	same := Outcome{Row: now}
	state := agentapi.Status("")
	if now.App != nil {
		state = now.App.Status
	}
	if (e.Kind == Publish || e.Kind == Withdraw) && now.App != nil && !e.By.mayChange(now.App) {
		return same, notYours()
	}
	switch e.Kind {
	case Publish:
		return publish(now, e)

	case Withdraw:
		switch state {
		case agentapi.StatusPending:
			if approved(now.App) {
				return restored(now, now.Denial), nil
			}
			return Outcome{Row: Row{Denial: now.Denial}}, nil
		case agentapi.StatusLive:
			return stopped(now), nil
		case agentapi.StatusRevoked:
			return same, nil
		}

	case Approve:
		switch state {
		case agentapi.StatusPending:
			if err := approvable(now.App, e); err != nil {
				return same, err
			}
			app, gone := *now.App, ""
			if app.ID == "" || e.Alone {
				app.ID, gone = e.NewID, app.ID
			}
			e.Listening = e.Listening && e.Port == app.LocalPort // which may have changed since the look
			app.ApprovedFor = approvedFor(app.Listener, e)
			if e.Listening {
				app.Listener = e.Listener
			}
			app.Status, app.Quiet, app.ApprovedAt, app.Approved = agentapi.StatusLive, false, &e.At, nil
			return Outcome{Row: Row{App: &app}, Gone: gone}, nil
		case agentapi.StatusLive:
			if !e.Alone {
				return same, nil
			}
			app := *now.App
			app.ID = e.NewID
			return Outcome{Row: Row{App: &app, Denial: now.Denial}, Gone: now.App.ID}, nil
		case agentapi.StatusRevoked:
			return same, agentapi.Errorf(agentapi.CodeConflict,
				"%q is approved already. It is stopped, and comes back when the app publishes itself again.", now.App.Label)
		}

	case Deny:
		switch state {
		case agentapi.StatusPending:
			if approved(now.App) {
				return restored(now, denied(now.Denial, e.At)), nil
			}
			return Outcome{Row: Row{Denial: denied(now.Denial, e.At)}}, nil
		case agentapi.StatusLive, agentapi.StatusRevoked:
			return same, agentapi.Errorf(agentapi.CodeConflict,
				"%q is approved already. Revoke it to take its address away.", now.App.Label)
		}

	case Revoke:
		switch {
		case approved(now.App):
			return Outcome{Gone: now.App.ID}, nil
		case now.App != nil:
			return same, notApproved(now.App.Label)
		}

	case Pause, Resume, Choose:
		switch {
		case approved(now.App):
			return door(now, e)
		case now.App != nil:
			return same, notApproved(now.App.Label)
		}

	case Found:
		if now.App != nil {
			return found(now, e), nil
		}

	case Unmute:
		if now.Denial == nil && now.App == nil {
			break
		}
		next := Row{App: now.App}
		if state == agentapi.StatusPending && now.App.Quiet {
			app := *now.App
			app.Quiet = false
			next.App = &app
		}
		return Outcome{Row: next}, nil
	}
	return same, agentapi.Errorf(agentapi.CodeNotFound, "There is no app of this name.")
}

// approvable refuses to approve what the owner cannot have meant. A program may
// change its request at any time, so between looking and clicking too.
func approvable(app *store.App, e Event) error {
	switch {
	case e.LabelTaken:
		return labelTaken(app.Label)
	case e.PortTaken:
		return agentapi.Errorf(agentapi.CodeConflict, "Port %d is Porchlight's own by now. Deny the request.", app.LocalPort)
	case e.Port == app.LocalPort && becameAnother(app.Listener, e):
		return agentapi.Errorf(agentapi.CodeConflict,
			"Another program listens on port %d by now: %s. Look again before you approve it.", app.LocalPort, programOf(e.Listener))
	case e.Seen != nil && (e.Seen.Label != app.Label || e.Seen.LocalPort != app.LocalPort):
		return agentapi.Errorf(agentapi.CodeConflict,
			"The request has changed meanwhile: it is %q on port %d now. Look again before you approve it.", app.Label, app.LocalPort)
	case e.Seen != nil && e.Port == app.LocalPort && notAsSeen(*e.Seen, e):
		return agentapi.Errorf(agentapi.CodeConflict,
			"Another program listens on port %d than you were shown: now it is %s. Look again before you approve it.", app.LocalPort, programOf(e.Listener))
	}
	return nil
}

// publish is the app's own step: a request where there is no approval, and live
// at once where there is one.
func publish(now Row, e Event) (Outcome, error) {
	if e.LabelTaken {
		return Outcome{Row: now}, labelTaken(e.Label)
	}
	if !approved(now.App) {
		app := store.App{Status: agentapi.StatusPending, RequestedAt: e.At, Quiet: e.AskedLately}
		if now.App != nil {
			app = *now.App
		}
		app.Quiet = quiet(now.Denial, e.At) || now.Denial == nil && app.Quiet
		app.Label, app.LocalPort, app.Listener, app.Asker = e.Label, e.Port, e.Listener, e.By.asker()
		return Outcome{Row: Row{App: &app, Denial: now.Denial}}, nil
	}
	held := approvedOf(now.App)
	waits := now.App.Approved != nil && now.App.LocalPort != held.LocalPort && !held.OtherUser // because of its port
	if held.LocalPort != e.Port && (e.AskAgain || waits) || otherUser(now.App, e) {
		return askAgain(now, held, e), nil
	}
	now.App = asApproved(now.App)
	app := *now.App
	app.Status, app.Label, app.LocalPort, app.Quiet = agentapi.StatusLive, e.Label, e.Port, false
	app.Asker = e.By.asker()
	if e.Listener != (agentapi.Listener{}) || e.Port != now.App.LocalPort {
		// Nobody seen on the same port keeps who was seen there last: another
		// program could otherwise slip in after a moment of silence.
		app.Listener = lastSeen(now.App.Listener, e.Listener)
	}
	notices := changes(*now.App, app, e.At)
	if app.ApprovedFor == nil && e.Listening {
		notices = append(notices, record(&app, e))
	}
	return Outcome{Row: Row{App: &app, Denial: now.Denial}, Notices: notices}, nil
}

// lastSeen is who listens now. Where that is the same user's program, but not yet
// known which, it stays the one known before: that Run finds another is told then.
func lastSeen(was, is agentapi.Listener) agentapi.Listener {
	same := is.UserID == was.UserID || was.UserID == "" && is.User == was.User
	if is.Program == "" && is.UserID != "" && same {
		is.PID, is.Program = was.PID, was.Program
	}
	return is
}

// changes tells the owner what an approved app altered about itself without
// asking. An app that was stopped counts too: whoever takes its name over would
// stop it first.
func changes(before, after store.App, at time.Time) []agentapi.Notice {
	var notices []agentapi.Notice
	add := func(kind, text string) {
		notices = append(notices, agentapi.Notice{At: at, Kind: kind, App: after.Name, Text: text})
	}
	if before.Label != after.Label {
		add("renamed", fmt.Sprintf("%s is now called %s.", before.Label, after.Label))
	}
	switch was, is := before.Listener, after.Listener; {
	case was.Program != "" && is.Program != "" && was.Program != is.Program:
		add("program-changed", fmt.Sprintf("%s is now answered by %s on port %d. Before, it was %s on port %d.",
			after.Label, is.Program, after.LocalPort, was.Program, before.LocalPort))
	case was.User != "" && is.User != "" && was.User != is.User:
		// The system does not name the programs of other users.
		add("program-changed", fmt.Sprintf("%s is now answered by a program of the user %s on port %d. Before, it was one of %s on port %d.",
			after.Label, is.User, after.LocalPort, was.User, before.LocalPort))
	case before.LocalPort != after.LocalPort:
		add("port-changed", fmt.Sprintf("%s now answers on port %d. Before, it was port %d.", after.Label, after.LocalPort, before.LocalPort))
	}
	return notices
}

func stopped(now Row) Outcome {
	app := *now.App
	app.Status = agentapi.StatusRevoked
	return Outcome{Row: Row{App: &app, Denial: now.Denial}, Gone: app.ID}
}

func denied(before *store.Denial, at time.Time) *store.Denial {
	d := store.Denial{At: at, Count: 1}
	if before != nil {
		d.Count, d.Muted = before.Count+1, before.Muted
	}
	d.Muted = d.Muted || d.Count >= mutedAfter
	return &d
}

func quiet(d *store.Denial, at time.Time) bool {
	return d != nil && (d.Muted || at.Before(d.At.Add(quietFor)))
}

func labelTaken(label string) error {
	return agentapi.Errorf(agentapi.CodeConflict,
		"Another app is called %q already. Choose another label, so that people can tell them apart.", label)
}

func notApproved(label string) error {
	return agentapi.Errorf(agentapi.CodeConflict, "%q waits for your approval. Approve it or deny it.", label)
}

package desktop

import (
	"context"
	"errors"
	"fmt"

	"porchlight/agent/agentapi"
	"porchlight/desktop/ui"
)

// verb is what a line of the menu, or a button of a notification, does.
type verb string

const (
	doNothing      verb = ""
	doCopy         verb = "copy"
	doApprove      verb = "approve"
	doApproveAlone verb = "approve-alone" // and take it from everybody else
	doDeny         verb = "deny"
	doOpen         verb = "open"
	doPause        verb = "pause"
	doResume       verb = "resume"
	doRevoke       verb = "revoke"
	doAllowUser    verb = "allow-user" // of this computer
	doDenyUser     verb = "deny-user"
	doRevokeGrant  verb = "revoke-client"
	doUndo         verb = "undo" // what a notice is about
	doDark         verb = "dark"
	doLight        verb = "light"
	doUnlock       verb = "unlock"      // have the keychain ask for its password
	doSecretFile   verb = "secret-file" // keep the owner secret in one
	doLogin        verb = "login"       // start at login
	doShow         verb = "show"        // the window
	doQuit         verb = "quit"
)

// action is a verb with its object.
type action struct {
	verb  verb
	name  string // the app's, or the id of a grant or a user
	label string // what the owner calls it
	// seen is what the owner was looking at when approving: a request that
	// changed since is not what they meant.
	seen   seen
	text   string // what doCopy copies
	view   string // where doShow opens the window, name being what of it; empty: where it was
	notice uint64 // of doUndo
	on     bool   // of doLogin
}

// seen is the part of a request an approval depends on. The agent compares it with
// what is there when the approval arrives.
type seen struct {
	label   string
	port    int
	program string
	user    string
}

func seenOf(a agentapi.OwnerApp) seen {
	return seen{label: a.Label, port: a.LocalPort, program: a.Listener.Program, user: a.Listener.User}
}

func (s seen) wire() agentapi.Seen {
	return agentapi.Seen{Label: s.label, LocalPort: s.port, Program: &s.program, User: &s.user}
}

// perform does what was clicked, in the tray or on a notification.
func (a *app) perform(act action) {
	ctx, cancel := context.WithTimeout(a.ctx, patience)
	defer cancel()
	switch act.verb {
	case doNothing:
		return
	case doQuit:
		a.quit()
		return
	case doShow:
		a.showPlace(ui.Place{View: act.view, Argument: act.name})
		return
	}
	done, err := a.carryOut(ctx, act)
	switch {
	case a.ctx.Err() != nil:
	case err != nil:
		if errors.Is(err, context.DeadlineExceeded) {
			err = errSilent
		}
		a.log.Warn("could not do what was clicked", "verb", string(act.verb), "app", act.name, "err", err)
		body := err.Error()
		if act.verb == doCopy {
			body += "\n" + act.text
		}
		a.tell(note{key: keyFailed, title: failed(act.verb), body: body, click: action{verb: doShow}})
	case done.title != "":
		a.tellUnlessQuiet(ctx, done)
	}
}

// carryOut also returns the note that tells what came of it, if anything has to
// be told: what ends somebody's access does.
func (a *app) carryOut(ctx context.Context, act action) (done note, err error) {
	switch act.verb {
	case doCopy:
		return note{}, a.copy(act.text)
	case doOpen:
		return note{}, a.open(ctx, act.name)
	case doLogin:
		return note{}, a.desk.StartAtLogin(act.on)
	case doUnlock:
		a.unlockKeychain()
		return note{}, nil
	case doSecretFile:
		return note{}, a.desk.KeepInFile()
	}
	c, err := a.agent()
	if err != nil {
		return note{}, err
	}
	label := isolate(shorten(act.label))
	var closed agentapi.Closed
	switch act.verb {
	case doApprove:
		var pub agentapi.Approved
		pub, err = c.ApproveSeen(ctx, act.name, act.seen.wire())
		done = approved(label, pub)
	case doApproveAlone:
		var pub agentapi.Approved
		pub, err = c.ApproveAlone(ctx, act.name, act.seen.wire())
		done = approved(label, pub)
	case doDeny:
		err = c.Deny(ctx, act.name)
	case doAllowUser:
		_, err = c.AllowUser(ctx, act.name)
	case doDenyUser:
		_, err = c.DenyUser(ctx, act.name)
	case doResume:
		err = c.Resume(ctx, act.name)
	case doLight:
		err = c.LightUp(ctx)
	case doUndo:
		if err = c.UndoNotice(ctx, act.notice); err == nil {
			done = note{key: keyNotice(act.notice), kind: kindCapability, title: "Undone", body: act.text, click: action{verb: doShow, view: viewPeople}}
		}
	case doPause:
		closed, err = c.Pause(ctx, act.name)
		done = ended(act, label+" is paused", closed)
	case doRevoke:
		closed, err = c.Revoke(ctx, act.name)
		done = ended(act, label+" is revoked", closed)
	case doRevokeGrant:
		closed, err = c.RevokeGrant(ctx, act.name)
		done = ended(act, label+" is let in no more", closed)
	case doDark:
		closed, err = c.GoDark(ctx)
		done = ended(act, "Dark: nobody can open anything", closed)
	}
	if err != nil {
		return note{}, err
	}
	return done, nil
}

// approved is the note about an app that has no address to be on yet, or is on and does
// not do what visitors come for; any other is seen in the menu.
func approved(label string, app agentapi.Approved) note {
	n := note{key: keyApproved, kind: kindRequest, click: action{verb: doShow, view: viewApps}}
	switch {
	case app.Status == agentapi.StatusPending:
		n.title, n.body = label+" is approved", "It gets its address once this computer is connected."
	case app.Does().Ails():
		n.title, n.body = label+" is on", isolate(app.HealthDetail)
	default:
		return note{}
	}
	return n
}

// ended tells that access ended, and what that closed. A later one takes an
// earlier one's place: only the last is news.
func ended(act action, title string, closed agentapi.Closed) note {
	n := note{key: keyEnded, kind: kindAccess, title: title, body: closedWords(closed), click: action{verb: doShow, view: viewApps}}
	switch act.verb {
	case doDark:
		n.buttons = []button{{"Light up again", action{verb: doLight}}}
	case doPause:
		n.buttons = []button{{"Resume", action{verb: doResume, name: act.name, label: act.label}}}
	case doRevokeGrant:
		n.click.view = viewClients
	}
	return n
}

func failed(v verb) string {
	switch v {
	case doCopy:
		return "The address was not copied"
	case doOpen:
		return "The app could not be opened"
	case doRevokeGrant:
		return "The connected app was not revoked"
	case doUndo:
		return "It was not undone"
	case doAllowUser, doDenyUser:
		return "The user was not answered"
	case doDark:
		return "Porchlight did not go dark"
	case doLight:
		return "Porchlight did not light up again"
	case doLogin:
		return "Starting at login was not changed"
	case doSecretFile:
		return "The owner secret was not kept"
	}
	past := map[verb]string{
		doApprove: "approved", doApproveAlone: "approved", doDeny: "denied", doPause: "paused", doResume: "resumed", doRevoke: "revoked",
	}[v]
	return fmt.Sprintf("The app was not %s", past)
}

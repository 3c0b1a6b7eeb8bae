package desktop

import (
	"context"
	"errors"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
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
	doUndo         verb = "undo"       // what a notice is about
	doAnswer       verb = "answer"     // somebody who knocks
	doDisconnect   verb = "disconnect" // what somebody has open
	doRemove       verb = "remove"     // a person, from everything
	doTake         verb = "take"       // an app from a person
	doGive         verb = "give"       // an app to a person
	doProlong      verb = "prolong"    // apps of a person that have ended, by a week
	doGiveBack     verb = "give-back"  // what doRemove or doTake took, while it is held
	doTakeBack     verb = "take-back"  // what doGive or doAnswer gave
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
	text   string // what doCopy copies; the answer of doAnswer
	person string // account id of whom it is about; label is their address
	app    string // label of the app it is about; of several, one a line
	grant  string // of doDisconnect: the connected app, not the browsers
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
		if act.view == viewAdd {
			a.dismiss(act.name)
		}
		a.showPlace(ui.Place{View: act.view, Argument: act.name})
		return
	}
	done, err := a.carryOut(ctx, act)
	switch {
	case a.ctx.Err() != nil:
	case err != nil:
		body := a.whyNot(act, err)
		if act.verb == doCopy {
			body += "\n" + act.text
		}
		a.tell(note{key: keyFailed, title: failed(act.verb), body: body, click: action{verb: doShow}})
	case done.title != "":
		a.tellUnlessQuiet(ctx, done)
	}
}

// whyNot is why something that was clicked was not done.
func (a *app) whyNot(act action, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errSilent
	}
	a.log.Warn("could not do what was clicked", "verb", string(act.verb), "app", act.name, "err", err)
	return language.ErrorInWords(err).Error()
}

// carryOut also returns the note that tells what came of it: whatever gives or ends
// access, and what the menu does not show by itself.
func (a *app) carryOut(ctx context.Context, act action) (done note, err error) {
	switch act.verb {
	case doCopy:
		if err = a.copy(act.text); err == nil {
			done = note{key: keyCopied, title: language.Say("Copied"), body: act.text, life: glance}
		}
		return done, err
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
	if act.person != "" || act.verb == doAnswer {
		return a.carryOutFor(ctx, c, act)
	}
	label := language.Named(act.label)
	var closed agentapi.Closed
	switch act.verb {
	case doApprove:
		var pub agentapi.Approved
		pub, err = c.ApproveSeen(ctx, act.name, act.seen.wire())
		done = a.approved(act, pub)
	case doApproveAlone:
		var pub agentapi.Approved
		pub, err = c.ApproveAlone(ctx, act.name, act.seen.wire())
		done = a.approved(act, pub)
	case doDeny:
		_, err = c.Deny(ctx, act.name)
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
			done = note{key: keyNotice(act.notice), kind: kindCapability, title: language.Say("Undone"), body: act.text, click: action{verb: doShow, view: viewPeople}}
		}
	case doPause:
		closed, err = c.Pause(ctx, act.name)
		done = ended(act, language.Say("%s is paused", label), closed)
	case doRevoke:
		closed, err = c.Revoke(ctx, act.name)
		done = ended(act, language.Say("%s is revoked", label), closed)
	case doRevokeGrant:
		closed, err = c.RevokeGrant(ctx, act.name)
		done = ended(act, language.Say("%s is let in no more", label), closed)
	case doDark:
		closed, err = c.GoDark(ctx)
		done = ended(act, language.Say("Dark: nobody can open anything"), closed)
	}
	if err != nil {
		return note{}, err
	}
	return done, nil
}

func failed(v verb) string {
	switch v {
	case doCopy:
		return language.Say("The address was not copied")
	case doOpen:
		return language.Say("The app could not be opened")
	case doRevokeGrant:
		return language.Say("The connected app was not revoked")
	case doUndo, doGiveBack, doTakeBack:
		return language.Say("It was not undone")
	case doAllowUser, doDenyUser:
		return language.Say("The user was not answered")
	case doDark:
		return language.Say("Porchlight did not go dark")
	case doLight:
		return language.Say("Porchlight did not light up again")
	case doLogin:
		return language.Say("Starting at login was not changed")
	case doSecretFile:
		return language.Say("The owner secret was not kept")
	case doAnswer:
		return language.Say("The answer was not given")
	case doDisconnect:
		return language.Say("Nobody was disconnected")
	case doRemove, doTake:
		return language.Say("Nothing was taken away")
	case doGive, doProlong:
		return language.Say("Nothing was given")
	case doApprove, doApproveAlone:
		return language.Say("The app was not approved")
	case doDeny:
		return language.Say("The app was not denied")
	case doPause:
		return language.Say("The app was not paused")
	case doResume:
		return language.Say("The app was not resumed")
	}
	return language.Say("The app was not revoked")
}

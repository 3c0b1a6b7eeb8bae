package desktop

import (
	"context"
	"errors"
	"fmt"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/notes"
	"porchlight/desktop/ui"
	"porchlight/desktop/verbs"
	"porchlight/internal/words"
)

// perform does what was clicked, in the tray or on a notification.
func (a *app) perform(act verbs.Action) {
	ctx, cancel := context.WithTimeout(a.ctx, patience)
	defer cancel()
	switch act.Verb {
	case verbs.Nothing:
		return
	case verbs.Quit:
		a.quit()
		return
	case verbs.Show:
		if act.View == verbs.ViewAdd {
			a.dismiss(act.Name)
		}
		a.showPlace(ui.Place{View: act.View, Argument: act.Name})
		return
	}
	done, err := a.carryOut(ctx, act)
	switch {
	case a.ctx.Err() != nil:
	case err != nil:
		body := a.whyNot(act, err)
		if act.Verb == verbs.Copy {
			body += "\n" + act.Text
		}
		a.tell(notes.Note{Key: notes.KeyFailed, Title: failed(act.Verb), Body: body, Click: verbs.Action{Verb: verbs.Show}})
	case done.Title != "":
		a.tellUnlessQuiet(ctx, done)
	}
}

// whyNot is why something that was clicked was not done.
func (a *app) whyNot(act verbs.Action, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errSilent
	}
	a.log.Warn("could not do what was clicked", "verb", string(act.Verb), "app", act.Name, "err", err)
	return language.Sentence(err)
}

// carryOut also returns the note that tells what came of it, unless it failed: whatever
// gives or ends access, and what the menu does not show by itself.
func (a *app) carryOut(ctx context.Context, act verbs.Action) (notes.Note, error) {
	switch act.Verb {
	case verbs.Copy:
		return notes.Note{Key: notes.KeyCopied, Title: language.Say("Copied"), Body: act.Text, Life: glance}, a.copy(act.Text)
	case verbs.Open:
		return notes.Note{}, a.open(ctx, act.Name)
	case verbs.Login:
		return notes.Note{}, a.desk.StartAtLogin(act.On)
	case verbs.Unlock:
		a.unlockKeychain()
		return notes.Note{}, nil
	case verbs.SecretFile:
		return notes.Note{}, a.desk.KeepInFile()
	}
	c, err := a.agent()
	if err != nil {
		return notes.Note{}, err
	}
	if act.Person != "" || act.Verb == verbs.Answer {
		return a.carryOutFor(ctx, c, act)
	}
	switch act.Verb {
	case verbs.Approve, verbs.ApproveAlone:
		pub, err := c.ApproveSeen(ctx, act.Name, agentapi.Approval{Seen: new(act.Seen.Wire()), Alone: act.Verb == verbs.ApproveAlone, Until: act.Until})
		return notes.Approved(act, a.seenApp(act.Name), pub), err
	case verbs.Undo:
		done := notes.Note{Key: notes.KeyNotice(act.Notice), Kind: agentapi.KindCapability, Title: language.Say("Undone"), Body: act.Text, Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}}
		return done, c.UndoNotice(ctx, act.Notice)
	case verbs.GiveGroup, verbs.TakeGroup:
		return a.changeGroup(ctx, c, act)
	case verbs.Pause, verbs.Revoke, verbs.RevokeGrant, verbs.Dark:
		return shut(ctx, c, act)
	}
	return notes.Note{}, settle(ctx, c, act)
}

// shut ends access, and tells how many were connected.
func shut(ctx context.Context, c *agentapi.Client, act verbs.Action) (notes.Note, error) {
	var title string
	var closed agentapi.Closed
	var err error
	switch label := language.Named(act.Label); act.Verb {
	case verbs.Pause:
		closed, err = c.Pause(ctx, act.Name)
		title = language.Say("%s is paused", label)
	case verbs.Revoke:
		closed, err = c.Revoke(ctx, act.Name)
		title = language.Say("%s is revoked", label)
	case verbs.RevokeGrant:
		closed, err = c.RevokeGrant(ctx, act.Name)
		title = language.Say("%s is let in no more", label)
	case verbs.Dark:
		closed, err = c.GoDark(ctx)
		title = language.Say("Dark: nobody can open anything")
	}
	return notes.Ended(act, title, closed), err
}

// settle does what the menu shows by itself once it is done.
func settle(ctx context.Context, c *agentapi.Client, act verbs.Action) (err error) {
	switch act.Verb {
	case verbs.Deny:
		_, err = c.Deny(ctx, act.Name)
	case verbs.AllowUser:
		_, err = c.AllowUser(ctx, act.Name)
	case verbs.DenyUser:
		_, err = c.DenyUser(ctx, act.Name)
	case verbs.Resume:
		err = c.Resume(ctx, act.Name)
	case verbs.Light:
		err = c.LightUp(ctx)
	}
	return err
}

// failures are the titles of the notes that tell what was not done.
var failures = map[verbs.Verb]words.Sentence{
	verbs.Copy:         words.Of("The address was not copied"),
	verbs.Open:         words.Of("The app could not be opened"),
	verbs.RevokeGrant:  words.Of("The connected app was not revoked"),
	verbs.Undo:         words.Of("It was not undone"),
	verbs.GiveBack:     words.Of("It was not undone"),
	verbs.TakeBack:     words.Of("It was not undone"),
	verbs.AllowUser:    words.Of("The user was not answered"),
	verbs.DenyUser:     words.Of("The user was not answered"),
	verbs.Dark:         words.Of("Porchlight did not go dark"),
	verbs.Light:        words.Of("Porchlight did not light up again"),
	verbs.Login:        words.Of("Starting at login was not changed"),
	verbs.SecretFile:   words.Of("The owner secret was not kept"),
	verbs.Answer:       words.Of("The answer was not given"),
	verbs.Disconnect:   words.Of("Nobody was disconnected"),
	verbs.Remove:       words.Of("Nothing was taken away"),
	verbs.Take:         words.Of("Nothing was taken away"),
	verbs.Give:         words.Of("Nothing was given"),
	verbs.Prolong:      words.Of("Nothing was given"),
	verbs.TakeGroup:    words.Of("Nothing was taken away"),
	verbs.GiveGroup:    words.Of("Nothing was given"),
	verbs.Approve:      words.Of("The app was not approved"),
	verbs.ApproveAlone: words.Of("The app was not approved"),
	verbs.Deny:         words.Of("The app was not denied"),
	verbs.Pause:        words.Of("The app was not paused"),
	verbs.Resume:       words.Of("The app was not resumed"),
	verbs.Revoke:       words.Of("The app was not revoked"),
}

func failed(v verbs.Verb) string { return language.Spoken().Tell(failures[v]) }

// keyOnce is a key that no other note has.
func (a *app) keyOnce() string { return fmt.Sprintf("done-%d", a.noted.Add(1)) }

// seenApp is an app as the snapshot has it.
func (a *app) seenApp(name string) agentapi.OwnerApp {
	s, _ := a.snapshot()
	for _, app := range s.Apps {
		if app.Name == name {
			return app
		}
	}
	return agentapi.OwnerApp{}
}

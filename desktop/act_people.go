package desktop

import (
	"context"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
)

const (
	// undoFor is how long a note offers to take back what was taken away, and heldFor
	// how long the agent keeps it from the control plane: a click at the last moment
	// still counts.
	undoFor = 8 * time.Second
	heldFor = 10

	// glance is how long a note stays that only says it is done.
	glance = 4 * time.Second
)

// carryOutFor does what is about one person.
func (a *app) carryOutFor(ctx context.Context, c *agentapi.Client, act verbs.Action) (notes.Note, error) {
	who, app := language.Named(act.Label), language.Named(act.App)
	held := agentapi.HeldChange{AccountID: act.Person, App: act.App}
	done := notes.Note{Key: a.keyOnce(), Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}}
	switch act.Verb {
	case verbs.Answer:
		return a.answerKnock(ctx, c, act)
	case verbs.Disconnect:
		closed, err := c.DisconnectVisitor(ctx, agentapi.DisconnectRequest{AccountID: act.Person, GrantID: act.Grant, PasswordID: act.Name})
		return a.disconnected(act, closed), err
	case verbs.Remove:
		got, err := c.RemoveHeld(ctx, agentapi.RemoveRequest{AccountID: act.Person, HoldSeconds: heldFor})
		done.Title, done.Body = language.Say("%s is removed", who), language.Say("Can't open anything any more. %s", language.ClosedWords(closedBy(got)))
		return a.undoable(done, got, verbs.Action{Verb: verbs.GiveBack, Person: act.Person, Label: act.Label}), err
	case verbs.Take:
		got, err := c.SetAccess(ctx, agentapi.AccessRequest{AccountID: act.Person, App: act.App, HoldSeconds: heldFor})
		done.Title, done.Body = language.Say("%[1]s can't open %[2]s any more", who, app), language.ClosedWords(closedBy(got))
		return a.undoable(done, got, verbs.Action{Verb: verbs.GiveBack, Person: act.Person, Label: act.Label, App: act.App}), err
	case verbs.Give:
		_, err := c.SetAccess(ctx, agentapi.AccessRequest{AccountID: act.Person, App: act.App, Granted: true})
		done.Title = language.Say("%[1]s may open %[2]s", who, app)
		return a.given(done, act), err
	case verbs.Prolong:
		return a.prolong(ctx, c, act)
	case verbs.GiveBack:
		_, err := c.UndoHeld(ctx, held)
		done.Title, done.Body, done.Life = language.Say("Undone"), language.Say("%s can open what they could before.", who), glance
		return done, err
	case verbs.TakeBack:
		return done, a.takeBack(ctx, c, act, &done)
	}
	return notes.Note{}, nil
}

// changeGroup gives an app to a group, or takes it from one; Undo does the other.
func (a *app) changeGroup(ctx context.Context, c *agentapi.Client, act verbs.Action) (notes.Note, error) {
	who, app := language.Named(act.Label), language.Named(act.App)
	done := notes.Note{Key: a.keyOnce(), Life: undoFor, Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople, Name: act.Name}}
	back, req := act, agentapi.GroupAppRequest{App: act.App}
	var err error
	if act.Verb == verbs.GiveGroup {
		req.Until = act.Until // of what was taken away, where this undoes it
		_, err = c.GrantGroup(ctx, act.Name, req)
		done.Title, back.Verb = language.Say("%[1]s may open %[2]s", who, app), verbs.TakeGroup
	} else {
		var got agentapi.GroupChanged
		got, err = c.WithdrawGroup(ctx, act.Name, req)
		done.Title, done.Body = language.Say("%[1]s can't open %[2]s any more", who, app), language.ClosedWords(agentapi.Closed{Closed: got.Closed, Milliseconds: got.Milliseconds})
		if back.Verb, back.Until = verbs.GiveGroup, ""; got.Until != nil {
			back.Until = got.Until.Format(time.RFC3339) // as it was then, whatever a menu of before says
		}
	}
	done.Buttons = []notes.Button{{Text: language.Say("Undo"), Do: back}}
	return done, err
}

// undoable offers to take back what is held, for as long as it is.
func (a *app) undoable(done notes.Note, got agentapi.PersonChanged, undo verbs.Action) notes.Note {
	if got.HeldUntil != nil {
		done.Buttons, done.Life = []notes.Button{{Text: language.Say("Undo"), Do: undo}}, undoFor
	}
	return done
}

func closedBy(got agentapi.PersonChanged) agentapi.Closed {
	return agentapi.Closed{Closed: got.Closed, Milliseconds: got.Milliseconds}
}

// disconnected offers what the owner may have meant: those who were disconnected can
// come back.
func (a *app) disconnected(act verbs.Action, closed agentapi.Closed) notes.Note {
	who, apps := language.Named(act.Label), strings.Split(act.App, "\n")
	done := notes.Note{Key: a.keyOnce(), Title: language.Say("%s is disconnected", who), Body: language.ClosedWords(closed), Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewActivity}}
	if act.Grant == "" && act.Name == "" {
		done.Body = language.Say("%[1]s They may still open %[2]s.", done.Body, language.Named(language.Spoken().List(apps, 3)))
		done.Buttons = []notes.Button{{Text: language.Say("Remove"), Do: verbs.RemoveOf(act.Person, act.Label)}}
	}
	return done
}

// answerKnock answers somebody who asked to be let in.
func (a *app) answerKnock(ctx context.Context, c *agentapi.Client, act verbs.Action) (notes.Note, error) {
	got, err := c.AnswerKnock(ctx, act.Name, act.Text)
	if err != nil {
		return notes.Note{}, err
	}
	who, app := language.Named(act.Label), language.Named(got.App)
	done := notes.Note{Key: a.keyOnce(), Life: undoFor, Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople}}
	back := verbs.Action{Verb: verbs.TakeBack, Person: act.Person, Label: act.Label, App: got.App, Name: got.Status}
	switch act.Text {
	case agentapi.KnockToday:
		done.Title = language.Say("%[1]s may open %[2]s until midnight", who, app)
	case agentapi.KnockAlways:
		done.Title = language.Say("%[1]s may open %[2]s", who, app)
	case agentapi.KnockNever:
		return notes.Note{Key: a.keyOnce(), Title: language.Say("%s is not heard any more", who), Body: language.Say("Until you invite them."), Life: glance, Click: done.Click}, nil
	default:
		return notes.Note{Key: a.keyOnce(), Title: language.Say("%s is not let in", who), Body: language.Say("You won't hear of it for 30 days."), Life: glance, Click: done.Click}, nil
	}
	done.Body = language.Say("Their page goes on by itself.")
	done.Buttons = []notes.Button{{Text: language.Say("Undo"), Do: back}}
	return done, nil
}

// takeBack undoes a yes: an invitation that nobody has accepted so far is withdrawn
// as a whole, unless they were invited to something else as well.
func (a *app) takeBack(ctx context.Context, c *agentapi.Client, act verbs.Action, done *notes.Note) error {
	got, err := c.SetAccess(ctx, agentapi.AccessRequest{AccountID: act.Person, App: act.App})
	who := got.Person // may be as they were before the yes, which this computer has not heard of
	alone := who.Status == agentapi.PersonRemoved || who.Status == agentapi.PersonPending && len(who.Apps) == 0
	if err == nil && act.Name == agentapi.PersonPending && alone {
		_, err = c.Remove(ctx, act.Person)
	}
	done.Title, done.Life = language.Say("Undone"), glance
	done.Body = language.Say("%[1]s can't open %[2]s.", language.Named(act.Label), language.Named(act.App))
	return err
}

// prolong gives apps that have ended for a week more, one after the other. Where one
// fails, the note names those that were given before it and the rest.
func (a *app) prolong(ctx context.Context, c *agentapi.Client, act verbs.Action) (notes.Note, error) {
	apps, until := strings.Split(act.App, "\n"), language.EndOfDay(time.Now(), 7)
	list := func(apps []string) string { return language.Named(language.Spoken().List(apps, 3)) }
	given, life, missing := apps, glance, ""
	for i, app := range apps {
		_, err := c.SetAccess(ctx, agentapi.AccessRequest{AccountID: act.Person, App: app, Granted: true, Until: until.Format(time.RFC3339)})
		if err != nil && i == 0 {
			return notes.Note{}, err
		}
		if err != nil {
			given, life, missing = apps[:i], 0, language.Say("Not given: %[1]s. %[2]s", list(apps[i:]), a.whyNot(act, err))
			break
		}
	}
	return notes.Note{
		Key: a.keyOnce(), Title: language.Say("%[1]s may open %[2]s until %[3]s", language.Named(act.Label), list(given), language.LastDayOf(until, time.Now())),
		Body: missing, Life: life, Click: verbs.Action{Verb: verbs.Show, View: verbs.ViewPeople},
	}, nil
}

// given tells where the app is that somebody was given, and offers what to do next.
func (a *app) given(done notes.Note, act verbs.Action) notes.Note {
	s, _ := a.snapshot()
	for _, app := range s.Apps {
		if app.Label != act.App {
			continue
		}
		done.Body = language.HostOf(app, s.Account.Host)
		if app.Host != "" {
			done.Buttons = []notes.Button{{Text: language.Say("Copy link"), Do: verbs.CopyOf(app, app.Host)}}
		}
	}
	done.Buttons = append(done.Buttons, notes.Button{Text: language.Say("Undo"), Do: verbs.Action{Verb: verbs.TakeBack, Person: act.Person, Label: act.Label, App: act.App}})
	return done
}

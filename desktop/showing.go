package desktop

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/notes"
	"porchlight/desktop/page"
	"porchlight/desktop/tray"
	"porchlight/desktop/ui"
	"porchlight/desktop/verbs"
	"porchlight/internal/broadcast"
)

// endsWithin is how soon a program ends that a signal ends, for which Wails closes the window,
// too: nobody is told then that it stays on.
const endsWithin = 300 * time.Millisecond

// hidden is told that the owner has closed the window. The first time that needs a
// word: nothing shows that Porchlight goes on.
func (a *app) hidden() {
	a.settle()
	select {
	case <-a.ctx.Done():
		return
	case <-time.After(endsWithin):
	}
	if a.settings.get().Closed || a.settings.change(func(v *settingsValues) { v.Closed = true }) != nil {
		return
	}
	where := language.Say("Its lamp is in the menu bar. Your apps can still be opened.")
	if !tray.Hosted() {
		where = language.Say("No panel here shows its lamp: start Porchlight again, and its window is back. Your apps can still be opened.")
	}
	a.tell(notes.Note{
		Key: notes.KeyStays, Title: language.Say("Porchlight stays on"), Body: where,
		Click: verbs.Action{Verb: verbs.Show}, Buttons: []notes.Button{{Text: language.Say("Quit"), Do: verbs.Action{Verb: verbs.Quit}}},
	})
}

// settle carries out what the window offered to undo: it is closed now.
func (a *app) settle() {
	c, err := a.agent()
	if err == nil {
		err = c.SettleHeld(a.ctx, agentapi.HeldChange{})
	}
	if err != nil && a.ctx.Err() == nil {
		a.log.Info("what the owner took away is carried out a little later", "err", err)
	}
}

// showWindow brings the window to the front, and has it made first if needed.
func (a *app) showWindow() {
	a.wished.Store(true) // before show, for the window may be made right after it
	if a.window.Show() {
		a.wished.Store(false)
		return
	}
	broadcast.Raise(a.wantWindow)
}

// showWith is showWindow for somebody to whom the desktop gave a token for it.
func (a *app) showWith(token string) {
	page.Focus(token)
	a.showWindow()
}

// showPlace is showWindow at a place; one without a view leaves it where it was.
func (a *app) showPlace(place ui.Place) {
	if place.View != "" {
		a.place.Store(&place)
	}
	a.showWindow()
	a.window.Emit("show", nil)
}

// wanted is the place last asked for, once: see ui.Shell.Wanted.
func (a *app) wanted() ui.Place {
	if place := a.place.Swap(nil); place != nil {
		return *place
	}
	return ui.Place{}
}

// showWished shows the window that somebody wished for while it was being made.
func (a *app) showWished() {
	if a.wished.Swap(false) {
		a.window.Show()
	}
}

// runWindow makes the window when it is first wanted. It returns when ctx ends.
// It must be called on the main goroutine.
func (a *app) runWindow(ctx context.Context) {
	stop := context.AfterFunc(ctx, a.window.Quit)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wantWindow:
		}
		err := a.window.Run()
		if ctx.Err() != nil {
			return
		}
		if err == nil { // the toolkit ended: the session did
			a.quit()
			return
		}
		a.log.Error(err.Error())
		n := notes.Note{Key: notes.KeyTrouble, Title: language.Say("Porchlight cannot open its window"), Body: language.Sentence(err)}
		if !a.notes.ToolkitGone(a.ctx, n) {
			a.tell(n)
		}
	}
}

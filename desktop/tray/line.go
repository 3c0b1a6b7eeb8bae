//go:build !darwin || cgo

package tray

import (
	"sync"
	"time"

	"fyne.io/systray"

	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
)

// trayLine is one line; each has a goroutine that waits for clicks, because
// systray drops a click that nobody is waiting for.
type trayLine struct {
	item *systray.MenuItem

	// What is shown, and the places below; run's goroutine only.
	text                     string
	shown, disabled, checked bool
	sub                      []*trayLine

	mu      sync.Mutex
	act     verbs.Action
	changed time.Time // when act came to be another
}

// set shows what the line says and does, or hides it where it says nothing.
func (l *trayLine) set(to menu.Line) {
	if to.Text == "" {
		l.hide()
		return
	}
	l.mean(to.Do, time.Now())
	if disabled := to.Do.Verb == verbs.Nothing && len(to.Sub) == 0; disabled != l.disabled {
		l.disabled = disabled
		if disabled {
			l.item.Disable()
		} else {
			l.item.Enable()
		}
	}
	if checked := to.Mark == menu.MarkOn; checked != l.checked {
		l.checked = checked
		if checked {
			l.item.Check()
		} else {
			l.item.Uncheck()
		}
	}
	if to.Text != l.text {
		l.text = to.Text
		l.item.SetTitle(literal(to.Text))
	}
	if !l.shown {
		l.shown = true
		l.item.Show()
	}
}

func (l *trayLine) hide() {
	l.forget(time.Now())
	if l.shown {
		l.shown = false
		l.item.Hide()
	}
}

// forget has a click on the line, or on one below it, do nothing: what could be
// clicked there is not on the screen any more.
func (l *trayLine) forget(now time.Time) {
	l.mu.Lock()
	if l.act.Verb != verbs.Nothing {
		l.act, l.changed = verbs.Action{}, now
	}
	l.mu.Unlock()
	for _, below := range l.sub {
		if below != nil {
			below.forget(now)
		}
	}
}

func (l *trayLine) mean(act verbs.Action, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.act == act {
		return
	}
	// A line that meant nothing for a while could not be aimed at. A request that
	// changed counts as another one: approving is about what was read.
	if l.act.Verb != verbs.Nothing || now.Sub(l.changed) < ignoreFor {
		l.changed = now
	}
	l.act = act
}

// clicked returns what a click now means; false where the line has meant it for
// too short a time.
func (l *trayLine) clicked(now time.Time) (verbs.Action, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.act, now.Sub(l.changed) >= ignoreFor
}

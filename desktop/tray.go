//go:build !darwin || cgo

package desktop

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fyne.io/systray"

	"porchlight/assets"
)

const (
	// applyEvery is the shortest time between two changes of the menu: hosts
	// read the whole menu again after each.
	applyEvery = 200 * time.Millisecond

	// settle is how long a line that came to mean something else ignores clicks:
	// the owner aimed at what it said before.
	settle = 500 * time.Millisecond
)

// tray shows menus in the panel. systray can only append lines, and cannot hide
// a separator, so all lines there can ever be are made once and then shown,
// hidden and renamed; nothing is added or removed while a menu may be open.
//
// systray's state is global: one tray per process.
type tray struct {
	log  *slog.Logger
	icon func(state string) (template, regular []byte)
	do   func(action) // called on a goroutine of its own

	next chan menu     // the latest menu not yet applied; holds one
	made chan struct{} // closed when the lines below exist

	// Set once before made is closed, changed by run only.
	status, address, waitingHead, moreWaiting, appsHead, moreApps *trayLine
	waiting                                                       []trayRequest
	apps                                                          []trayApp
	shownIcon, shownTip                                           string
}

type trayRequest struct {
	top                             *trayLine
	address, program, approve, deny *trayLine
}

type trayApp struct {
	top                      *trayLine
	open, copy, stop, revoke *trayLine
	consequence              [2]*trayLine
	confirm                  *trayLine
}

// newTray starts nothing; do is called for every click.
func newTray(log *slog.Logger, panel assets.Panel, do func(action)) *tray {
	return &tray{
		log:  log,
		icon: func(state string) ([]byte, []byte) { return trayIcon(state, panel) },
		do:   do,
		next: make(chan menu, 1),
		made: make(chan struct{}),
	}
}

// set has m shown soon; of several in quick succession only the last one is.
// It must be called from one goroutine at a time.
func (t *tray) set(m menu) {
	select {
	case <-t.next:
	default:
	}
	t.next <- m
}

// build makes the lines; systray calls it once, when it is ready for them.
func (t *tray) build() {
	top := func() *trayLine { return t.line(systray.AddMenuItem("", "")) }
	under := func(l *trayLine) *trayLine { return t.line(l.item.AddSubMenuItem("", "")) }

	t.status, t.address = top(), top()
	systray.AddSeparator()
	t.waitingHead = top()
	for range maxRequests {
		r := trayRequest{top: top()}
		r.address, r.program = under(r.top), under(r.top)
		r.top.item.AddSeparator()
		r.approve, r.deny = under(r.top), under(r.top)
		t.waiting = append(t.waiting, r)
	}
	t.moreWaiting = top()
	systray.AddSeparator()
	t.appsHead = top()
	for range maxApps {
		a := trayApp{top: top()}
		a.open, a.copy = under(a.top), under(a.top)
		a.top.item.AddSeparator()
		a.stop, a.revoke = under(a.top), under(a.top)
		a.consequence = [2]*trayLine{under(a.revoke), under(a.revoke)}
		a.revoke.item.AddSeparator()
		a.confirm = under(a.revoke)
		t.apps = append(t.apps, a)
	}
	t.moreApps = top()
	systray.AddSeparator()
	top().set(openPorchlight)
	systray.AddSeparator()
	top().set(quitPorchlight)

	// What is waiting already is the first menu anybody sees.
	select {
	case m := <-t.next:
		t.apply(m)
	default:
		t.apply(plainMenu(iconOff, "Starting…"))
	}
	close(t.made)
}

// run applies menus until ctx ends.
func (t *tray) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-t.made:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-t.next:
			t.apply(m)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(applyEvery):
		}
	}
}

func (t *tray) apply(m menu) {
	if m.icon != t.shownIcon {
		t.shownIcon = m.icon
		template, regular := t.icon(m.icon)
		systray.SetTemplateIcon(template, regular)
	}
	if tip := "Porchlight: " + m.status.text; tipsChange && tip != t.shownTip {
		t.shownTip = tip
		systray.SetTooltip(tip)
	}
	t.status.set(m.status)
	t.address.set(m.address)
	t.waitingHead.set(line{text: m.waitingHead})
	for i, slot := range t.waiting {
		if i >= len(m.waiting) {
			slot.top.hide()
			continue
		}
		r := m.waiting[i]
		slot.address.set(r.address)
		slot.program.set(r.program)
		slot.approve.set(r.approve)
		slot.deny.set(r.deny)
		slot.top.open(r.title)
	}
	t.moreWaiting.set(m.moreWaiting)
	t.appsHead.set(line{text: m.appsHead})
	for i, slot := range t.apps {
		if i >= len(m.apps) {
			slot.top.hide()
			continue
		}
		a := m.apps[i]
		slot.open.set(a.open)
		slot.copy.set(a.copy)
		slot.stop.set(a.stop)
		slot.consequence[0].set(a.consequence[0])
		slot.consequence[1].set(a.consequence[1])
		slot.confirm.set(a.confirm)
		slot.revoke.open(a.revoke)
		slot.top.open(a.title)
	}
	t.moreApps.set(m.moreApps)
}

// trayLine is one line; each has a goroutine that waits for clicks, because
// systray drops a click that nobody is waiting for.
type trayLine struct {
	item *systray.MenuItem

	// What is shown; run's goroutine only.
	text            string
	shown, disabled bool

	mu      sync.Mutex
	act     action
	changed time.Time // when act came to be another
}

func (t *tray) line(item *systray.MenuItem) *trayLine {
	l := &trayLine{item: item, shown: true}
	go func() {
		for range item.ClickedCh {
			if act, ok := l.clicked(time.Now()); ok {
				t.do(act)
			} else {
				t.log.Info("a click on a menu line that had just changed was ignored")
			}
		}
	}()
	return l
}

// set shows what the line says and does, or hides it where it says nothing.
func (l *trayLine) set(to line) {
	if to.text == "" {
		l.hide()
		return
	}
	l.mean(to.do, time.Now())
	if disabled := to.do.verb == doNothing; disabled != l.disabled {
		l.disabled = disabled
		if disabled {
			l.item.Disable()
		} else {
			l.item.Enable()
		}
	}
	l.open(to.text)
}

// open shows a line that has lines below it.
func (l *trayLine) open(text string) {
	if text != l.text {
		l.text = text
		l.item.SetTitle(literal(text))
	}
	if !l.shown {
		l.shown = true
		l.item.Show()
	}
}

func (l *trayLine) hide() {
	l.mu.Lock()
	l.act = action{}
	l.mu.Unlock()
	if l.shown {
		l.shown = false
		l.item.Hide()
	}
}

func (l *trayLine) mean(act action, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.act == act {
		return
	}
	// A line that meant nothing before could not be aimed at. A request that
	// changed counts as another one: approving is about what was read.
	if l.act.verb != doNothing {
		l.changed = now
	}
	l.act = act
}

// clicked returns what a click now means; false where the line has meant it for
// too short a time.
func (l *trayLine) clicked(now time.Time) (action, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.act, now.Sub(l.changed) >= settle
}

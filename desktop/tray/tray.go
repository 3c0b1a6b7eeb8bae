//go:build !darwin || cgo

// Package tray shows menus in the panel, with the icon, and hands on what is clicked.
package tray

import (
	"context"
	"log/slog"
	"time"

	"fyne.io/systray"

	"porchlight/desktop/language"
	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
	"porchlight/internal/broadcast"
)

const (
	// applyEvery is the shortest time between two changes of the menu: hosts
	// read the whole menu again after each.
	applyEvery = 200 * time.Millisecond

	// drawAgain is when an icon is told once more: GNOME's extension (46) passes over one
	// that comes while it still draws the one before.
	drawAgain = 2 * time.Second

	// ignoreFor is how long a line that came to mean something else ignores clicks:
	// the owner aimed at what it said before.
	ignoreFor = 500 * time.Millisecond
)

// tray shows menus in the panel. systray can append lines and hide them, and can
// neither move a separator nor hide one; so a place, once made, is only shown,
// hidden and renamed (see menu).
//
// systray's state is global: one tray per process.
type Tray struct {
	log  *slog.Logger
	icon func(state string) (template, regular []byte)
	do   func(verbs.Action) // called on a goroutine of its own

	next  chan menu.Menu // the latest menu not yet applied; holds one
	made  chan struct{}  // closed when the menu can be read
	other chan struct{}  // holds one: the icon is to be drawn for another panel

	// Set before made is closed, changed by run only.
	shown               menu.Menu
	lines               []*trayLine
	shownIcon, shownTip string
}

// New starts nothing; panel is what the owner chose, see panelOf, and do is called for
// every click.
func New(log *slog.Logger, panel func() string, do func(verbs.Action)) *Tray {
	return &Tray{
		log:  log,
		icon: func(state string) ([]byte, []byte) { return trayIcon(state, panelOf(panel())) },
		do:   do,

		next:  make(chan menu.Menu, 1),
		made:  make(chan struct{}),
		other: make(chan struct{}, 1),
	}
}

// Set has m shown soon; of several in quick succession only the last one is.
// It must be called from one goroutine at a time.
func (t *Tray) Set(m menu.Menu) {
	select {
	case <-t.next:
	default:
	}
	t.next <- m
}

// Redraw has the icon drawn anew, for another panel.
func (t *Tray) Redraw() { broadcast.Raise(t.other) }

// build makes the menu's lines; systray calls it once, when it is ready for them.
func (t *Tray) build() {
	m := menu.Empty(menu.IconOff, language.Say("Starting…"), false)
	// What is waiting already is the first menu anybody sees.
	select {
	case m = <-t.next:
	default:
	}
	t.apply(m)
	close(t.made)
}

// Run applies menus until ctx ends, and then the last one.
func (t *Tray) Run(ctx context.Context, last func() menu.Menu) {
	select {
	case <-ctx.Done():
		return
	case <-t.made:
	}
	defer func() { t.apply(last()) }()
	var again <-chan time.Time
	for {
		m, icon := t.shown, t.shownIcon
		select {
		case <-ctx.Done():
			return
		case m = <-t.next:
		case <-t.other:
			t.shownIcon, icon = "", ""
		case <-again:
			t.draw(t.shownIcon)
		}
		t.apply(m)
		if t.shownIcon != icon {
			again = time.After(drawAgain)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(applyEvery):
		}
	}
}

// WatchOpening calls opened whenever the menu is opened, as far as panels tell.
func (t *Tray) WatchOpening(ctx context.Context, opened func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-systray.TrayOpenedCh:
			opened()
		}
	}
}

func (t *Tray) apply(m menu.Menu) {
	if m.Icon != t.shownIcon {
		t.shownIcon = m.Icon
		t.draw(m.Icon)
	}
	if tip := "Porchlight: " + m.Tip; tip != t.shownTip {
		t.shownTip = tip
		systray.SetTooltip(tip)
	}
	t.shown = m
	t.lines = t.fill(nil, t.lines, m.Lines)
}

// draw sets the icon. systray panics there while the session bus is away, after
// it has kept the icon, and shows it when the bus is back.
func (t *Tray) draw(icon string) {
	defer func() {
		if r := recover(); r != nil {
			t.log.Warn("the icon cannot be drawn now", "cause", r)
		}
	}()
	template, regular := t.icon(icon)
	systray.SetTemplateIcon(template, regular)
}

// fill has the places below a line, or of the menu itself, show lines.
func (t *Tray) fill(under *trayLine, places []*trayLine, lines []menu.Line) []*trayLine {
	for i, l := range lines {
		if i == len(places) {
			places = append(places, t.addLine(under, l))
		}
		place := places[i]
		if l.Rule || place == nil { // which never is one and then the other, as a test holds
			continue
		}
		// From the inside out: a submenu is complete before it can be opened.
		if len(l.Sub) > 0 {
			place.sub = t.fill(place, place.sub, l.Sub)
		}
		place.set(l)
	}
	for _, place := range places[min(len(lines), len(places)):] {
		if place != nil {
			place.hide()
		}
	}
	return places
}

// addLine appends a line.
func (t *Tray) addLine(under *trayLine, l menu.Line) *trayLine {
	switch {
	case l.Rule && under == nil:
		systray.AddSeparator()
		return nil
	case l.Rule:
		under.item.AddSeparator()
		return nil
	case l.Mark != menu.NoMark && under == nil:
		return t.listen(systray.AddMenuItemCheckbox("", "", false))
	case l.Mark != menu.NoMark:
		return t.listen(under.item.AddSubMenuItemCheckbox("", "", false))
	case l.Sub != nil && under == nil:
		return t.listen(systray.AddSubMenu("", ""))
	case l.Sub != nil:
		return t.listen(under.item.AddSubMenu("", ""))
	case under == nil:
		return t.listen(systray.AddMenuItem("", ""))
	}
	return t.listen(under.item.AddSubMenuItem("", ""))
}

// listen waits for the clicks on a line.
func (t *Tray) listen(item *systray.MenuItem) *trayLine {
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

// Package desktop is the menu-bar app: tray, notifications, window, keychain,
// and the agent, all in one process.
//
// A start takes the data directory's lock, puts the tray up, then starts the
// agent and listens to its snapshots. Each snapshot becomes one menu, at most a
// few notifications, and one event for the window. What the owner does, anywhere,
// becomes an action, and every action is one call of the owner tier. The main
// goroutine waits until the window is wanted for the first time, and then runs
// the window toolkit until the end.
//
// The desktop never decides who may open what: the agent does, and would with
// no desktop at all.
package desktop

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/openlink"
	"porchlight/desktop/clipboard"
	"porchlight/desktop/language"
	"porchlight/desktop/menu"
	"porchlight/desktop/notes"
	"porchlight/desktop/page"
	"porchlight/desktop/tray"
	"porchlight/desktop/ui"
	"porchlight/desktop/verbs"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

const (
	// patience bounds what one click may take.
	patience = 15 * time.Second

	// presentEvery is the shortest time between two rounds of notifications and
	// two events for the window.
	presentEvery = 200 * time.Millisecond
)

// app is what the owner sees and touches.
type app struct {
	log      *slog.Logger
	settings *settings
	desk     desk
	atLogin  func() bool // whether Porchlight starts when the owner logs in
	tray     *tray.Tray
	show     func(menu.Menu) // in the tray
	notes    *notes.Notifications
	window   page.Window

	ctx        context.Context // ends with the app; for clicks, which come with none
	quit       context.CancelFunc
	wantWindow chan struct{} // holds one wish to see the window
	chosenFile chan struct{} // holds one: the owner secret is to be kept in a file
	unlock     chan struct{} // holds one: the keychain is to ask for its password

	newAround      chan struct{} // holds one: what the menu shows beside the state may be old
	opened         atomic.Bool   // the menu was, since what listens was last looked at
	newWindowState chan struct{} // holds one: the window's copy of the state is old
	newNoteState   chan struct{} // holds one: the notifications' is

	place  atomic.Pointer[ui.Place] // asked for, and not yet by the page; nil for none
	wished atomic.Bool              // the window is to be shown as soon as it is made
	// darkDesktop is whether the desktop is dark; nil where the page sees that itself.
	darkDesktop atomic.Pointer[bool]

	keys    keys
	noted   atomic.Int64 // keys of notes that were given out
	drawing sync.Mutex   // one menu at a time, the newest last

	mu     sync.Mutex       // protects what follows
	client *agentapi.Client // nil until the agent can be asked
	reason error            // why there is no client
	// secretless is why the client can only look and take away: ownersecret.ErrLocked
	// or ErrUnavailable; nil for no such reason.
	secretless error
	state      agentapi.OwnerState
	known      bool // state is from the agent
	unanswered bool // the agent does not answer; state is how things were
	around     around
	dismissed  map[int]time.Time // when what was looked at in the menu began to listen, by port
}

func newApp(ctx context.Context, quit context.CancelFunc, log *slog.Logger, s *settings, prefer *preferences, version string) *app {
	a := &app{
		log:            log,
		settings:       s,
		atLogin:        startsAtLogin,
		ctx:            ctx,
		quit:           quit,
		reason:         ui.ErrNotReady,
		wantWindow:     make(chan struct{}, 1),
		chosenFile:     make(chan struct{}, 1),
		unlock:         make(chan struct{}, 1),
		newAround:      make(chan struct{}, 1),
		dismissed:      map[int]time.Time{},
		newWindowState: make(chan struct{}, 1),
		newNoteState:   make(chan struct{}, 1),
	}
	a.desk = desk{prefer, a}
	a.tray = tray.New(log, func() string { return s.get().Panel }, a.perform)
	a.show = a.tray.Set
	a.notes = notes.New(log, func(act verbs.Action) { go a.perform(act) }, page.Focus)
	a.window = page.New(log, page.Options{
		StartHidden: page.First,
		OnStart: func(ctx context.Context) {
			go a.notes.Begin(ctx)
			a.tray.OnLoop()
			if page.First {
				a.showWished()
			}
		},
		OnHide:  func() { go a.hidden() },
		OnLooks: a.desktopLooks,
		Bind: []any{
			ui.NewAgent(a.call),
			&ui.Desk{Desktop: a.desk},
			ui.NewShell(ui.Around{
				Version: version,
				Copy:    a.copy,
				Browse:  browse,
				State:   func() agentapi.OwnerState { s, _ := a.snapshot(); return s },
				Wanted:  a.wanted, Looks: a.appearance,
				Speech: func() ui.Speech { return ui.Speech{Language: language.Spoken().Tag(), Locale: words.Locale()} },
			}),
		},
	})
	return a
}

// present shows what the agent tells until ctx ends.
func (a *app) present(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		a.tray.Run(ctx, func() menu.Menu { return menu.Empty(menu.IconOff, language.Say("Quitting…"), a.atLogin()) })
	})
	wg.Go(func() {
		coalesce(ctx, a.newWindowState, func() {
			if s, known := a.snapshot(); known {
				a.window.Emit("state", s)
			}
		})
	})
	wg.Go(func() { a.announcing(ctx) })
	wg.Go(func() { a.gathering(ctx) })
	if a.settings.get().Shortcut {
		wg.Go(func() { _ = a.listen(true) }) // it says why not
	}
	wg.Go(func() { a.tray.WatchOpening(ctx, a.menuOpened) })
}

// coalesce calls fn after each signal, never more often than presentEvery.
func coalesce(ctx context.Context, signal <-chan struct{}, fn func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signal:
			fn()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(presentEvery):
		}
	}
}

// onState takes a snapshot of the agent.
func (a *app) onState(s agentapi.OwnerState) {
	language.Speak(s.Language)
	s = language.InWords(s)
	a.mu.Lock()
	a.state, a.known, a.unanswered = s, true, false
	a.mu.Unlock()
	a.changed()
}

// onUnanswered is told when the agent stops answering, and when it answers again.
func (a *app) onUnanswered(unanswered bool) {
	a.mu.Lock()
	same := a.unanswered == unanswered
	a.unanswered = unanswered
	a.mu.Unlock()
	if !same {
		a.changed()
	}
}

// changed has everything that shows the state show it.
func (a *app) changed() {
	a.draw()
	broadcast.Raise(a.newAround)
	broadcast.Raise(a.newWindowState)
	broadcast.Raise(a.newNoteState)
}

// draw has the tray show how things are now.
func (a *app) draw() {
	a.drawing.Lock()
	defer a.drawing.Unlock()
	if s, known := a.snapshot(); known {
		beside := a.aroundNow()
		a.show(menu.Draw(menu.Picture{
			OwnerState: s, People: beside.people, Visitors: beside.visitors, Share: beside.share,
			Secret: a.waitsFor(), AtLogin: a.atLogin(), Keys: a.keysGiven(), Now: time.Now(),
		}))
		return
	}
	switch _, err := a.agent(); {
	case errors.Is(err, errSilent):
		a.show(menu.Empty(menu.IconTrouble, language.Say("Porchlight is not answering"), a.atLogin()))
	default:
		a.show(menu.Empty(menu.IconOff, language.Say("Starting…"), a.atLogin()))
	}
}

func (a *app) onClient(c *agentapi.Client) {
	a.mu.Lock()
	waited := a.secretless != nil
	a.client, a.reason, a.unanswered, a.secretless = c, nil, false, nil
	a.mu.Unlock()
	if waited {
		a.changed()
		go a.notes.Drop(a.ctx, notes.KeyKeychain)
	}
}

// waitsFor is why the owner secret is not there; nil while it is.
func (a *app) waitsFor() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.secretless
}

var errSilent = words.Errorf("Porchlight is not answering. Its process may be stopped or busy; try again when it answers.")

// snapshot is the last state the agent told; false before the first.
func (a *app) snapshot() (agentapi.OwnerState, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state
	if a.unanswered {
		s.Trouble, s.TroubleWords = language.Say("Porchlight is not answering. Its process may be stopped or busy. This is how things were."), nil
	}
	return s, a.known
}

// agent is what can be asked, or a sentence why there is nothing.
func (a *app) agent() (*agentapi.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client == nil {
		return nil, a.reason
	}
	if a.unanswered {
		return nil, errSilent
	}
	return a.client, nil
}

// call passes what a page asks for on to the agent; see ui.Agent.
func (a *app) call(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	c, err := a.agent()
	if err != nil {
		return nil, err
	}
	answer, err := c.Call(ctx, method, path, body)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errSilent
	}
	return language.AnswerInWords(answer), err
}

// open opens an app in the owner's browser by a one-time link. Trust that is still to be
// offered comes first, in the window, which then asks anew.
func (a *app) open(ctx context.Context, name string) error {
	c, err := a.agent()
	if err != nil {
		return err
	}
	if s, _ := a.snapshot(); s.Account.Local && a.waitsFor() == nil && a.desk.offersTrust(ctx) {
		a.showPlace(ui.Place{View: verbs.ViewTrust, Argument: name})
		return nil
	}
	link, err := c.Open(ctx, name)
	if err != nil {
		return err
	}
	return browse(ctx, link.URL)
}

func browse(ctx context.Context, address string) error {
	_, err := openlink.Open(ctx, address)
	return err
}

// copy puts a text on the clipboard: through the window's toolkit while the
// window is on the screen, otherwise without one.
func (a *app) copy(text string) error {
	if a.window.Copy(text) {
		return nil
	}
	return clipboard.Copy(a.ctx, text)
}

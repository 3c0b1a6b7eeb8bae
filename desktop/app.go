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
	"errors"
	"log/slog"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/openlink"
	"porchlight/desktop/clipboard"
	"porchlight/desktop/ui"
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
	tray     *tray
	notes    *notifications
	window   window

	ctx        context.Context // ends with the app; for clicks, which come with none
	quit       context.CancelFunc
	wantWindow chan struct{} // holds one wish to see the window

	newWindowState chan struct{} // holds one: the window's copy of the state is old
	newNoteState   chan struct{} // holds one: the notifications' is

	mu     sync.Mutex // protects what follows
	client client     // nil until the owner tier can be asked
	reason error      // why there is no client
	state  agentapi.OwnerState
	known  bool   // state is from the agent
	view   string // asked for and not yet taken by the page
}

func newApp(ctx context.Context, quit context.CancelFunc, log *slog.Logger, s *settings, desk ui.Desk, version string) *app {
	a := &app{
		log:            log,
		settings:       s,
		ctx:            ctx,
		quit:           quit,
		reason:         ui.ErrNotReady,
		wantWindow:     make(chan struct{}, 1),
		newWindowState: make(chan struct{}, 1),
		newNoteState:   make(chan struct{}, 1),
	}
	a.tray = newTray(log, s.get().panel(), a.perform)
	a.notes = newNotifications(log, func(act action) { go a.perform(act) })
	owner := func() (ui.Agent, error) { return a.agent() }
	a.window = newWindow(log, windowOptions{
		startHidden: windowFirst,
		onStart:     a.toolkitStarted,
		bind: []any{
			ui.NewApps(owner, a.open),
			ui.NewPeople(owner),
			ui.NewSettings(owner, desk),
			ui.NewShell(version, a.copy, browse, func() agentapi.OwnerState { s, _ := a.snapshot(); return s }, a.wanted),
		},
	})
	return a
}

// present shows what the agent tells until ctx ends.
func (a *app) present(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { a.tray.run(ctx) })
	wg.Go(func() {
		coalesce(ctx, a.newWindowState, func() {
			s, _ := a.snapshot()
			a.window.emit("state", s)
		})
	})
	wg.Go(func() {
		told := newAnnouncer(a.settings.get().LastNotice, time.Now)
		coalesce(ctx, a.newNoteState, func() { a.announce(ctx, told) })
	})
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

func raise(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// onState takes a snapshot of the agent.
func (a *app) onState(s agentapi.OwnerState) {
	a.mu.Lock()
	a.state, a.known = s, true
	a.mu.Unlock()
	a.tray.set(menuOf(s))
	raise(a.newWindowState)
	raise(a.newNoteState)
}

func (a *app) onClient(c client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client, a.reason = c, nil
}

var errLockedKeychain = errors.New("Your keychain is locked. Porchlight goes on when you unlock it.")

func (a *app) onLocked() {
	a.mu.Lock()
	a.reason = errLockedKeychain
	a.mu.Unlock()
	a.log.Warn("the keychain is locked; waiting until it is unlocked")
	a.tray.set(plainMenu(iconTrouble, "Your keychain is locked"))
	a.tell(note{
		key:   keyTrouble,
		title: "Your keychain is locked",
		body:  "Your apps keep running. To approve or revoke one, unlock the keychain; Porchlight notices by itself.",
		click: action{verb: doShow},
	})
}

func (a *app) snapshot() (agentapi.OwnerState, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, a.known
}

func (a *app) agent() (client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client == nil {
		return nil, a.reason
	}
	return a.client, nil
}

// announce shows the notifications the snapshot calls for.
func (a *app) announce(ctx context.Context, told *announcer) {
	s, known := a.snapshot()
	if !known {
		return
	}
	show, drop := told.next(s)
	for _, key := range drop {
		a.notes.drop(ctx, key)
	}
	for _, n := range show {
		if err := a.notes.show(ctx, n); err != nil {
			a.log.Warn("a notification could not be shown", "about", n.key, "err", err)
		}
	}
	if err := a.settings.change(func(v *settingsValues) { v.LastNotice = told.lastNotice }); err != nil {
		a.log.Warn("settings were not saved", "err", err)
	}
}

// tell shows a note that is not about a snapshot.
func (a *app) tell(n note) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), patience)
	defer cancel()
	if err := a.notes.show(ctx, n); err != nil {
		a.log.Warn("a notification could not be shown", "about", n.key, "err", err)
	}
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
		a.showWindow()
		return
	}
	if err := a.carryOut(ctx, act); err != nil && a.ctx.Err() == nil {
		a.log.Warn("could not do what was clicked", "verb", string(act.verb), "app", act.name, "err", err)
		body := err.Error()
		if act.verb == doCopy {
			body += "\n" + act.text
		}
		a.tell(note{key: keyTrouble, title: failed(act.verb), body: body, click: action{verb: doShow}})
	}
}

func (a *app) carryOut(ctx context.Context, act action) error {
	switch act.verb {
	case doCopy:
		return a.copy(act.text)
	case doOpen:
		return a.open(ctx, act.name)
	}
	c, err := a.agent()
	if err != nil {
		return err
	}
	switch act.verb {
	case doApprove:
		if err := a.sameProgram(act); err != nil {
			return err
		}
		_, err = c.ApproveSeen(ctx, act.name, act.seen.Seen)
	case doDeny:
		err = c.Deny(ctx, act.name)
	case doStop:
		_, err = c.Stop(ctx, act.name)
	case doRevoke:
		_, err = c.Revoke(ctx, act.name)
	}
	return err
}

var errOtherProgram = errors.New("Another program listens on its port by now. Look again before you approve it.")

// sameProgram refuses to approve a request whose port another program has taken
// since the owner looked. The agent itself sees to the label and the port.
func (a *app) sameProgram(act action) error {
	s, _ := a.snapshot()
	for _, app := range s.Apps {
		if app.Name != act.name || app.Status != agentapi.StatusPending || app.LocalPort != act.seen.LocalPort {
			continue
		}
		if now := seenOf(app); now.program != act.seen.program || now.user != act.seen.user {
			return errOtherProgram
		}
	}
	return nil
}

func failed(v verb) string {
	switch v {
	case doCopy:
		return "The address was not copied"
	case doApprove:
		return "The app was not approved"
	case doDeny:
		return "The app was not denied"
	case doOpen:
		return "The app could not be opened"
	case doStop:
		return "The app was not stopped"
	case doRevoke:
		return "The app was not revoked"
	}
	return "Porchlight could not do that"
}

// open opens an app in the owner's browser by a one-time link.
func (a *app) open(ctx context.Context, name string) error {
	c, err := a.agent()
	if err != nil {
		return err
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
	if a.window.copy(text) {
		return nil
	}
	return clipboard.Copy(a.ctx, text)
}

// showWindow brings the window to the front, and has it made first if needed.
func (a *app) showWindow() {
	if !a.window.show() {
		raise(a.wantWindow)
	}
}

// showView is showWindow at one of the page's views; "" leaves the one it shows.
func (a *app) showView(view string) {
	if view != "" {
		a.mu.Lock()
		a.view = view
		a.mu.Unlock()
	}
	a.showWindow()
	a.window.emit("show", nil)
}

// wanted is the view last asked for, once: see ui.Shell.Wanted.
func (a *app) wanted() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	view := a.view
	a.view = ""
	return view
}

// runWindow makes the window when it is first wanted. It returns when ctx ends.
// It must be called on the main goroutine.
func (a *app) runWindow(ctx context.Context) {
	stop := context.AfterFunc(ctx, a.window.quit)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wantWindow:
		}
		err := a.window.run()
		if ctx.Err() != nil {
			return
		}
		if err == nil { // the toolkit ended: the session did
			a.quit()
			return
		}
		a.log.Error(err.Error())
		a.tell(note{key: keyTrouble, title: "Porchlight cannot open its window", body: err.Error()})
	}
}

package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// model is the simplest thing that behaves like the table of docs/interface.md,
// States of a published app, with the listeners on the ports: users by id, "?"
// for one who cannot be seen.
type model struct {
	apps     map[string]*modelApp
	listens  map[int]string
	denied   map[string]bool // and not unmuted or approved since
	askAgain bool            // the setting: a changed port waits for the owner
}

type modelApp struct {
	status    agentapi.Status
	label     string
	port      int
	id        string
	user      string // approved
	paused    bool
	shown     string // the listener the owner was shown; empty also for "?"
	asks      bool   // again, though it was approved
	other     bool   // because of the user
	heldLabel string // approved, while it asks again
	heldPort  int
	until     time.Time // zero: the approval does not end
}

func (m *model) taken(name, label string) bool {
	for other, app := range m.apps {
		if other != name && app.id != "" && (strings.EqualFold(app.label, label) || app.asks && strings.EqualFold(app.heldLabel, label)) {
			return true
		}
	}
	return false
}

// listener is what the engine is told of a port.
func (m *model) listener(port int) agentapi.Listener {
	if user := m.listens[port]; user != "?" {
		return agentapi.Listener{User: user, UserID: user}
	}
	return agentapi.Listener{}
}

func modelOwn(user string) bool { return user == "1000" || user == "0" }

// otherUser says whether whoever listens on the port is not the one approved.
func (m *model) otherUser(app *modelApp, port int) bool {
	now := m.listens[port]
	switch {
	case now == "", now == app.user, modelOwn(now) && modelOwn(app.user), modelOwn(now) && app.user == "?":
		return false
	}
	return true
}

func (m *model) asking(app *modelApp, label string, port int) {
	if !app.asks {
		app.heldLabel, app.heldPort = app.label, app.port
	}
	app.asks, app.other, app.status = true, m.otherUser(app, port), agentapi.StatusPending
	app.label, app.port, app.shown = label, port, m.listener(port).UserID
}

func (app *modelApp) restore() {
	app.status, app.asks, app.label, app.port = agentapi.StatusStopped, false, app.heldLabel, app.heldPort
}

func (m *model) publish(app *modelApp, label string, port int) {
	approved := app.port
	if app.asks {
		approved = app.heldPort
	}
	waits := port != approved && (m.askAgain || app.asks && !app.other && app.port != approved)
	switch {
	case app.id == "":
		app.status, app.label, app.port, app.shown = agentapi.StatusPending, label, port, m.listener(port).UserID
	case waits || m.otherUser(app, port):
		m.asking(app, label, port)
	default:
		app.status, app.label, app.port, app.asks = agentapi.StatusLive, label, port, false
	}
}

// approve says whether it may be; where it may not, the owner sees who listens.
func (m *model) approve(name string, app *modelApp) bool {
	now, shown := m.listens[app.port], app.shown
	seen := m.listener(app.port).UserID
	if m.taken(name, app.label) || now != "" && seen != shown && !(modelOwn(seen) && (shown == "" || modelOwn(shown))) {
		if now != "" {
			app.shown, app.other = seen, app.asks && m.otherUser(app, app.port)
		}
		return false
	}
	switch {
	case now != "":
		app.user = now
	case shown != "":
		app.user = shown
	default:
		app.user = "1000"
	}
	app.status, app.asks = agentapi.StatusLive, false
	delete(m.denied, name)
	return true
}

// TestAppsMatchTheModel runs any sequence of events, restarts of the agent
// among them, and compares every answer and the whole state with the model.
func TestAppsMatchTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock := newComputerClocks()
		h := openHostWith(t, clock)
		m := &model{apps: map[string]*modelApp{}, listens: map[int]string{}, denied: map[string]bool{}}
		open := func() { h.cfg.AskAgain = func() bool { return m.askAgain } }
		open()
		h.listens = func(port int) (agentapi.Listener, bool) { return m.listener(port), m.listens[port] != "" }
		names := rapid.SampledFrom([]string{"notes", "photos", "a", strings.Repeat("z", 63)})
		labels := rapid.SampledFrom([]string{"Notes", "NOTES", "Photos", "日記"})
		users := rapid.SampledFrom([]string{"", "?", "0", "1000", "1000", "1001", "1002"})
		ports := rapid.IntRange(8000, 8003)
		ends := rapid.SampledFrom([]string{"", "", "never", "1h", "3h"})
		ctx := context.Background()
		check := func(t *rapid.T, got error, want agentapi.Code) {
			t.Helper()
			if agentapi.CodeOf(got) != want {
				t.Fatalf("answered %v, want %q", got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"listen": func(t *rapid.T) { m.listens[ports.Draw(t, "port")] = users.Draw(t, "user") },
			"visit": func(t *rapid.T) {
				name := names.Draw(t, "name")
				app, port := m.apps[name], 8000
				want := app != nil && app.status == agentapi.StatusLive
				if want {
					if port = app.port; m.otherUser(app, port) {
						want = false
						m.asking(app, app.label, port)
					}
					want = want && m.listens[port] != ""
				}
				if got := h.apps.Welcomes(name, upstream.Target{Port: port}, agentapi.Listener{}); got != want {
					t.Fatalf("%s welcomes %q: %v", name, m.listens[port], got)
				}
			},
			"publish": func(t *rapid.T) {
				name, label, port := names.Draw(t, "name"), labels.Draw(t, "label"), ports.Draw(t, "port")
				pub, err := h.apps.Publish(ctx, Caller{}, agentapi.PublishRequest{Name: name, Label: label, LocalPort: port})
				if m.taken(name, label) {
					check(t, err, agentapi.CodeConflict)
					return
				}
				check(t, err, "")
				if m.apps[name] == nil {
					m.apps[name] = &modelApp{}
				}
				m.publish(m.apps[name], label, port)
				if pub.Status != m.apps[name].status {
					t.Fatalf("publish answered %q, want %q", pub.Status, m.apps[name].status)
				}
			},
			"withdraw": func(t *rapid.T) {
				name := names.Draw(t, "name")
				_, err := h.apps.Unpublish(ctx, Caller{}, name)
				app := m.apps[name]
				switch {
				case app == nil:
					check(t, err, agentapi.CodeNotFound)
					return
				case app.id == "":
					delete(m.apps, name)
				case app.asks:
					app.restore()
				default:
					app.status = agentapi.StatusStopped
				}
				check(t, err, "")
			},
			"approve": func(t *rapid.T) {
				name := names.Draw(t, "name")
				alone, until := rapid.Bool().Draw(t, "alone"), ends.Draw(t, "until")
				_, err := h.apps.Approve(ctx, name, agentapi.Approval{Alone: alone, Until: until})
				app := m.apps[name]
				if err == nil && until != "" {
					app.until = map[string]time.Time{"1h": clock.time.Add(time.Hour), "3h": clock.time.Add(3 * time.Hour)}[until]
				}
				switch {
				case app == nil:
					check(t, err, agentapi.CodeNotFound)
				case app.status == agentapi.StatusStopped && (alone || until == ""):
					check(t, err, agentapi.CodeConflict)
				case app.status == agentapi.StatusStopped, app.status == agentapi.StatusLive && !alone:
					check(t, err, "")
				case app.status == agentapi.StatusPending && !m.approve(name, app):
					check(t, err, agentapi.CodeConflict)
				default:
					check(t, err, "")
					got, _ := h.apps.Lookup(name)
					for other, one := range m.apps {
						if one.id == got.ID && other != name {
							t.Fatalf("%s has the id of %s", name, other)
						}
					}
					if app.id != "" && (app.id == got.ID) == alone {
						t.Fatalf("%s, alone %v: the id was %s and is %s", name, alone, app.id, got.ID)
					}
					app.id = got.ID
				}
			},
			"deny": func(t *rapid.T) {
				name := names.Draw(t, "name")
				_, err := h.apps.Deny(ctx, name)
				app := m.apps[name]
				switch {
				case app == nil:
					check(t, err, agentapi.CodeNotFound)
				case app.status != agentapi.StatusPending:
					check(t, err, agentapi.CodeConflict)
				case app.asks:
					check(t, err, "")
					app.restore()
					m.denied[name] = true
				default:
					check(t, err, "")
					delete(m.apps, name)
					m.denied[name] = true
				}
			},
			"unmute": func(t *rapid.T) {
				name := names.Draw(t, "name")
				err := h.apps.Unmute(ctx, name)
				if m.apps[name] == nil && !m.denied[name] {
					check(t, err, agentapi.CodeNotFound)
					return
				}
				check(t, err, "")
				delete(m.denied, name)
			},
			"pause": func(t *rapid.T) {
				name, pause := names.Draw(t, "name"), rapid.Bool().Draw(t, "pause")
				var err error
				if pause {
					_, err = h.apps.Pause(ctx, name)
				} else {
					_, err = h.apps.Resume(ctx, name)
				}
				switch app := m.apps[name]; {
				case app == nil:
					check(t, err, agentapi.CodeNotFound)
				case app.id == "":
					check(t, err, agentapi.CodeConflict)
				default:
					check(t, err, "")
					app.paused = pause
					if !pause && app.status == agentapi.StatusStopped {
						app.status = agentapi.StatusLive
					}
				}
			},
			"setting": func(t *rapid.T) { m.askAgain = rapid.Bool().Draw(t, "ask again") },
			"revoke": func(t *rapid.T) {
				name := names.Draw(t, "name")
				_, err := h.apps.Revoke(ctx, name)
				app := m.apps[name]
				switch {
				case app == nil:
					check(t, err, agentapi.CodeNotFound)
				case app.id == "":
					check(t, err, agentapi.CodeConflict)
				default:
					check(t, err, "")
					delete(m.apps, name)
					delete(m.denied, name)
				}
			},
			"restart": func(t *rapid.T) { h.reopen(); open() },
			"time": func(t *rapid.T) { // which no clock that is set back undoes
				passes := time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute
				clock.pass(passes)
				clock.set -= time.Duration(rapid.IntRange(0, 90).Draw(t, "back")) * time.Minute
				h.apps.EndDue(ctx)
				for name, app := range m.apps {
					if !app.until.IsZero() && !clock.time.Before(app.until) {
						delete(m.apps, name)
						delete(m.denied, name)
					}
				}
			},
			"": func(t *rapid.T) {
				list := h.apps.List()
				if len(list) != len(m.apps) {
					t.Fatalf("%d apps, want %d", len(list), len(m.apps))
				}
				for _, got := range list {
					app := m.apps[got.Name]
					if got.Status != app.status || got.Label != app.label || got.Port != app.port || got.ID != app.id || got.Paused != app.paused {
						t.Fatalf("%+v, want %+v", got, app)
					}
					if app.id != "" && got.User != strings.TrimPrefix(app.user, "?") {
						t.Fatalf("%+v is approved for %q, want %q", got, got.User, app.user)
					}
				}
				for _, got := range h.apps.OwnerApps(nil) {
					if app := m.apps[got.Name]; (got.ApprovedListener != nil) != (app.asks && app.other) {
						t.Fatalf("%+v shows %+v", app, got.ApprovedListener)
					}
				}
			},
		})
	})
}

// host is an engine on a real store that can be reopened.
type host struct {
	fail  func(string, ...any)
	dir   string
	store *store.Store
	apps  *Apps
	cfg   *AppsConfig // of apps
	gone  []string
	// now and sinceBoot are the clocks; nil: the system's.
	now       func() time.Time
	sinceBoot func() time.Duration
	// listens says who listens on a port, and whether anybody does; nil: nobody.
	listens func(port int) (agentapi.Listener, bool)
}

type fataler interface {
	Fatalf(string, ...any)
	Helper()
}

func openHost(t interface {
	fataler
	Cleanup(func())
}) *host {
	t.Helper()
	return openHostWith(t, nil)
}

// openHostWith is openHost on a computer whose clocks a test sets.
func openHostWith(t interface {
	fataler
	Cleanup(func())
}, clocks *computerClocks) *host {
	t.Helper()
	h := &host{fail: t.Fatalf, dir: tempDir(t)}
	if clocks != nil {
		h.now, h.sinceBoot = clocks.now, clocks.sinceBoot
	}
	h.open()
	t.Cleanup(h.close)
	return h
}

// live has an app published and approved.
func (h *host) live(t *testing.T, name, label string, port int) {
	t.Helper()
	programs.Must(t,
		second(h.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: name, Label: label, LocalPort: port})),
		second(h.apps.Approve(t.Context(), name, agentapi.Approval{})),
	)
}

func (h *host) open() {
	var err error
	if h.store, err = store.Open(h.dir); err != nil {
		h.fail("open the store: %v", err)
	}
	h.apps, err = NewApps(AppsConfig{
		Store:    h.store,
		Root:     func() Root { return Root{Name: "maya", Host: "maya.porch.example"} },
		OwnPorts: []int{8765},
		Listener: func(at upstream.Target, _ int) (l agentapi.Listener) {
			if h.listens != nil {
				l, _ = h.listens(at.Port)
			}
			return l
		},
		Answers: func(at upstream.Target) (listening bool) {
			if h.listens != nil {
				_, listening = h.listens(at.Port)
			}
			return listening
		},
		Own: func(id string) bool { return id == "1000" || id == "0" },
		Me:  store.ListenerUser{ID: "1000", Name: "ada"},
		OnGone: func(id string) agentapi.Closed {
			h.gone = append(h.gone, id)
			return agentapi.Closed{OK: true, Closed: 3}
		},
		Changes:   new(broadcast.Signal),
		Now:       h.now,
		SinceBoot: h.sinceBoot,
	})
	if err != nil {
		h.fail("open the engine: %v", err)
	}
	h.cfg = &h.apps.cfg
}

// put has the engine hold apps that nobody asked for.
func (h *host) put(apps ...*store.App) {
	h.apps.mu.Lock()
	defer h.apps.mu.Unlock()
	for _, app := range apps {
		h.apps.rows[app.Name] = kept(*app)
	}
	h.apps.swap()
}

func (h *host) close() {
	if err := h.store.Close(); err != nil {
		h.fail("close the store: %v", err)
	}
}

func (h *host) reopen() {
	h.close()
	h.open()
}

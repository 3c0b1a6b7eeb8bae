package engine

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// model is the simplest thing that behaves like the interface's table.
type model struct {
	status map[string]agentapi.Status
	label  map[string]string
	port   map[string]int
	id     map[string]string
}

func (m *model) taken(name, label string) bool {
	for other, status := range m.status {
		if other != name && status != agentapi.StatusPending && strings.EqualFold(m.label[other], label) {
			return true
		}
	}
	return false
}

func (m *model) remove(name string) {
	delete(m.status, name)
	delete(m.label, name)
	delete(m.port, name)
	delete(m.id, name)
}

// TestAppsMatchTheModel runs any sequence of events, restarts of the agent
// among them, and compares every answer and the whole state with the model.
func TestAppsMatchTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := openHost(t)
		defer h.close()
		m := &model{map[string]agentapi.Status{}, map[string]string{}, map[string]int{}, map[string]string{}}
		names := rapid.SampledFrom([]string{"notes", "photos", "a", strings.Repeat("z", 63)})
		labels := rapid.SampledFrom([]string{"Notes", "NOTES", "Photos", "日記"})
		ports := rapid.IntRange(8000, 8003)
		ctx := context.Background()
		check := func(t *rapid.T, got error, want agentapi.Code) {
			t.Helper()
			if agentapi.CodeOf(got) != want {
				t.Fatalf("answered %v, want %q", got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				name, label, port := names.Draw(t, "name"), labels.Draw(t, "label"), ports.Draw(t, "port")
				pub, err := h.apps.Publish(ctx, agentapi.PublishRequest{Name: name, Label: label, LocalPort: port})
				if m.taken(name, label) {
					check(t, err, agentapi.CodeConflict)
					return
				}
				check(t, err, "")
				switch m.status[name] {
				case "", agentapi.StatusPending:
					m.status[name] = agentapi.StatusPending
				default:
					m.status[name] = agentapi.StatusLive
				}
				m.label[name], m.port[name] = label, port
				if pub.Status != m.status[name] {
					t.Fatalf("publish answered %q, want %q", pub.Status, m.status[name])
				}
			},
			"withdraw": func(t *rapid.T) {
				name := names.Draw(t, "name")
				_, err := h.apps.Withdraw(ctx, name)
				switch m.status[name] {
				case "":
					check(t, err, agentapi.CodeNotFound)
					return
				case agentapi.StatusPending:
					m.remove(name)
				default:
					m.status[name] = agentapi.StatusRevoked
				}
				check(t, err, "")
			},
			"approve": func(t *rapid.T) {
				name := names.Draw(t, "name")
				_, err := h.apps.Approve(ctx, name)
				switch m.status[name] {
				case "":
					check(t, err, agentapi.CodeNotFound)
				case agentapi.StatusRevoked:
					check(t, err, agentapi.CodeConflict)
				case agentapi.StatusLive:
					check(t, err, "")
				case agentapi.StatusPending:
					if m.taken(name, m.label[name]) {
						check(t, err, agentapi.CodeConflict)
						return
					}
					check(t, err, "")
					m.status[name] = agentapi.StatusLive
					app, _ := h.apps.Lookup(name)
					for other, id := range m.id {
						if id == app.ID {
							t.Fatalf("%s has the id of %s", name, other)
						}
					}
					m.id[name] = app.ID
				}
			},
			"deny": func(t *rapid.T) {
				name := names.Draw(t, "name")
				err := h.apps.Deny(ctx, name)
				switch m.status[name] {
				case "":
					check(t, err, agentapi.CodeNotFound)
				case agentapi.StatusPending:
					check(t, err, "")
					m.remove(name)
				default:
					check(t, err, agentapi.CodeConflict)
				}
			},
			"stop": func(t *rapid.T) {
				name := names.Draw(t, "name")
				_, err := h.apps.Stop(ctx, name)
				switch m.status[name] {
				case "":
					check(t, err, agentapi.CodeNotFound)
				case agentapi.StatusPending:
					check(t, err, agentapi.CodeConflict)
				default:
					check(t, err, "")
					m.status[name] = agentapi.StatusRevoked
				}
			},
			"revoke": func(t *rapid.T) {
				name := names.Draw(t, "name")
				_, err := h.apps.Revoke(ctx, name)
				switch m.status[name] {
				case "":
					check(t, err, agentapi.CodeNotFound)
				case agentapi.StatusPending:
					check(t, err, agentapi.CodeConflict)
				default:
					check(t, err, "")
					m.remove(name)
				}
			},
			"restart": func(t *rapid.T) { h.reopen() },
			"": func(t *rapid.T) {
				list := h.apps.List()
				if len(list) != len(m.status) {
					t.Fatalf("%d apps, want %d", len(list), len(m.status))
				}
				for _, app := range list {
					if app.Status != m.status[app.Name] || app.Label != m.label[app.Name] || app.Port != m.port[app.Name] || app.ID != m.id[app.Name] {
						t.Fatalf("%+v, want %s %q port %d id %s", app, m.status[app.Name], m.label[app.Name], m.port[app.Name], m.id[app.Name])
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
	gone  []string
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
	h := &host{fail: t.Fatalf, dir: tempDir(t)}
	h.open()
	return h
}

func (h *host) open() {
	var err error
	if h.store, err = store.Open(h.dir); err != nil {
		h.fail("open the store: %v", err)
	}
	h.apps, err = NewApps(AppsConfig{
		Store:    h.store,
		Root:     func() Root { return Root{Name: "maya", Host: "maya.porch.example"} },
		OwnPorts: func() []int { return []int{8765} },
		Listener: func(int) agentapi.Listener { return agentapi.Listener{} },
		OnGone: func(id string) agentapi.Closed {
			h.gone = append(h.gone, id)
			return agentapi.Closed{OK: true, Closed: 3}
		},
	})
	if err != nil {
		h.fail("open the engine: %v", err)
	}
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

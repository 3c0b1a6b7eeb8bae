package engine

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/text/unicode/norm"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
)

// shown is the apps as everybody else sees them: made after every change, so that
// looking is cheap. The proxy looks several times a request, and the owner's
// state is made anew for every connection that comes or goes.
type shown struct {
	byName  map[string]App
	names   map[string]string // of the approved apps, by id
	byLabel []App             // by label, see orderOf, then by name
}

// swap makes the rows what is shown. mu is held, or nobody else knows a yet.
func (a *Apps) swap() {
	next := &shown{byName: make(map[string]App, len(a.rows)), names: map[string]string{}}
	before := a.shown.Load()
	for name, row := range a.rows {
		if row.App == nil {
			continue
		}
		app := a.appOf(row.App)
		app.Formers = a.formers[name]
		if before != nil && before.byName[name].Label == app.Label {
			app.folded, app.order, app.looks = before.byName[name].folded, before.byName[name].order, before.byName[name].looks
		} else {
			app.folded, app.order, app.looks = foldLabel(app.Label), orderOf(app.Label), looksOf(app.Label)
		}
		next.byName[name] = app
		if app.ID != "" {
			next.names[app.ID] = name
		}
	}
	next.byLabel = slices.SortedFunc(maps.Values(next.byName), func(x, y App) int {
		return cmp.Or(cmp.Compare(x.order, y.order), cmp.Compare(x.Name, y.Name))
	})
	a.shown.Store(next)
}

func (a *Apps) appOf(app *store.App) App {
	shown := App{
		ID: app.ID, Name: app.Name, Label: app.Label, Port: app.LocalPort, Address: app.Address, Key: app.Key, Status: app.Status,
		Live: app.Status == agentapi.StatusLive && !slices.Contains(a.cfg.OwnPorts, app.LocalPort), Paused: app.Paused, TCP: app.TCP, Options: app.Options, kept: app,
	}
	if app.ApprovedFor != nil {
		shown.User = app.ApprovedFor.ID
	}
	return shown
}

// Lookup finds an app or a request by name. It takes no lock.
func (a *Apps) Lookup(name string) (App, bool) {
	app, ok := a.shown.Load().byName[name]
	return app, ok
}

// ByID finds an approved app, and is false where there is none. It takes no lock.
func (a *Apps) ByID(id string) (App, bool) {
	shown := a.shown.Load()
	app, ok := shown.byName[shown.names[id]]
	return app, ok
}

// Has says whether there is an approved app of an id. It takes no lock.
func (a *Apps) Has(id string) bool {
	_, ok := a.shown.Load().names[id]
	return ok
}

// List returns all apps and requests, by label.
func (a *Apps) List() []App { return slices.Clone(a.shown.Load().byLabel) }

// Approved returns the apps that have an approval, by label: live, stopped, or
// asking again because they changed.
func (a *Apps) Approved() []App {
	return slices.DeleteFunc(a.List(), func(app App) bool { return app.ID == "" })
}

// ByLabel finds the approved app with a label, live, stopped or asking again. The
// label is written as it is shown or as the app published it; see Publish.
func (a *Apps) ByLabel(label string) (App, bool) {
	clean, err := cleanLabel(label)
	if err != nil {
		return App{}, false
	}
	shown := norm.NFC.String(label) == clean
	for _, app := range a.shown.Load().byLabel {
		if app.Label == clean && app.ID != "" && (shown || app.kept.Written == label || app.kept.Written == "") {
			return app, true
		}
	}
	return App{}, false
}

// Opens says why the owner cannot open an app at its address; nil when they can.
func (a *Apps) Opens(name string) error {
	app, ok := a.Lookup(name)
	switch {
	case !ok:
		return agentapi.NoApp()
	case app.Status == agentapi.StatusPending:
		return agentapi.Errorf(agentapi.CodeConflict, "%q waits for your approval. Approve it first.", app.Label)
	case app.Status != agentapi.StatusLive:
		return agentapi.Errorf(agentapi.CodeConflict, "%q is stopped. It comes back when the app publishes itself again.", app.Label)
	case app.Paused:
		return agentapi.Errorf(agentapi.CodeConflict, "%q is paused. Resume it first.", app.Label)
	}
	return nil
}

// OwnerApps returns all apps and requests as the owner sees them, by label.
// connections counts what is open, by app id.
func (a *Apps) OwnerApps(connections map[string]int) []agentapi.OwnerApp {
	a.lookAtPorts()
	network := a.openInNetwork()
	apps := a.ownerApps(connections)
	for i := range apps {
		if app := &apps[i]; network[app.LocalPort] && app.Options.Socket() == "" {
			app.InNetwork = inNetwork(app.LocalPort, app.Listener.Program)
		}
		apps[i].AskedBy = a.userName(apps[i].AskedBy)
	}
	return apps
}

// userName names another user of this computer, by the system's id; who could not
// be learnt is told as that.
func (a *Apps) userName(id string) string {
	switch {
	case id == unknownUser:
		return "somebody unknown"
	case id == "" || a.cfg.UserName == nil:
		return id
	}
	return a.cfg.UserName(id)
}

func (a *Apps) ownerApps(connections map[string]int) []agentapi.OwnerApp {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.shown.Load().byLabel
	apps := make([]agentapi.OwnerApp, 0, len(all))
	for _, app := range all {
		row := a.rows[app.Name]
		out := agentapi.OwnerApp{
			AppSummary:  a.summary(row.App),
			TCP:         row.App.TCP,
			Listener:    row.App.Listener,
			ListensOn:   cmp.Or(row.App.Address, upstream.IPv4),
			Quiet:       row.App.Quiet,
			RequestedAt: row.App.RequestedAt,
			ApprovedAt:  row.App.ApprovedAt,
			Connections: connections[row.App.ID],
			Options:     row.App.Options,
		}
		if ends := row.App.Ends; ends != nil {
			out.Until = &ends.At
		}
		if s := row.App.Shared; s != nil {
			out.Shared = &agentapi.Shared{At: s.At, PID: s.PID, Anew: s.Before == nil}
		}
		if row.App.Status == agentapi.StatusPending {
			out.AskedBy = row.App.Asker // named outside the lock
			out.Asks = row.App.Asks
			out.Resembles = a.resembled(&app)
		}
		if asks := row.App.Approved; asks != nil {
			out.NewKey = asks.OtherKey
			if asks.OtherUser {
				out.ApprovedListener = approvedListener(row.App)
			}
		}
		if row.Denial != nil {
			out.Denials = row.Denial.Count
		}
		apps = append(apps, out)
	}
	return apps
}

// publication is the wire form of an app's state. On a computer that was never
// connected an approved app has no address yet. To its program it is pending then,
// because live always comes with host and url.
func (a *Apps) publication(app *store.App) agentapi.Publication {
	s := a.summary(app)
	if s.Status == agentapi.StatusLive && s.Host == "" {
		s.Status = agentapi.StatusPending
	}
	return agentapi.Publication{Status: s.Status, Host: s.Host, URL: s.URL}
}

func (a *Apps) summary(app *store.App) agentapi.AppSummary {
	s := agentapi.AppSummary{Name: app.Name, Label: app.Label, LocalPort: app.LocalPort, Status: app.Status, Paused: app.Paused}
	if root := a.cfg.Root(); root.Host != "" && app.Status == agentapi.StatusLive {
		s.Host = app.Name + "." + root.Host
		s.URL = "https://" + s.Host
	}
	return s
}

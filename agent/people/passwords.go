package people

import (
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// App passwords, with which programs that are no browsers open one app in one
// person's name. The control plane makes them and shows each once; a snapshot has
// their hashes. Nothing here keeps one.

// inSnapshotIn is how long a password that was just made is waited for to be in a
// snapshot, so that it works when it is shown.
const inSnapshotIn = 2 * time.Second

// MakePassword carries out POST /owner/passwords: one for the owner, for one app.
func (p *People) MakePassword(ctx context.Context, req agentapi.PasswordRequest) (agentapi.MadePassword, error) {
	app, ok := p.appCalled(req.App)
	if !ok {
		return agentapi.MadePassword{}, agentapi.NoAppCalled(req.App)
	}
	if app.TCP {
		return agentapi.MadePassword{}, agentapi.NotOverTCP(app.Label)
	}
	made, err := p.makePassword(ctx, app.ID, req.Name)
	if err != nil {
		return agentapi.MadePassword{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, inSnapshotIn)
	defer cancel()
	p.cfg.Access.AwaitPassword(ctx, made.ID)
	p.happenedToPassword(agentapi.ActivityPasswordMade, controlapi.PasswordInfo{AppID: app.ID, Name: req.Name}, 0)
	p.cfg.Changes.Raise()
	return agentapi.MadePassword{ID: made.ID, Password: made.Password}, nil
}

func (p *People) makePassword(ctx context.Context, appID, name string) (controlapi.MadePassword, error) {
	ctx, turn, err := p.begin(ctx, Owner, func(pending) bool { return false })
	if err != nil {
		return controlapi.MadePassword{}, err
	}
	defer turn.end()
	made, err := p.cfg.Control.MakePassword(ctx, controlapi.MakePassword{App: appID, Name: name})
	if err != nil {
		return controlapi.MadePassword{}, refusal(err)
	}
	return made, nil
}

// appCalled finds an approved app by its name or by its label.
func (p *People) appCalled(called string) (engine.App, bool) {
	if app, ok := p.cfg.Apps.Lookup(called); ok && app.ID != "" {
		return app, true
	}
	return p.cfg.Apps.ByLabel(called)
}

// ListPasswords carries out GET /owner/passwords: everybody's for this computer,
// newest first, without those revoked here. With the control plane away it is what
// the last snapshot has, so that they can be revoked then, too.
func (p *People) ListPasswords(ctx context.Context) ([]agentapi.AppPassword, error) {
	away := p.takenAway(unsentOnly) // before the list is read: it lacks what is sent meanwhile
	all, err := p.readPasswords(ctx)
	switch {
	case err == nil:
		return p.shownPasswords(all, away), nil
	case agentapi.CodeOf(err) == agentapi.CodeUnavailable && p.cfg.Control != nil && p.cfg.Access.Snapshot().Version != "":
		return p.shownPasswords(p.knownPasswords(), p.takenAway(unconfirmed)), nil
	}
	return nil, err
}

func (p *People) readPasswords(ctx context.Context) ([]controlapi.PasswordInfo, error) {
	if err := p.connected(); err != nil {
		return nil, err
	}
	all, err := p.askPasswords(ctx)
	if err != nil {
		return nil, refusal(err)
	}
	return all, nil
}

func (p *People) askPasswords(ctx context.Context) ([]controlapi.PasswordInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	version := p.cfg.Access.Snapshot().Version
	all, err := p.cfg.Control.Passwords(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.passwords, p.passwordsV = all, version
	p.mu.Unlock()
	p.cfg.Activity.NameClients(p.clientNames())
	return all, nil
}

// refreshPasswords reads what the owner's app passwords are called, where a snapshot has
// one that was not read yet: what comes in by one is shown by its name.
func (p *People) refreshPasswords(ctx context.Context) error {
	snapshot := p.cfg.Access.Snapshot()
	owner, _ := p.cfg.Access.Owner()
	p.mu.Lock()
	read, current := p.passwords, p.passwordsV == snapshot.Version
	p.mu.Unlock()
	if current || !slices.ContainsFunc(snapshot.Passwords, func(row controlapi.AppPassword) bool {
		return row.AccountID == owner.AccountID && !slices.ContainsFunc(read, func(info controlapi.PasswordInfo) bool { return info.ID == row.ID })
	}) {
		return nil
	}
	_, err := p.askPasswords(ctx)
	return err
}

// knownPasswords are those of the last snapshot, with what was last read of them.
func (p *People) knownPasswords() []controlapi.PasswordInfo {
	snapshot := p.cfg.Access.Snapshot()
	p.mu.Lock()
	read := p.passwords
	p.mu.Unlock()
	var out []controlapi.PasswordInfo
	for _, info := range read {
		if hasPassword(snapshot, info.ID) {
			out = append(out, info)
		}
	}
	for _, row := range snapshot.Passwords {
		if slices.ContainsFunc(read, func(info controlapi.PasswordInfo) bool { return info.ID == row.ID }) {
			continue
		}
		info := controlapi.PasswordInfo{ID: row.ID, AccountID: row.AccountID, AppID: row.AppID}
		person, _ := p.inSnapshot(row.AccountID)
		info.Email = person.Email
		out = append(out, info)
	}
	return out
}

// hasPassword says whether a snapshot has an app password.
func hasPassword(snapshot controlapi.Snapshot, id string) bool {
	return slices.ContainsFunc(snapshot.Passwords, func(row controlapi.AppPassword) bool { return row.ID == id })
}

// shownPasswords are app passwords as the loopback API shows them. One whose app is
// gone, or its person's access, opens nothing any more and is left out.
func (p *People) shownPasswords(all []controlapi.PasswordInfo, away taken) []agentapi.AppPassword {
	out := []agentapi.AppPassword{}
	apps := p.cfg.Apps.Approved()
	for _, info := range all {
		app, here := find(apps, func(app engine.App) bool { return app.ID == info.AppID })
		if !here || away.password(info) {
			continue
		}
		out = append(out, agentapi.AppPassword{
			ID: info.ID, AccountID: info.AccountID, Email: info.Email, Name: info.Name, CreatedAt: info.CreatedAt,
			App: app.Label, AppName: app.Name,
		})
	}
	return out
}

// password says whether an app password was taken away, or all it is good for.
func (t taken) password(info controlapi.PasswordInfo) bool {
	return t[store.DenyRecord{PasswordID: info.ID}] || t[store.DenyRecord{AccountID: info.AccountID}] ||
		t[store.DenyRecord{AccountID: info.AccountID, AppID: info.AppID}]
}

// RevokePassword ends one app password, whosever it is. What is open by it is closed
// at once, also with the control plane away.
func (p *People) RevokePassword(ctx context.Context, id string) (agentapi.Closed, error) {
	if p.cfg.Control == nil {
		return agentapi.Closed{}, p.connected()
	}
	const longest = 100 // no id is longer
	if id == "" || len(id) > longest || strings.HasPrefix(id, controlapi.PasswordPrefix) {
		return agentapi.Closed{}, noSuchPassword()
	}
	there, certain := p.passwordThere(ctx, id)
	if certain && !there {
		return agentapi.Closed{}, noSuchPassword()
	}
	info := p.passwordOf(id)
	closed, err := p.revoke(ctx, store.PendingChange{PasswordID: id})
	closed.Uncertain = err == nil && !certain && closed.Closed == 0
	if err == nil && !closed.Uncertain {
		p.happenedToPassword(agentapi.ActivityPasswordRevoked, info, closed.Closed)
	}
	p.cfg.Changes.Raise()
	return closed, err
}

// passwordOf is the app password with an id, as far as it is known.
func (p *People) passwordOf(id string) controlapi.PasswordInfo {
	info, _ := find(p.knownPasswords(), func(info controlapi.PasswordInfo) bool { return info.ID == id })
	return info
}

// happenedToPassword writes down what the owner did with an app password.
func (p *People) happenedToPassword(kind string, info controlapi.PasswordInfo, closed int) {
	who := controlapi.Person{AccountID: info.AccountID, Email: info.Email}
	p.happened(agentapi.Activity{Kind: kind, Owner: true, What: info.Name, Closed: closed}, who, p.namedApps(info.AppID))
}

// passwordThere says whether there is such an app password; see there.
func (p *People) passwordThere(ctx context.Context, id string) (there, certain bool) {
	return p.there(ctx, store.DenyRecord{PasswordID: id}, hasPassword(p.cfg.Access.Snapshot(), id), func(ctx context.Context) (bool, error) {
		all, err := p.readPasswords(ctx)
		return slices.ContainsFunc(all, func(info controlapi.PasswordInfo) bool { return info.ID == id }), err
	})
}

func noSuchPassword() error {
	return agentapi.Errorf(agentapi.CodeNotFound, "There is no such app password. It may have been revoked already.")
}

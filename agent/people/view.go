package people

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// View is what the owner's state says of people. It must not be changed.
type View struct {
	// Version is another one whenever List may answer something else.
	Version string
	// Count counts active and invited people, the owner aside.
	Count int
	// Open says who may open an app, by app id, in the same sense.
	Open map[string]Open
	// Undelivered are the addresses that an invitation did not reach.
	Undelivered []string
}

// Open is who may open one app: all of them counted, a few named.
type Open struct {
	Count int
	Names []string
}

// view is a View with what it was made from.
type view struct {
	View
	from string
}

// View never waits for the control plane: it is what the last snapshot says,
// less what was taken away here since.
func (p *People) View() View {
	snapshot := p.cfg.Access.Snapshot()
	away := p.takenAway(unconfirmed)
	from := fingerprint(snapshot, away, p.cfg.Access.Over(), p.cfg.Apps.Approved(), p.cfg.Access.ByGroup(), p.cfg.Access.Devices())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen.from != from {
		p.seen = view{View: p.look(snapshot.People, away), from: from}
		p.seen.Version = from
	}
	v := p.seen.View
	v.Undelivered = snapshot.Undelivered
	return v
}

func (p *People) look(people []controlapi.Person, away taken) View {
	v := View{Open: map[string]Open{}}
	people = slices.SortedFunc(slices.Values(people), func(a, b controlapi.Person) int { return cmp.Compare(a.Email, b.Email) })
	for _, m := range people {
		m = p.cfg.Access.AsNow(away.without(m))
		if m.Role == controlapi.RoleOwner || m.Status != controlapi.PersonActive && m.Status != controlapi.PersonPending {
			continue
		}
		v.Count++
		for _, id := range m.Apps {
			open := v.Open[id]
			open.Count++
			if len(open.Names) < agentapi.MaxNamed {
				open.Names = append(open.Names, m.Email)
			}
			v.Open[id] = open
		}
	}
	return v
}

// fingerprint is another one for everything that List could answer differently.
func fingerprint(snapshot controlapi.Snapshot, away taken, ended []store.Share, apps []engine.App, byGroup map[string]map[string]time.Time, devices []store.Device) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", snapshot.Computer.ID, snapshot.Version)
	keys := slices.SortedFunc(maps.Keys(away), func(a, b store.DenyRecord) int {
		return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.AppID, b.AppID), cmp.Compare(a.GrantID, b.GrantID),
			cmp.Compare(a.PasswordID, b.PasswordID))
	})
	for _, d := range keys {
		fmt.Fprintf(h, "%q %q %q %q\n", d.AccountID, d.AppID, d.GrantID, d.PasswordID)
	}
	for _, s := range ended {
		fmt.Fprintf(h, "%q %q %d\n", s.AccountID, s.AppID, s.Until.Unix())
	}
	for _, app := range apps {
		fmt.Fprintf(h, "%q %q %q\n", app.ID, app.Label, app.Status)
	}
	fmt.Fprintf(h, "%v\n", byGroup) // which fmt puts in order
	for _, d := range devices {
		fmt.Fprintf(h, "%q %q\n", d.ID, d.Apps)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Grants are the connected clients as last read, newest first, without those
// revoked here: one row a client and person. It never waits.
func (p *People) Grants() []agentapi.Grant {
	type party struct{ client, account string }
	live, asked := p.liveGrants(), map[party]agentapi.Grant{}
	for _, g := range live {
		of := party{g.ClientID, g.AccountID}
		row := asked[of]
		calls, last := p.cfg.Activity.Calls(g.ID)
		row.CallsToday += calls
		if last.After(row.LastCall) {
			row.LastCall = last.UTC()
		}
		asked[of] = row
	}
	rows := controlapi.FoldGrants(live)
	labels, _, _ := p.labels()
	out := make([]agentapi.Grant, 0, len(rows))
	for _, g := range rows {
		row := asked[party{g.ClientID, g.AccountID}]
		row.ID, row.ClientID, row.ClientName, row.Email = g.ID, g.ClientID, g.ClientName, g.Email
		row.ClientHost, row.CreatedAt, row.LastUsedAt = controlapi.ClientHost(g.ClientID), g.CreatedAt, g.LastUsedAt
		if len(g.Apps) > 0 {
			if row.Apps = labelsOf(slices.Values(g.Apps), labels); len(row.Apps) == 0 {
				continue // they are revoked here, and so it opens nothing
			}
		}
		out = append(out, row)
	}
	return out
}

// called is what the owner knows a client by, as agentapi.Grant has it.
func called(clientID, name string) string {
	return agentapi.Grant{ClientHost: controlapi.ClientHost(clientID), ClientName: name}.Called()
}

// liveGrants are all grants, not folded, without those revoked here.
func (p *People) liveGrants() []controlapi.Grant {
	away := p.takenAway(unconfirmed)
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.grants), func(g controlapi.Grant) bool { return away[store.DenyRecord{GrantID: g.ID}] })
}

// clientNames are what is let in without a browser, by what the owner knows it by: remote
// clients by the id of a grant and by their client_id, app passwords and devices by their id.
func (p *People) clientNames() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make(map[string]string, 2*len(p.grants)+len(p.passwords))
	for _, g := range p.grants {
		names[g.ID], names[g.ClientID] = called(g.ClientID, g.ClientName), called(g.ClientID, g.ClientName)
	}
	for _, one := range p.passwords {
		names[one.ID] = one.Name
	}
	for _, one := range p.cfg.Access.Devices() {
		names[one.ID] = one.Name
	}
	return names
}

// rowOf are the ids of all grants of the client and person that one is of, that
// one included; just the one where nothing is known of it.
func (p *People) rowOf(id string) []string {
	all := p.liveGrants()
	ids := []string{id}
	this, known := find(all, func(g controlapi.Grant) bool { return g.ID == id })
	for _, g := range all {
		if known && g.ID != id && g.ClientID == this.ClientID && g.AccountID == this.AccountID {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

// grantOf is the grant with an id, as far as it is known.
func (p *People) grantOf(id string) controlapi.Grant {
	g, _ := find(p.liveGrants(), func(g controlapi.Grant) bool { return g.ID == id })
	return g
}

// ListGrants asks the control plane for the grants, newest first; with it
// away the answer is what was last read.
func (p *People) ListGrants(ctx context.Context) ([]agentapi.Grant, error) {
	if err := p.connected(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	err := p.readGrants(ctx)
	p.mu.Lock()
	never := p.grantsV == ""
	p.mu.Unlock()
	if err != nil && never {
		return nil, refusal(err)
	}
	return p.Grants(), nil
}

// refreshGrants reads the grants again when a snapshot says that something is
// new.
func (p *People) refreshGrants(ctx context.Context) error {
	version := p.cfg.Access.Snapshot().Version
	p.mu.Lock()
	current := version == "" || version == p.grantsV
	p.mu.Unlock()
	if current {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	return p.readGrants(ctx)
}

// readGrants has the answer take effect unless what came of a later question is
// there already: two may be under way at once.
func (p *People) readGrants(ctx context.Context) error {
	snapshot := p.cfg.Access.Snapshot()
	p.mu.Lock()
	p.grantsAsked++
	asked := p.grantsAsked
	p.mu.Unlock()
	grants, err := p.cfg.Control.Grants(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if asked < p.grantsFrom {
		p.mu.Unlock()
		return nil
	}
	same := len(grants) == 0 && len(p.grants) == 0 || reflect.DeepEqual(grants, p.grants)
	known, before := p.grantsV != "", p.grants
	if !known {
		before, known = p.keptClients(snapshot.Computer.ID)
	}
	gone := p.cameAndWent(before, grants, snapshot.RevokedGrants)
	if p.grantsV == "" {
		gone = nil // told of before this start, as far as it is known
	}
	p.grants, p.grantsV, p.grantsFrom = grants, snapshot.Version, asked
	p.mu.Unlock()
	p.cfg.Activity.NameClients(p.clientNames())
	if known {
		p.clientsChanged(before, grants, gone)
	}
	p.keepClients(snapshot.Computer.ID)
	if !same {
		p.cfg.Changes.Raise()
	}
	return nil
}

// RevokeGrant ends what a person allowed a client: all their grants of it, by the
// id of any. What it has open is closed at once, also with the control plane away, which
// alone knows whether there is one that was not read yet.
func (p *People) RevokeGrant(ctx context.Context, id string) (agentapi.Closed, error) {
	if p.cfg.Control == nil {
		return agentapi.Closed{}, p.connected()
	}
	const longest = 100 // no id is longer
	if id == "" || len(id) > longest {
		return agentapi.Closed{}, noSuchGrant()
	}
	there, certain := p.grantThere(ctx, id)
	if certain && !there {
		return agentapi.Closed{}, noSuchGrant()
	}
	row, grant := p.rowOf(id), p.grantOf(id)
	changes := make([]store.PendingChange, len(row))
	for i, id := range row {
		changes[i].GrantID = id
	}
	closed, err := p.revoke(ctx, changes...)
	if err != nil {
		return closed, err
	}
	p.mu.Lock()
	p.grants = slices.DeleteFunc(slices.Clone(p.grants), func(g controlapi.Grant) bool { return slices.Contains(row, g.ID) })
	p.grantsFrom = p.grantsAsked + 1 // what was asked before may have them
	p.mu.Unlock()
	if closed.Uncertain = !certain && closed.Closed == 0; closed.Uncertain {
		return closed, nil // nothing is known to have happened
	}
	p.cfg.Activity.Add(agentapi.Activity{
		Kind: agentapi.ActivityClientOut, Owner: true, Email: grant.Email, AccountID: grant.AccountID, What: called(grant.ClientID, grant.ClientName), Closed: closed.Closed,
	})
	if certain { // else the list may not have been read since the start
		p.keepClients(p.cfg.Access.Snapshot().Computer.ID)
	}
	p.cfg.Changes.Raise()
	return closed, nil
}

// revoke takes grants or an app password away at once, and tells the control plane soon.
func (p *People) revoke(ctx context.Context, changes ...store.PendingChange) (agentapi.Closed, error) {
	began := p.cfg.Now()
	closed, unwritten := 0, []store.PendingChange{}
	for _, c := range changes {
		closed += p.cfg.Access.Shut(c.Deny())
	}
	for _, c := range changes {
		n, _, err := p.takeAway(c, 0)
		closed += n
		if err != nil {
			unwritten = append(unwritten, c)
		}
	}
	took := p.cfg.Now().Sub(began)
	p.cfg.Changes.Raise()
	p.sendSoon(ctx)
	if slices.ContainsFunc(unwritten, func(c store.PendingChange) bool { return !p.wasSent(c) }) {
		return agentapi.Closed{}, errUnwritten
	}
	return agentapi.Closed{OK: true, Closed: closed, Milliseconds: int(took / time.Millisecond)}, nil
}

// grantThere says whether there is such a grant; see there.
func (p *People) grantThere(ctx context.Context, id string) (there, certain bool) {
	listed := func() bool {
		return slices.ContainsFunc(p.liveGrants(), func(g controlapi.Grant) bool { return g.ID == id })
	}
	return p.there(ctx, store.DenyRecord{GrantID: id}, listed(), func(ctx context.Context) (bool, error) {
		err := p.readGrants(ctx)
		return listed(), err
	})
}

// there says whether there is what d would take away, and whether that is certain: with
// the control plane away it may have been made since the last reading. What was taken away
// here already is not. listed says that it was there when it was read last; read reads anew.
func (p *People) there(ctx context.Context, d store.DenyRecord, listed bool, read func(context.Context) (listed bool, err error)) (there, certain bool) {
	switch {
	case p.endedHere(d):
		return false, true
	case listed:
		return true, true
	case p.away():
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, sendIn)
	defer cancel()
	there, err := read(ctx)
	return there && err == nil, err == nil
}

func noSuchGrant() error {
	return agentapi.Errorf(agentapi.CodeNotFound, "There is no such connected app. It may have been disconnected already.")
}

package people

import (
	"cmp"
	"context"
	"net/mail"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// sendIn is how long taking access away waits for the control plane to know of
// it before it is answered; what takes longer goes on in Run.
const sendIn = 2 * time.Second

// Invite carries out POST /people/invite. Every label must be one of a live app;
// one that is not refuses the whole, and nothing is written or sent.
func (p *People) Invite(ctx context.Context, by Actor, req agentapi.InviteRequest) (agentapi.Invitation, error) {
	apps, err := p.liveApps(req.Apps)
	if err != nil && !looksLikeAddress(req.Email) {
		err = agentapi.Errorf(agentapi.CodeOf(err), "That does not look like an e-mail address. %s", err)
	}
	if err = cmp.Or(err, noSender(req.Email)); err != nil {
		return agentapi.Invitation{}, err
	}
	if err := p.canEnd(&req.Until); err != nil {
		return agentapi.Invitation{}, err
	}
	release, err := p.reserveNotice(by)
	if err != nil {
		return agentapi.Invitation{}, err
	}
	defer release()
	ctx, turn, err := p.begin(ctx, by, func(pending) bool { return true }) // who it is, the control plane knows
	if err != nil {
		return agentapi.Invitation{}, err
	}
	defer turn.end()
	ids, were := idsOf(apps), p.asTheyWere()
	after, err := p.cfg.Control.Invite(ctx, controlapi.Invite{Email: req.Email, Apps: ids, Until: req.Until, Name: p.displayName(by), Language: p.language(), Program: !by.Owner})
	if err != nil {
		return agentapi.Invitation{}, refusal(err)
	}
	p.liftGiven(after, ids, turn.upTo)
	p.endKnown(ctx, req.Until, after)
	if by.Owner {
		p.ownerGave(were(after.AccountID), after, apps)
	} else {
		p.tellInvited(by, turn.before[after.AccountID], after, apps)
	}
	return agentapi.Invitation{Email: after.Email, Status: agentapi.PersonPending, URL: p.urlOf(apps)}, nil
}

// urlOf is the address of the first of apps that are shared; empty where it has none.
func (p *People) urlOf(apps []engine.App) string {
	pub, err := p.cfg.Apps.Get(apps[0].Name)
	if err != nil {
		return ""
	}
	return pub.URL
}

// SetAccess carries out POST /people/grant: one app for one person, given or
// withdrawn.
func (p *People) SetAccess(ctx context.Context, by Actor, req agentapi.AccessRequest) (agentapi.PersonChanged, error) {
	if req.Granted {
		return p.give(ctx, by, req)
	}
	app, ok := p.cfg.Apps.ByLabel(req.App)
	if !ok {
		return agentapi.PersonChanged{}, agentapi.NoAppCalled(req.App)
	}
	hold, err := holdFor(by, req.HoldSeconds)
	if err != nil {
		return agentapi.PersonChanged{}, err
	}
	return p.end(ctx, by, store.PendingChange{AccountID: req.AccountID, AppID: app.ID}, hold)
}

// Remove carries out POST /people/revoke: the whole computer is taken away.
func (p *People) Remove(ctx context.Context, by Actor, req agentapi.RemoveRequest) (agentapi.PersonChanged, error) {
	hold, err := holdFor(by, req.HoldSeconds)
	if err != nil {
		return agentapi.PersonChanged{}, err
	}
	return p.end(ctx, by, store.PendingChange{AccountID: req.AccountID}, hold)
}

// TakeBackInvitation takes the invitation of somebody back: they have no app then, and are not on
// the list where they never were before it.
func (p *People) TakeBackInvitation(ctx context.Context, accountID string) error {
	_, err := p.end(ctx, Owner, store.PendingChange{AccountID: accountID, Undo: true}, 0)
	return err
}

func (p *People) give(ctx context.Context, by Actor, req agentapi.AccessRequest) (agentapi.PersonChanged, error) {
	release, err := p.reserveNotice(by)
	if err != nil {
		return agentapi.PersonChanged{}, err
	}
	defer release()
	if err := p.canEnd(&req.Until); err != nil {
		return agentapi.PersonChanged{}, err
	}
	if changed, ok, err := p.givenBack(by, req); ok || err != nil {
		return changed, err
	}
	apps, err := p.appsToGive(by, req)
	if err != nil {
		return agentapi.PersonChanged{}, err
	}
	ctx, turn, err := p.begin(ctx, by, func(c pending) bool {
		return c.AccountID == req.AccountID && (c.AppID == "" || c.AppID == apps[0].ID)
	})
	if err != nil {
		return agentapi.PersonChanged{}, err
	}
	defer turn.end()
	were := p.asTheyWere()
	after, err := p.cfg.Control.SetAccess(ctx, controlapi.SetAccess{AccountID: req.AccountID, App: apps[0].ID, Granted: true, Until: req.Until, Program: !by.Owner})
	if err != nil {
		return agentapi.PersonChanged{}, refusal(err)
	}
	p.liftGiven(after, []string{apps[0].ID}, turn.upTo)
	p.endKnown(ctx, req.Until, after)
	if by.Owner {
		p.ownerGave(were(after.AccountID), after, apps)
	} else if adds(turn.before[after.AccountID], after, apps[0].ID) {
		p.tell(by, agentapi.Activity{Kind: agentapi.ActivityGiven}, after, apps, &store.Undo{AccountID: after.AccountID, Apps: []string{apps[0].ID}})
	}
	return agentapi.PersonChanged{OK: true, Person: p.shown(by, after)}, nil
}

// adds says whether somebody can open an app for longer than before. A program gives no
// end and takes none away; but a share that ended while it asked is given anew, and then
// for ever.
func adds(before, after controlapi.Person, appID string) bool {
	return !slices.Contains(before.Apps, appID) || !before.Until[appID].Equal(after.Until[appID])
}

// end takes access away: here at once, then, when hold is over, at the control
// plane, which may be away.
func (p *People) end(ctx context.Context, by Actor, c store.PendingChange, hold time.Duration) (agentapi.PersonChanged, error) {
	began := p.cfg.Now()
	if err := p.connected(); err != nil && p.cfg.Control == nil {
		return agentapi.PersonChanged{}, err
	}
	row, known := p.inSnapshot(c.AccountID)
	switch {
	case !known:
		return p.endUnknown(ctx, by, c)
	case row.Role == controlapi.RoleOwner:
		return agentapi.PersonChanged{}, agentapi.Errorf(agentapi.CodeInvalid, "This is the owner of the computer, who can open everything.")
	}
	shut := p.cfg.Access.Shut(c.Deny())
	row = p.takenAway(unconfirmed).without(row)
	w, one := c.Withdraws()
	byGroup := one && !p.cfg.Access.IsWithdrawn(w) && p.cfg.Access.OpenedByGroup(c.AccountID, c.AppID)
	c.Program = !by.Owner
	closed, heldUntil, err := p.takeAway(c, hold)
	closed += shut
	out := agentapi.PersonChanged{OK: true, Closed: closed, Milliseconds: int(p.cfg.Now().Sub(began).Milliseconds())}
	p.cfg.Changes.Raise()
	if heldUntil.IsZero() {
		p.sendSoon(ctx)
	} else {
		out.HeldUntil = &heldUntil
		p.wake.Raise() // Run has a moment to wait for
	}
	if err != nil && !p.wasSent(c) {
		return agentapi.PersonChanged{}, errUnwritten
	}
	p.tellEnded(by, row, c, closed, byGroup)
	out.Person = p.shown(by, after(row, c))
	return out, nil
}

// endUnknown takes access from somebody whom the last snapshot does not name, so that
// nothing is open to them here: they were invited a moment ago, or do not exist. The
// control plane knows which, and is told at once.
func (p *People) endUnknown(ctx context.Context, by Actor, c store.PendingChange) (agentapi.PersonChanged, error) {
	ctx, turn, err := p.begin(ctx, by, func(pending) bool { return false })
	if err != nil {
		return agentapi.PersonChanged{}, err
	}
	defer turn.end()
	var row controlapi.Person
	if c.AppID != "" {
		row, err = p.cfg.Control.SetAccess(ctx, controlapi.SetAccess{AccountID: c.AccountID, App: c.AppID, Program: !by.Owner})
	} else {
		row, err = p.cfg.Control.Remove(ctx, controlapi.Remove{AccountID: c.AccountID, Program: !by.Owner, Undo: c.Undo})
	}
	if err != nil {
		return agentapi.PersonChanged{}, refusal(err)
	}
	if w, ok := c.Withdraws(); ok {
		if err := p.cfg.Access.Withdraw(w); err != nil {
			return agentapi.PersonChanged{}, errUnwritten
		}
	}
	before := turn.before[c.AccountID]
	if by.Owner { // for whom nobody is asked for first
		before = row
		before.Status, before.Apps = controlapi.PersonPending, append(slices.Clone(row.Apps), c.AppID)
	}
	p.tellEnded(by, before, c, 0, false)
	return agentapi.PersonChanged{OK: true, Person: p.shown(by, row)}, nil
}

// after is a row once a change is carried out.
func after(row controlapi.Person, c store.PendingChange) controlapi.Person {
	if c.AppID == "" {
		row.Status = controlapi.PersonRemoved
		return row
	}
	return without(row, func(id string) bool { return id == c.AppID })
}

// turn is the time in which something is changed at the control plane. It lasts
// until end is called.
type turn struct {
	upTo   uint64                       // see flush
	before map[string]controlapi.Person // see asTheyAre
	end    func()
}

// begin takes the turn, sends older changes, so that nothing overtakes them, and has
// the control plane know the apps. Before that it ends the holds for which ends is
// true. The change is to be made under the context it returns.
func (p *People) begin(ctx context.Context, by Actor, ends func(pending) bool) (context.Context, turn, error) {
	if err := p.connected(); err != nil {
		return nil, turn{}, err
	}
	p.release(ends)
	within := programIn
	if by.Owner {
		within = answerIn
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	first, cancelFirst := context.WithTimeout(ctx, within)
	defer cancelFirst()
	done, err := p.awaitTurn(first)
	if err != nil {
		cancel()
		return nil, turn{}, unreachable()
	}
	t := turn{end: func() { done(); cancel() }}
	if t.upTo, err = p.flush(first); err == nil && p.cfg.Report != nil {
		err = p.cfg.Report(first)
	}
	if err == nil {
		t.before, err = p.asTheyAre(first, by)
	}
	if err != nil {
		t.end()
		return nil, turn{}, refusal(err)
	}
	return ctx, t, nil
}

// asTheyAre lists everybody by account id before a program changes something, so
// that the change can be told and undone exactly. The owner's own are neither.
func (p *People) asTheyAre(ctx context.Context, by Actor) (map[string]controlapi.Person, error) {
	if by.Owner {
		return nil, nil
	}
	all, err := p.cfg.Control.People(ctx)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]controlapi.Person, len(all.Members))
	for _, m := range all.Members {
		rows[m.AccountID] = m
	}
	return rows, nil
}

// sendSoon gives the control plane a moment to take what was just taken away;
// Run goes on with what remains.
func (p *People) sendSoon(ctx context.Context) {
	defer p.wake.Raise()
	if p.away() || p.leftAlone() > 0 {
		return
	}
	// Who asked may have gone; what they asked for is to happen all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendIn)
	defer cancel()
	if err := p.sendAll(ctx); err != nil {
		p.cfg.Log.Info("the control plane is told later of access that was taken away", "err", err)
	}
}

func (p *People) wasSent(c store.PendingChange) bool {
	return !slices.ContainsFunc(p.unsent(), func(u pending) bool { return u.Deny() == c.Deny() })
}

// liveApps finds the live apps with these labels, each once, in their order.
func (p *People) liveApps(labels []string) ([]engine.App, error) {
	if len(labels) == 0 {
		return nil, agentapi.Errorf(agentapi.CodeInvalid, "Name at least one app.")
	}
	var apps []engine.App
	for _, label := range labels {
		app, ok := p.cfg.Apps.ByLabel(label)
		switch {
		case !ok:
			return nil, agentapi.NoAppCalled(label)
		case app.Status == agentapi.StatusPending:
			return nil, agentapi.Errorf(agentapi.CodeInvalid, "%q has changed and waits for the owner's approval, so it cannot be shared now.", app.Label)
		case app.Status != agentapi.StatusLive:
			return nil, agentapi.Errorf(agentapi.CodeInvalid, "%q is stopped, so it cannot be shared now. It can when the app is running again.", app.Label)
		}
		if !slices.ContainsFunc(apps, func(a engine.App) bool { return a.ID == app.ID }) {
			apps = append(apps, app)
		}
	}
	return apps, nil
}

func idsOf(apps []engine.App) []string {
	ids := make([]string, len(apps))
	for i, app := range apps {
		ids[i] = app.ID
	}
	return ids
}

// noSender refuses a mail address that apps know a named sender by: nobody reads mail there.
func noSender(email string) error {
	if controlapi.OfSender(email) {
		return agentapi.Errorf(agentapi.CodeInvalid, "%s is a sender's: nobody gets mail there.", strings.TrimSpace(email))
	}
	return nil
}

// looksLikeAddress is asked when an invitation is refused because of its apps, so that
// a bad address is told in the same answer and not only at the next try. Which
// addresses are good, the control plane decides.
func looksLikeAddress(email string) bool {
	email = strings.TrimSpace(email)
	a, err := mail.ParseAddress(email)
	return err == nil && a.Name == "" && a.Address == email && strings.Contains(email[strings.LastIndexByte(email, '@'):], ".")
}

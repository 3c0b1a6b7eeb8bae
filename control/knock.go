package control

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"porchlight/control/controlapi"
)

// Knocks. Somebody who is signed in, and may not open what they asked for, asks the
// owner by one click on the page that says so. What the owner is told is a verified
// address and an app, nothing that the visitor wrote.
//
// What the page shows is computed from what this visitor did (knockAsked) and from
// what opens to them, never from what became of the knock. So somebody refused, not
// listened to any more, ignored, and somebody who asks for an app that does not exist
// see the same page, at the same times.

// Knocks are asked by visitors and answered by the owner's agent.
type Knocks struct{ *core }

// Door is what somebody stands before: well formed, which is all that is known of it.
type Door struct {
	Computer string // short name
	App      string // id; empty for the launcher
	Host     string // with its port
}

// Door of a visit.
func (v VisitRequest) Door() Door { return Door{v.Computer, v.App, cmp.Or(v.AppHost, v.Host)} }

// Query is what ParseDoor reads.
func (d Door) Query() string {
	return url.Values{controlapi.ParamComputer: {d.Computer}, controlapi.ParamApp: {d.App}, controlapi.ParamHost: {d.Host}}.Encode()
}

// URL is where what is behind it opens.
func (d Door) URL() string { return "https://" + d.Host + "/" }

func (d Door) askedKey(accountID string) string {
	return keyKnocksAsked(accountID) + hashOf(purposeDoor, d.Computer, d.App, d.Host)
}

// ParseDoor reads the fields of a knock, or refuses with CodeInvalid. Nothing is looked
// up, so that the answer tells nothing about what exists.
func (s *Knocks) ParseDoor(q url.Values) (Door, error) {
	d := Door{q.Get(controlapi.ParamComputer), q.Get(controlapi.ParamApp), q.Get(controlapi.ParamHost)}
	for _, name := range []string{controlapi.ParamComputer, controlapi.ParamApp, controlapi.ParamHost} {
		if len(q[name]) > 1 {
			return Door{}, doorMalformed()
		}
	}
	if !s.placeFormed(d.Computer, d.App, d.Host) {
		return Door{}, doorMalformed()
	}
	return d, nil
}

func doorMalformed() error {
	return refuse(controlapi.CodeInvalid, "This address is not complete. Go back to the app and open it again.")
}

// KnockStage is what somebody at a door can do.
type KnockStage string

const (
	KnockClosed     KnockStage = "closed"     // nothing: nobody is asked here
	KnockAsk        KnockStage = "ask"        // ask
	KnockSpent      KnockStage = "spent"      // ask again tomorrow, because they asked often
	KnockWaiting    KnockStage = "waiting"    // wait
	KnockUnanswered KnockStage = "unanswered" // ask again tomorrow
	KnockInvited    KnockStage = "invited"    // accept, by one click in this browser
	KnockPending    KnockStage = "pending"    // accept the invitation they have
	KnockOpen       KnockStage = "open"       // go in
)

// Standing is how somebody stands at a door.
type Standing struct {
	Stage  KnockStage
	Waited time.Duration // since they asked, of KnockWaiting and KnockUnanswered
	// Invitation is the path of the page where somebody pending accepts, of KnockPending;
	// empty of an invitation without a name, to which only its mail leads.
	Invitation string
}

// doorState is what decides about somebody at a door. Every field is read whatever the
// others say.
type doorState struct {
	computer computer
	found    bool
	person   person
	there    bool // the host is that of the app, which is live, or the launcher's
	opens    bool // they may open what they asked for
	from     controlapi.KnocksFrom
	offer    knockOffer
	offered  bool // offer is there
	// invitation opens what they asked for, once they accept it; invited is whether it is
	// there.
	invitation invitation
	invited    bool
	asked      knockAsked
}

func (s *Knocks) readDoor(tx *txn, d Door, account Account) (b doorState) {
	b.computer, b.found = computerByName(tx, d.Computer)
	id := b.computer.ID
	b.person, _ = get[person](tx, keyPerson(id, account.ID))
	b.person = b.person.asOf(tx.now)
	b.from, _ = get[controlapi.KnocksFrom](tx, keyComputerKnocks(id))
	b.there = s.hostIsApps(tx, b.computer, d.App, d.Host)
	accepted := b.person // as they are once they have accepted
	accepted.Status = controlapi.PersonActive
	opens := opensFor(tx, b.computer, accepted, d.App)
	b.opens = opens && b.person.Status == controlapi.PersonActive
	b.offer, b.offered = get[knockOffer](tx, keyKnockOffers(id)+knockRest(account.ID, d.App))
	// What was invited to may have been taken back, or have ended, since.
	b.offered = b.offered && tx.now.Before(b.offer.Until) && b.person.Status != controlapi.PersonRemoved && slices.Contains(b.person.Apps, d.App)
	hash, newest := newestInvitation(tx, id, account.ID)
	b.invitation, b.invited = newest, hash != "" && b.person.Status == controlapi.PersonPending && opens
	b.asked, _ = get[knockAsked](tx, d.askedKey(account.ID))
	return b
}

// opensFor says whether somebody may open an app; the launcher's opens when it has
// something to show them.
func opensFor(tx *txn, c computer, p person, appID string) bool {
	if appID != "" || p.Role == controlapi.RoleOwner {
		return p.mayOpen(appID)
	}
	apps, _ := get[[]controlapi.App](tx, keyComputerApps(c.ID))
	return slices.ContainsFunc(apps, func(a controlapi.App) bool { return a.Live && p.mayOpen(a.ID) })
}

func (p person) known() bool {
	return p.Status == controlapi.PersonActive || p.Status == controlapi.PersonPending
}

// takes says whether a computer listens to somebody at all.
func (b doorState) takes() bool {
	if !b.found || b.person.Role == controlapi.RoleOwner {
		return false
	}
	return b.from == controlapi.KnocksFromEverybody || b.from == controlapi.KnocksFromKnown && b.person.known()
}

// stage is how somebody stands, by what they did and what opens to them.
func (b doorState) stage(now time.Time, session Session, spent bool) KnockStage {
	age := now.Sub(b.asked.At)
	switch {
	case b.there && b.opens:
		return KnockOpen
	case b.there && b.offered && b.offer.SessionID == session.ID:
		return KnockInvited
	case b.there && b.invited:
		return KnockPending
	case age < knockPatience:
		return KnockWaiting
	case age < knockAgain:
		return KnockUnanswered
	case !b.takes():
		return KnockClosed
	case spent:
		return KnockSpent
	}
	return KnockAsk
}

// Look says how somebody who is signed in stands at a door. It changes nothing.
func (s *Knocks) Look(ctx context.Context, d Door, session Session) (Standing, error) {
	return viewed(ctx, s.core, func(tx *txn) (Standing, error) {
		b := s.readDoor(tx, d, session.Account)
		spent := tx.affords(budgetKnocks.of(session.Account.ID)) != nil
		out := Standing{Stage: b.stage(tx.now, session, spent), Waited: tx.now.Sub(b.asked.At)}
		if out.Stage == KnockPending && b.invitation.Name != "" {
			out.Invitation = InvitationPath(b.invitation.Name)
		}
		return out, nil
	})
}

// Ask knocks. What the visitor reads afterwards is Look's to say, and the same whether
// the owner is told or not. It refuses with CodeForbidden where nobody is asked, and
// with CodeTooMany somebody who asked three times today. To ask once more within a
// day changes nothing.
func (s *Knocks) Ask(ctx context.Context, d Door, session Session) error {
	if err := s.pace.spend(s.now(), budgetVisits.of(session.Account.ID)); err != nil {
		return err
	}
	id := newID()
	return s.update(ctx, func(tx *txn) error {
		b := s.readDoor(tx, d, session.Account)
		switch stage := b.stage(tx.now, session, false); {
		case stage == KnockClosed:
			return refuse(controlapi.CodeForbidden, "This isn’t shared with you.")
		case stage != KnockAsk:
			return nil
		}
		if err := tx.spend(budgetKnocks.of(session.Account.ID)); err != nil {
			return err
		}
		row := knock{
			ID: id, AccountID: session.Account.ID, Email: session.Account.Email, AppID: d.App,
			SessionID: session.ID, Asked: d.askedKey(session.Account.ID), At: tx.now.UTC(),
		}
		asked := knockAsked{At: row.At, ComputerID: b.computer.ID, AppID: d.App}
		tx.put(row.Asked, asked, knockLife)
		tx.tellKnock(b, row)
		return nil
	})
}

// tellKnock has the owner hear of a knock, unless they do not want to, or there is
// nothing to knock at.
func (t *txn) tellKnock(b doorState, row knock) {
	computerID, rest := b.computer.ID, knockRest(row.AccountID, row.AppID)
	refusedAt, refused := get[time.Time](t, keyKnocksRefused(computerID)+rest)
	refused = refused && t.now.Sub(refusedAt) < knockSilence
	_, muted := get[time.Time](t, keyKnocksMuted(computerID)+row.AccountID)
	open := t.openKnocks(computerID)
	if refused || muted || !b.there {
		return
	}
	if b.offered {
		// The owner has said yes, and the browser that asked then is not this one.
		b.offer.SessionID = row.SessionID
		t.put(keyKnockOffers(computerID)+rest, b.offer, b.offer.Until.Sub(t.now))
		return
	}
	for _, other := range open {
		if other.AccountID == row.AccountID && other.AppID == row.AppID {
			row.ID = other.ID // the owner has not answered yet; it stays one
			t.putKnock(computerID, row)
			return
		}
	}
	if t.roomForKnock(b, open) {
		t.putKnock(computerID, row)
	}
}

// roomForKnock says whether one more knock can wait. Where none can, the oldest of a
// stranger gives way to somebody who is known, so that strangers keep nobody out.
func (t *txn) roomForKnock(b doorState, open []knock) bool {
	if len(open) < controlapi.MaxKnocks {
		return true
	}
	if !b.person.known() {
		return false
	}
	oldest := -1
	for i, row := range open {
		p, _ := get[person](t, keyPerson(b.computer.ID, row.AccountID))
		if !p.known() && (oldest < 0 || row.At.Before(open[oldest].At)) {
			oldest = i
		}
	}
	if oldest < 0 {
		return false
	}
	t.delete(keyKnocks(b.computer.ID) + knockRest(open[oldest].AccountID, open[oldest].AppID))
	return true
}

// Package access decides who may open what.
//
// In comes the last snapshot of the control plane (people, their apps, their
// session epochs, revoked grants) and what the owner denied on this computer.
// Out goes one Decision for an identity and an app, without a network and
// without a lock: readers see an immutable state behind an atomic pointer,
// writers swap it and then close every live connection the new state refuses.
// The package also keeps browser sessions, the owner's one-time links and the
// register of live connections.
//
// Of HTTP it reads one header, Authorization (Bearer, and Basic with an app
// password), and it never asks the control plane.
package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/activity"
	"porchlight/agent/settings"
	"porchlight/agent/sleep"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
)

// Config of New. Store is required.
type Config struct {
	Store *store.Store
	// Settings say how long the last snapshot decides without the control plane;
	// 24 hours when nil.
	Settings *settings.Settings
	// Changes is raised after each snapshot and the first contact with the control plane
	// after a silence, when everything was closed or opened, and from Run when the number
	// of live connections of any app has changed, at most twice a second. Run listens to it, too: it is how it
	// learns that the settings were replaced. Nil when nobody follows anything.
	Changes *broadcast.Signal
	Now     func() time.Time // time.Now when nil
	// SinceBoot is how long this computer has run, asleep or awake; as the system
	// says when nil.
	SinceBoot func() time.Duration
	Activity  *activity.Log // nil where what happens is not kept
	Log       *slog.Logger  // discarded when nil
}

// Access is safe for concurrent use. Run must be running for sessions to slide
// durably and for access to end when the snapshot grows too old.
type Access struct {
	store    *store.Store
	settings *settings.Settings
	changes  *broadcast.Signal
	now      func() time.Time
	activity *activity.Log // or nil
	log      *slog.Logger

	// writing is locked while a change is stored and decides, so that what is stored last
	// is what decides. It guards contactSaved, silenceSaved, devicesSaved and ends too. What
	// takes access away decides before, without it: see Shut.
	writing sync.Mutex
	// swapping is locked while state is replaced, so that two writers cannot lose each
	// other's change, and never while the disk is waited for. It is the inner one.
	swapping     sync.Mutex
	contactSaved time.Time
	silenceSaved time.Duration // see keepSilence
	devicesSaved devices       // as they are on the disk
	state        atomic.Pointer[state]
	changed      atomic.Pointer[chan struct{}]

	mark       atomic.Pointer[mark] // the control plane's silence; nil before the first snapshot
	clock      controlClock
	ends       ends
	endsWake   broadcast.Signal // Run is to look whether a share has ended
	contacts   atomic.Uint64    // see Contacts
	contact    broadcast.Signal // raised with it
	clockAhead atomic.Int64     // time.Duration; see SetClockAhead

	sessions sessions
	links    links
	live     live
}

// state is immutable once it is published.
type state struct {
	received bool       // a snapshot was ever received
	dark     *time.Time // since when the owner has closed everything, or nil
	snapshot controlapi.Snapshot
	people   map[string]*person // by account id
	grants   map[string]bool    // revoked, by grant id
	denied   map[store.DenyRecord]bool
	groups   []store.Group            // of the owner's, removed ones included
	withheld map[store.Withdrawn]bool // what no group opens
	keys     *keySet                  // that verify access tokens
	ends     bool                     // some share has an end, or had one
	domains  map[string]controlapi.Domain

	passwords passwords
	senders   senders
	devices   devices
}

type person struct {
	controlapi.Person
	opens   map[string]bool      // app ids
	byGroup map[string]time.Time // app ids, with their ends, zero for none
}

// New reads the last snapshot and the deny records from the store.
func New(c Config) (*Access, error) {
	a := &Access{store: c.Store, settings: c.Settings, changes: c.Changes, now: c.Now, activity: c.Activity}
	if a.now == nil {
		a.now = time.Now
	}
	a.log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	a.clock.now, a.clock.sinceBoot = a.now, c.SinceBoot
	if a.clock.sinceBoot == nil {
		a.clock.sinceBoot = sleep.SinceBoot
	}
	if err := errors.Join(a.loadTime(), a.loadEnded()); err != nil {
		return nil, err
	}
	a.sessions.cache = map[store.SessionKey]*session{}
	a.sessions.unsaved = map[store.SessionKey]time.Time{}
	a.links.open = map[[32]byte]link{}
	a.changed.Store(new(make(chan struct{})))

	records, err := c.Store.DenyRecords()
	if err != nil {
		return nil, fmt.Errorf("read who was denied: %w", err)
	}
	st := &state{denied: setOf(records, withoutTime)}
	if err := errors.Join(a.loadGroups(st), a.loadDevices(st)); err != nil {
		return nil, err
	}
	if st.dark, err = c.Store.DarkSince(); err != nil {
		return nil, err
	}
	snap, contact, ok, err := c.Store.Snapshot()
	if err != nil {
		// The control plane sends a new one; until then nobody is let in.
		a.log.Warn("the stored snapshot cannot be used", "err", err)
	} else if ok {
		st.index(snap)
		a.contactSaved = contact
		if err := a.loadSilence(contact); err != nil {
			return nil, err
		}
	}
	a.state.Store(st)
	return a, nil
}

// SetClockAhead notes how far the control plane's clock was last seen ahead of
// this computer's; negative where it is behind. Shares end by that clock. Access tokens,
// whose times it wrote, are held to it too, but there no more than a minute's difference
// counts.
func (a *Access) SetClockAhead(ahead time.Duration) {
	if a.clock.hear(ahead) {
		a.endsWake.Raise()
	}
	a.clockAhead.Store(int64(min(max(ahead, -controlapi.ClockSkew), controlapi.ClockSkew)))
}

// FormerOwner says whether another account's computer had this one's name before.
func (a *Access) FormerOwner() bool { return a.state.Load().snapshot.Computer.Former }

// index fills the indexes from a snapshot.
func (st *state) index(snap controlapi.Snapshot) {
	st.received, st.snapshot = true, snap
	st.people = make(map[string]*person, len(snap.People))
	for _, p := range snap.People {
		st.people[p.AccountID] = &person{Person: p, opens: setOf(p.Apps, func(id string) string { return id })}
		st.ends = st.ends || len(p.Until) > 0 || len(p.Ended) > 0
	}
	st.ends = st.ends || len(st.senders.ends()) > 0
	st.regroup()
	st.grants = setOf(snap.RevokedGrants, func(g controlapi.RevokedGrant) string { return g.ID })
	st.keys = keysOf(snap.PublicKeys, st.keys)
	st.passwords = passwordsOf(snap.Passwords)
	st.domains = make(map[string]controlapi.Domain, len(snap.Domains))
	for _, d := range snap.Domains {
		st.domains[d.Name] = d
	}
}

// setOf has the key of each of all.
func setOf[T any, K comparable](all []T, key func(T) K) map[K]bool {
	set := make(map[K]bool, len(all))
	for _, one := range all {
		set[key(one)] = true
	}
	return set
}

// Snapshot returns the last snapshot of the control plane; its Version is empty
// when there never was one. It must not be changed.
func (a *Access) Snapshot() controlapi.Snapshot { return a.state.Load().snapshot }

// Suspended is there while the server's operator has ended what goes to this computer.
func (a *Access) Suspended() *controlapi.Suspended { return a.state.Load().snapshot.Suspended }

// SetSnapshot makes a changed snapshot of the control plane decide from now on,
// closes the live connections it refuses, and returns how many those were. The
// snapshot is kept for a restart afterwards: a disk that fails must not keep
// anybody's access alive.
func (a *Access) SetSnapshot(snap controlapi.Snapshot) (closed int) {
	if snap.Unchanged {
		a.Touch()
		return 0
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	now := a.now()
	closed = a.contacted(now)
	var old state
	var same bool
	closed += a.swap(func(next *state) (changed bool) {
		old = *next
		*next = state{denied: old.denied, groups: old.groups, withheld: old.withheld, keys: old.keys, dark: old.dark, senders: old.senders}
		next.index(snap)
		same = old.received && old.snapshot.Computer.ID == snap.Computer.ID
		_, least := a.clock.time()
		next.devices = next.keptDevices(&old, same, least)
		a.noteEnds(next)
		if !same {
			a.ends.fresh = nil // ended before this computer knew of it
		}
		return true
	})
	if old.received && !same {
		// Another account, perhaps of another control plane: the old one's
		// account ids mean nothing here.
		closed += a.endSessions(func(store.Session) bool { return true })
	}
	closed += a.endLostDomains(&old, a.state.Load())
	a.keepDevices()
	if err := a.store.SaveSnapshot(snap, now); err != nil {
		a.log.Error("the snapshot could not be kept for a restart", "err", err)
	} else {
		a.contactSaved = now
	}
	a.keepTime()
	a.endsWake.Raise()
	a.contacts.Add(1) // after the swap: who sees the count sees the snapshot, too
	a.contact.Raise()
	a.changes.Raise()
	return closed
}

// Contacts counts the answers of the control plane, each a snapshot or that
// nothing changed. Read it before Snapshot: that is then at least as new.
func (a *Access) Contacts() uint64 { return a.contacts.Load() }

// FollowContacts returns a channel that is readable after each, until end is called.
func (a *Access) FollowContacts() (more <-chan struct{}, end func()) { return a.contact.Subscribe() }

// Touch notes that the control plane has just confirmed the snapshot. While it answers all
// the time that is no news, and nobody else is woken up for it.
func (a *Access) Touch() {
	now := a.now()
	if a.silentFor(now) >= time.Minute { // AccessUntil's step
		defer a.changes.Raise()
	}
	a.contacted(now)
	a.contacts.Add(1)
	defer a.contact.Raise()
	a.writing.Lock()
	defer a.writing.Unlock()
	a.keepDevices() // where the disk did not take it
	if !a.state.Load().received || now.Sub(a.contactSaved).Abs() < time.Minute {
		return
	}
	if err := a.store.SaveContact(now); err != nil {
		a.log.Error("the time of the last sync could not be kept for a restart", "err", err)
		return
	}
	a.contactSaved = now
}

// Deny shuts a person out at once (of one app where it names one), a grant or an app
// password, until GiveBack, whatever any snapshot says, and returns how many live
// connections it closed. Access ends first, however long the disk takes. The record is
// on the disk before Deny returns; when it cannot be written, the error says so.
func (a *Access) Deny(d store.DenyRecord) (closed int, err error) {
	if d.At.IsZero() {
		d.At = a.now().UTC()
	}
	return a.deny(d, func() error { return a.store.AddDenyRecord(d) })
}

// TakeAway is Deny for a change that the control plane has to be told: both are
// written down in one transaction. One app of one person no group opens either, until
// GiveAgain.
func (a *Access) TakeAway(c store.PendingChange) (closed int, err error) {
	return a.deny(c.Deny(), func() error {
		if w, ok := c.Withdraws(); ok {
			a.withhold(w) // under writing, as GiveAgain is: what is kept for a restart is what decides
		}
		return a.store.TakeAway(c)
	})
}

func (a *Access) deny(d store.DenyRecord, write func() error) (closed int, err error) {
	closed = a.Shut(d)
	a.writing.Lock()
	defer a.writing.Unlock()
	err = write()
	closed += a.Shut(d) // a GiveBack may have come between
	if err != nil {
		return closed, fmt.Errorf("access is closed, but that could not be kept for a restart: %w", err)
	}
	return closed, nil
}

// Shut is Deny without the disk: it waits for nothing, and has to be followed by Deny or
// TakeAway of the same, which keep it for a restart.
func (a *Access) Shut(d store.DenyRecord) (closed int) {
	key := withoutTime(d)
	return a.swap(func(next *state) (changed bool) {
		if next.denied[key] {
			return false
		}
		next.denied = maps.Clone(next.denied)
		next.denied[key] = true
		return true
	})
}

// GiveBack takes a TakeAway back: the change is forgotten together with the
// denial, and the snapshot alone decides again. With an error both stand.
func (a *Access) GiveBack(c store.PendingChange) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := a.store.GiveBack(c); err != nil {
		return fmt.Errorf("take a denial back: %w", err)
	}
	a.swap(func(next *state) (changed bool) {
		next.denied = maps.Clone(next.denied)
		delete(next.denied, c.Deny())
		return true
	})
	return nil
}

// swap publishes the state as change makes it, and closes what that refuses. Where change
// finds nothing to change, whoever made it so has closed that already.
func (a *Access) swap(change func(next *state) (changed bool)) (closed int) {
	a.swapping.Lock()
	defer a.swapping.Unlock()
	next := *a.state.Load()
	if !change(&next) {
		return 0
	}
	a.state.Store(&next)
	closed = a.closeRefused()
	close(*a.changed.Swap(new(make(chan struct{}))))
	return closed
}

// closeRefused asks the state in force again about every live connection.
func (a *Access) closeRefused() int {
	return a.live.close(func(c *Open) bool { return !a.Decide(c.id, c.app).Allowed })
}

// AwaitAllowed waits until the person may open the app, or until ctx ends. It is for
// a visitor who has just accepted an invitation: their browser is back here a little
// sooner than the snapshot that says so, which may also be what lifts a deny record.
func (a *Access) AwaitAllowed(ctx context.Context, id Identity, appID string) (d Decision) {
	a.await(ctx, func(*state) bool {
		d = a.Decide(id, appID)
		return d.Allowed
	})
	return d
}

// AwaitPerson waits until the snapshot has somebody who is not removed, or until ctx ends.
func (a *Access) AwaitPerson(ctx context.Context, accountID string) {
	a.await(ctx, func(st *state) bool {
		p := st.people[accountID]
		return p != nil && p.Status != controlapi.PersonRemoved
	})
}

// await waits until the state is so, or until ctx ends.
func (a *Access) await(ctx context.Context, so func(*state) bool) {
	for {
		changed := *a.changed.Load() // before the state: a change between the two is then not missed
		if so(a.state.Load()) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Owner returns the owner of this computer, once a snapshot names one.
func (a *Access) Owner() (controlapi.Person, bool) {
	people := a.state.Load().snapshot.People
	i := slices.IndexFunc(people, func(p controlapi.Person) bool { return p.Role == controlapi.RoleOwner })
	if i < 0 {
		return controlapi.Person{}, false
	}
	return people[i], true
}

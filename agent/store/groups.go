package store

import (
	"encoding/json"
	"errors"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
)

var (
	groupsBucket    = []byte("groups")    // id → Group
	withdrawnBucket = []byte("withdrawn") // key of a DenyRecord → Withdrawn
)

// Group is people that the owner named together, and the apps that it opens to them.
type Group struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Apps    []GroupApp    `json:"apps,omitempty"`
	Members []GroupMember `json:"members,omitempty"`
	// From is the group of a provider that fills it, as controlapi.Apps.Fills; empty for none.
	From string `json:"from,omitempty"`
	// Removed is when the owner removed it: it opens nothing, and can be had back for a
	// while. Zero of all others.
	Removed time.Time `json:"removed,omitzero"`
}

// GroupApp is an app that a group opens, until its end where it has one.
type GroupApp struct {
	AppID string    `json:"app"`
	Until time.Time `json:"until,omitzero"` // UTC
	// Told says that the owner was told that the end came.
	Told bool `json:"told,omitempty"`
}

// GroupMember is a person as they were invited when they joined: who was removed and is
// invited again is no member.
type GroupMember struct {
	AccountID string    `json:"account"`
	Since     time.Time `json:"since"` // controlapi.Person.Since
	How       string    `json:"how,omitempty"`
}

// What GroupMember.How says; it is empty for whom the owner put there.
const (
	MemberByProvider = "provider"
	MemberOut        = "out" // the owner took them out of what a provider fills: they are no member
)

// Withdrawn is one app of one person that no group opens until it is given to them again.
type Withdrawn struct {
	AccountID string `json:"account"`
	AppID     string `json:"app"`
}

func (w Withdrawn) key() []byte { return DenyRecord{AccountID: w.AccountID, AppID: w.AppID}.key() }

// makeGroups makes the room for them. A program of before would not mark what is withdrawn
// meanwhile, and a group would open it afterwards: it refuses the store from here on.
func makeGroups(tx *boltfile.Tx) error {
	_, err := tx.CreateBucketIfNotExists(groupsBucket)
	_, marks := tx.CreateBucketIfNotExists(withdrawnBucket)
	if err := errors.Join(err, marks); err != nil {
		return err
	}
	return withdrawnBefore(tx)
}

// withdrawnBefore marks what was withdrawn from people before there were groups, as far as
// anything says so: deny records and changes that are still to be told, and the decisions.
func withdrawnBefore(tx *boltfile.Tx) error {
	pending, err := readPending(tx)
	records, unread := readDenyRecords(tx)
	if err := errors.Join(err, unread); err != nil {
		return err
	}
	for _, c := range pending {
		records = append(records, c.Deny())
	}
	all := map[Withdrawn]bool{}
	for _, d := range records {
		if w := (Withdrawn{AccountID: d.AccountID, AppID: d.AppID}); d.AccountID != "" && d.AppID != "" {
			all[w] = true
		}
	}
	said, err := withdrawnByDecisions(tx)
	for w := range said {
		all[w] = true
	}
	for w := range all {
		err = errors.Join(err, putWithdrawn(tx, w))
	}
	return err
}

// withdrawnByDecisions is what the newest decision about an app and a person took away, of
// the apps that are here. A line that cannot be read says nothing.
func withdrawnByDecisions(tx *boltfile.Tx) (all map[Withdrawn]bool, err error) {
	ids := map[string]string{} // of apps, by label
	err = tx.Bucket(appsBucket).ForEach(func(_, raw []byte) error {
		var app App
		if json.Unmarshal(raw, &app) == nil && app.ID != "" {
			ids[app.Label] = app.ID
		}
		return nil
	})
	all = map[Withdrawn]bool{}
	decisions := tx.Bucket(decisionsBucket)
	if err != nil || decisions == nil {
		return all, err
	}
	return all, decisions.ForEach(func(_, raw []byte) error {
		var line agentapi.Activity
		if json.Unmarshal(raw, &line) != nil || line.AccountID == "" || ids[line.App] == "" {
			return nil
		}
		w := Withdrawn{AccountID: line.AccountID, AppID: ids[line.App]}
		switch line.Kind {
		case agentapi.ActivityWithdrawn:
			all[w] = true
		case agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityUntil, agentapi.ActivityRestored:
			delete(all, w)
		}
		return nil
	})
}

// PutGroup stores a group, in place of the one with its ID, and forgets those with the ids.
func (s *Store) PutGroup(g Group, forget ...string) error {
	return s.update(func(tx *boltfile.Tx) (err error) {
		b := tx.Bucket(groupsBucket)
		for _, id := range forget {
			err = errors.Join(err, b.Delete([]byte(id)))
		}
		return errors.Join(err, put(b, []byte(g.ID), g))
	})
}

// Groups returns all of them.
func (s *Store) Groups() (all []Group, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		all, err = getAll[Group](tx.Bucket(groupsBucket), "a stored group")
		return err
	})
	return all, err
}

// GiveAgain has groups open these again, to those who are in one.
func (s *Store) GiveAgain(all ...Withdrawn) error {
	return s.update(func(tx *boltfile.Tx) (err error) {
		for _, w := range all {
			err = errors.Join(err, tx.Bucket(withdrawnBucket).Delete(w.key()))
		}
		return err
	})
}

// Withdraw has no group open one, until GiveAgain. See TakeAway, too.
func (s *Store) Withdraw(w Withdrawn) error {
	return s.update(func(tx *boltfile.Tx) error { return putWithdrawn(tx, w) })
}

func putWithdrawn(tx *boltfile.Tx, w Withdrawn) error {
	return put(tx.Bucket(withdrawnBucket), w.key(), w)
}

// Withdrawn returns all that no group opens. A damaged one is an error, because to skip it
// would give somebody access again.
func (s *Store) Withdrawn() (all []Withdrawn, err error) {
	err = s.view(func(tx *boltfile.Tx) error {
		all, err = getAll[Withdrawn](tx.Bucket(withdrawnBucket), "a stored withdrawal")
		return err
	})
	return all, err
}

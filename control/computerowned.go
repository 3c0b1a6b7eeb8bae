package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

const (
	// seenAgain is how old the time a computer was last seen may be before it is
	// written again.
	seenAgain = time.Minute
	// awayAfter is how long after that time a computer whose sync another node
	// holds is taken for connected: seenAgain, a held sync, and some.
	awayAfter = 100 * time.Second
)

// OwnComputer is a computer as its owner sees it.
type OwnComputer struct {
	controlapi.Computer
	Machine   string // what it called itself when it was enrolled, or ""
	Platform  string // GOOS, or ""
	CreatedAt time.Time
	// Enrolled says whether a device credential speaks for it; without one it is
	// a short name being kept, with its people.
	Enrolled  bool
	Connected bool      // now
	SeenAt    time.Time // to within two minutes; zero for never
	People    int       // members who may reach it or are invited
}

// OwnComputers lists the computers of an account by name.
func (s *Computers) Own(ctx context.Context, accountID string) ([]OwnComputer, error) {
	var out []OwnComputer
	err := s.store.View(ctx, func(tx kv.Tx) error {
		out = nil
		return each(tx, keyMemberships(accountID), func(computerID string, _ []byte) error {
			c, found, err := get[computer](tx, keyComputer(computerID))
			if err != nil || !found || c.OwnerID != accountID {
				return err
			}
			own := OwnComputer{
				Computer: s.computer(c), Machine: c.Machine, Platform: c.Platform,
				CreatedAt: c.CreatedAt, Enrolled: c.CredentialHash != "",
			}
			if own.SeenAt, _, err = get[time.Time](tx, keyComputerSeen(c.ID)); err != nil {
				return err
			}
			own.Connected = own.Enrolled && s.connected(c.ID, own.SeenAt)
			own.People, err = countMembers(tx, c.ID)
			out = append(out, own)
			return err
		})
	})
	slices.SortFunc(out, func(a, b OwnComputer) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// connected says whether a computer's agent is there: it holds a sync here, or
// has begun one lately on another node.
func (s *Computers) connected(computerID string, seen time.Time) bool {
	return s.watchers.watches(computerID) || s.cfg.SharedStore && s.now().Sub(seen) < awayAfter
}

// MarkSeen notes that a computer's agent was here. It writes once a minute.
func (s *Agents) MarkSeen(ctx context.Context, computerID string) error {
	var seen time.Time
	err := s.store.View(ctx, func(tx kv.Tx) (err error) {
		seen, _, err = get[time.Time](tx, keyComputerSeen(computerID))
		return err
	})
	if err != nil || s.now().Sub(seen) < seenAgain {
		return err
	}
	return s.update(ctx, func(tx *txn) error {
		_, found, err := get[computer](tx, keyComputer(computerID))
		if err != nil || !found { // removed meanwhile
			return err
		}
		return put(tx, keyComputerSeen(computerID), tx.now.UTC(), 0)
	})
}

// DisconnectComputer ends the device credential of an account's computer. Its
// short name, people and grants are kept for when it is connected again. It
// refuses with CodeNotFound.
func (s *Computers) Disconnect(ctx context.Context, accountID, short string) error {
	return s.update(ctx, func(tx *txn) error {
		c, err := tx.ownComputer(accountID, short)
		if err != nil {
			return err
		}
		if err := tx.endCredential(&c); err != nil {
			return err
		}
		return put(tx, keyComputer(c.ID), c, 0)
	})
}

// RemoveComputer removes an account's computer altogether: its credential ends,
// everybody's access and every OAuth grant for it with it, and its short name is
// kept back for that account for keepName. It refuses with CodeNotFound.
func (s *Computers) Remove(ctx context.Context, accountID, short string) error {
	return s.update(ctx, func(tx *txn) error {
		c, err := tx.ownComputer(accountID, short)
		if err != nil {
			return err
		}
		if err := tx.endCredential(&c); err != nil {
			return err
		}
		err = eachGrant(tx, keyComputerGrants(c.ID), func(g grant) error { return tx.revokeGrant(g.ID) })
		if err != nil {
			return err
		}
		err = each(tx, keyPersons(c.ID), func(accountID string, _ []byte) error {
			if err := tx.voidInvitations(c.ID, accountID); err != nil {
				return err
			}
			if err := tx.Delete(keyMembership(accountID, c.ID)); err != nil {
				return err
			}
			return tx.Delete(keyPerson(c.ID, accountID))
		})
		if err != nil {
			return err
		}
		if err := s.freeName(tx, c); err != nil {
			return err
		}
		if err := tx.touch(c.ID); err != nil {
			return err
		}
		for _, key := range []string{
			keyComputer(c.ID), keyComputerName(c.Name), keyComputerApps(c.ID), keyComputerSeen(c.ID), keyVersion(c.ID),
		} {
			if err := tx.Delete(key); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *txn) ownComputer(accountID, short string) (computer, error) {
	c, found, err := computerByName(t, short)
	if err == nil && (!found || c.OwnerID != accountID) {
		err = refuse(controlapi.CodeNotFound, "You have no computer of that name any more.")
	}
	return c, err
}

func countMembers(tx kv.Tx, computerID string) (int, error) {
	n := 0
	err := eachPerson(tx, computerID, func(p person) error {
		if p.Role == controlapi.RoleMember && p.Status != controlapi.PersonRevoked {
			n++
		}
		return nil
	})
	return n, err
}

// watches says whether a sync of a computer is held here.
func (ws *watchers) watches(computerID string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.byComputer[computerID]) > 0
}

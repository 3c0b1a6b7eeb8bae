package control

import (
	"context"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Cuts are how much a suspension cuts off, of which operators are told before.
type Cuts struct {
	Accounts  int // of a domain, with those below it
	Computers int
	People    int // who may open something on those, or are invited to; of a client, how often it is let in
	// More says that there may be more than was looked at: maxCounted of a kind, and the
	// computers of cutAccounts.
	More bool
}

// cutAccounts is of how many accounts of a domain the computers are looked at.
const cutAccounts = 100

// Cuts looks at how much suspending something would cut off, and no further than it says. Of
// what is not there it says nothing.
func (s *Overview) Cuts(ctx context.Context, kind SuspensionKind, id string) (Cuts, error) {
	return viewed(ctx, s.core, func(tx *txn) (c Cuts, err error) {
		row, err := tx.suspendable(kind, id)
		if IsRefusal(err, controlapi.CodeNotFound) || IsRefusal(err, controlapi.CodeInvalid) {
			return c, nil
		}
		switch kind {
		case SuspendComputer:
			c.addComputers(tx, row.ID)
		case SuspendClient:
			c.People = c.counted(tx, keyClientGrants(row.ID), func(kv.Item) bool { return true })
		case SuspendAccount:
			c.addAccount(tx, row.ID)
		case SuspendAddress:
			if a, found := accountByEmail(tx, row.ID); found {
				c.addAccount(tx, a.ID)
			}
		case SuspendDomain:
			c.addDomain(tx, row.ID)
		}
		return c, err
	})
}

// counted counts rows below a prefix to maxCounted, and no further.
func (c *Cuts) counted(tx *txn, prefix string, counts func(kv.Item) bool) (n int) {
	after := ""
	for looked := 0; looked < 4*maxCounted; looked += kv.MaxKeys {
		items := tx.scan(prefix, after, kv.MaxKeys)
		for _, it := range items {
			if !counts(it) {
				continue
			}
			if n++; n == maxCounted {
				c.More = true
				return n
			}
		}
		if len(items) < kv.MaxKeys {
			return n
		}
		after = items[len(items)-1].Key
	}
	c.More = true
	return n
}

func (c *Cuts) addComputers(tx *txn, ids ...string) {
	for _, id := range ids {
		c.Computers++
		c.People += c.counted(tx, keyPersons(id), func(it kv.Item) bool {
			p, _ := parsed[person](tx, it.Value)
			return p.Role == controlapi.RoleMember && p.Status != controlapi.PersonRemoved
		})
		if c.People >= maxCounted {
			c.People, c.More = maxCounted, true
			return
		}
	}
}

func (c *Cuts) addAccount(tx *txn, id string) {
	c.Accounts++
	index := keyOwnedComputers(id)
	var ids []string
	for _, it := range tx.scan(index, "", maxComputers) {
		ids = append(ids, it.Key[len(index):])
	}
	c.addComputers(tx, ids...)
}

func (c *Cuts) addDomain(tx *txn, domain string) {
	var some []string
	c.Accounts = c.counted(tx, keyAccountsBelow(domain), func(it kv.Item) bool {
		if len(some) < cutAccounts {
			some = append(some, text(tx, it))
		}
		return true
	})
	c.More = c.More || c.Accounts > len(some) || !tx.indexed(indexAccountBelow)
	for _, id := range some {
		c.Computers += len(tx.scan(keyOwnedComputers(id), "", maxComputers))
	}
}

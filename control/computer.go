package control

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/internal/words"
)

// Bounds of what one computer may report and give out. Together they keep every
// row within the store's limit and every snapshot within what controlapi.Client
// reads.
const (
	MaxApps = 500 // approved apps
	// maxLabel is how long a label may be, in characters.
	maxLabel = 100
)

var (
	appIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	// platformPattern accepts any GOOS.
	platformPattern = regexp.MustCompile(`^[a-z0-9]{1,20}$`)
)

// Computers are those of all accounts, as their owners and the operator see them.
type Computers struct{ *core }

// computer as stored. The device credential is kept as a hash only.
type computer struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	OwnerID        string    `json:"ownerId"`        // account id
	CredentialHash string    `json:"credentialHash"` // "" while it is not connected
	CreatedAt      time.Time `json:"createdAt"`
	// Machine and Platform are what it called itself when it was enrolled.
	Machine  string `json:"machine,omitempty"`
	Platform string `json:"platform,omitempty"`
	// Former says that the name was another account's before.
	Former bool `json:"former,omitempty"`
}

// Ensure makes the computer named short of the account with this
// address, and the account too if need be, and gives it a new device
// credential; an earlier one stops working. A name that is somebody else's is
// refused with CodeForbidden. Calling it again changes nothing but the
// credential.
func (s *Computers) Ensure(ctx context.Context, email, short string) (controlapi.Enrolled, error) {
	email, err := ParseEmail(email)
	if err != nil {
		return controlapi.Enrolled{}, err
	}
	if err := s.cfg.ValidShortName(short); err != nil {
		return controlapi.Enrolled{}, err
	}
	accountID, computerID, credential := newID(), newID(), newToken()
	hash := hashOf(purposeCredential, credential)
	return updated(ctx, s.core, func(tx *txn) (controlapi.Enrolled, error) {
		account, err := tx.ensureOwnAccount(accountID, email)
		if err != nil {
			return controlapi.Enrolled{}, err
		}
		c, found, err := computerByName(tx, short)
		switch {
		case err != nil:
			return controlapi.Enrolled{}, err
		case found && c.OwnerID != account.ID:
			return controlapi.Enrolled{}, controlapi.Refuse(controlapi.CodeForbidden, words.Of(`The name "%s" is taken. Choose another one.`, short))
		case !found:
			if c, err = s.newComputer(tx, computerID, short, account); err != nil {
				return controlapi.Enrolled{}, err
			}
		}
		return controlapi.Enrolled{AccountID: account.ID, Email: account.Email, Computer: s.computer(c), Credential: credential},
			tx.giveCredential(c, hash)
	})
}

// ByName finds a computer by its short name, or refuses with
// CodeNotFound.
func (s *Computers) ByName(ctx context.Context, short string) (OwnedComputer, error) {
	return viewed(ctx, s.core, func(tx kv.Tx) (OwnedComputer, error) {
		c, err := findByName(tx, short, refuse(controlapi.CodeNotFound, "There is no computer of that name."))
		if err != nil {
			return OwnedComputer{}, err
		}
		return s.owned(tx, c)
	})
}

// computerByName finds a computer. Rows of it that are read next can be named: they
// come in the same round trip.
func computerByName(tx kv.Tx, short string, next ...func(id string) string) (computer, bool, error) {
	id, found, err := get[string](tx, keyComputerName(short))
	if err != nil || !found {
		return computer{}, false, err
	}
	keys := []string{keyComputer(id)}
	for _, key := range next {
		keys = append(keys, key(id))
	}
	if _, err := tx.GetAll(keys...); err != nil {
		return computer{}, false, err
	}
	return get[computer](tx, keyComputer(id))
}

// findByName is computerByName for a computer that has to be there, as find is get.
func findByName(tx kv.Tx, short string, none error, next ...func(id string) string) (computer, error) {
	c, found, err := computerByName(tx, short, next...)
	if err == nil && !found {
		err = none
	}
	return c, err
}

// computer as agents know it.
func (s *core) computer(c computer) controlapi.Computer {
	host := s.cfg.withPort(c.Name + "." + s.cfg.Domain)
	return controlapi.Computer{ID: c.ID, Name: c.Name, Host: host, URL: "https://" + host, Former: c.Former}
}

// OwnedComputer is a computer as the operator sees it.
type OwnedComputer struct {
	controlapi.Computer
	Owner     string    `json:"owner"` // e-mail address
	CreatedAt time.Time `json:"createdAt"`
}

// List lists all computers, in no order that means anything.
func (s *Computers) List(ctx context.Context) ([]OwnedComputer, error) {
	return viewed(ctx, s.core, func(tx kv.Tx) ([]OwnedComputer, error) {
		out := []OwnedComputer{}
		err := eachValue(tx, keyComputer(""), func(_ string, c computer) error {
			owned, err := s.owned(tx, c)
			out = append(out, owned)
			return err
		})
		return out, err
	})
}

func (s *Computers) owned(tx kv.Tx, c computer) (OwnedComputer, error) {
	owner, _, err := get[Account](tx, keyAccount(c.OwnerID))
	return OwnedComputer{Computer: s.computer(c), Owner: owner.Email, CreatedAt: c.CreatedAt}, err
}

// awayAfter is how long after it was seen a computer whose sync another node has is
// taken for connected: seenEvery, a waiting sync, and some.
const awayAfter = 100 * time.Second

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

// Own lists the computers of an account by name.
func (s *Computers) Own(ctx context.Context, accountID string) ([]OwnComputer, error) {
	return viewed(ctx, s.core, func(tx kv.Tx) (out []OwnComputer, err error) {
		err = each(tx, keyMemberships(accountID), func(computerID string, _ []byte) error {
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
			own.SeenAt = s.Feed.Seen.Last(c.ID, own.SeenAt)
			own.Connected = own.Enrolled && s.connected(c.ID, own.SeenAt)
			own.People, err = countMembers(tx, c.ID)
			out = append(out, own)
			return err
		})
		slices.SortFunc(out, func(a, b OwnComputer) int { return strings.Compare(a.Name, b.Name) })
		return out, err
	})
}

// connected says whether a computer's agent is there: a sync of it waits here, or
// has begun one lately on another node.
func (s *Computers) connected(computerID string, seen time.Time) bool {
	return s.Feed.Watches(computerID) || s.cfg.SharedStore && s.now().Sub(seen) < awayAfter
}

// Disconnect ends the device credential of an account's computer. Its
// short name, people and grants are kept for when it is connected again. It
// refuses with CodeNotFound.
func (s *Computers) Disconnect(ctx context.Context, accountID, short string) error {
	return s.update(ctx, func(tx *txn) error {
		c, err := tx.ownComputer(accountID, short)
		if err != nil {
			return err
		}
		return tx.endCredential(&c)
	})
}

// Remove removes an account's computer altogether: its credential ends,
// everybody's access and every grant for it with it, and its short name is
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
		if _, err = tx.endPasswords(c.ID, keyPasswords(c.ID), everyPassword); err != nil {
			return err
		}
		if err := tx.forgetKnocks(c.ID); err != nil {
			return err
		}
		err = eachValue(tx, keyPersons(c.ID), func(accountID string, p person) error {
			if err := tx.voidInvitations(c.ID, accountID); err != nil {
				return err
			}
			return tx.deletePerson(c.ID, p)
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
		return deleteAll(tx,
			keyComputer(c.ID), keyComputerName(c.Name), keyComputerApps(c.ID), keyComputerSeen(c.ID), keyVersion(c.ID), keyChange(c.ID))
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
		if p.Role == controlapi.RoleMember && p.Status != controlapi.PersonRemoved {
			n++
		}
		return nil
	})
	return n, err
}

// maxComputers is how many computers, and so how many short names, one account
// may have.
const maxComputers = 50

// newComputer makes a computer that nobody's credential speaks for yet. It
// refuses with CodeInvalid an account that has as many as it can have, and a name
// that this account may not take.
func (s *core) newComputer(tx *txn, id, short string, owner Account) (computer, error) {
	former, err := s.takeName(tx, short, owner)
	if err != nil {
		return computer{}, err
	}
	n := 0
	err = each(tx, keyMemberships(owner.ID), func(computerID string, _ []byte) error {
		p, _, err := get[person](tx, keyPerson(computerID, owner.ID))
		if p.Role == controlapi.RoleOwner {
			n++
		}
		return err
	})
	if err != nil {
		return computer{}, err
	}
	if n >= maxComputers {
		return computer{}, refuse(controlapi.CodeInvalid, "You have as many computers as an account can have. Remove one first.")
	}
	c := computer{ID: id, Name: short, OwnerID: owner.ID, CreatedAt: tx.now.UTC(), Former: former}
	if err := put(tx, keyComputerName(short), c.ID, 0); err != nil {
		return computer{}, err
	}
	if err := put(tx, keyComputer(c.ID), c, 0); err != nil {
		return computer{}, err
	}
	// What it will report, as good as absent. All computers of a node may report for the
	// first time together, and to change a row is no conflict where to make one is.
	if err := put(tx, keyComputerApps(c.ID), []controlapi.App(nil), 0); err != nil {
		return computer{}, err
	}
	if err := put(tx, keyComputerKnocks(c.ID), controlapi.KnocksFrom(""), 0); err != nil {
		return computer{}, err
	}
	return c, tx.ensureOwner(c.ID, owner)
}

package control

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
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
		account := tx.ensureOwnAccount(accountID, email)
		c, found := computerByName(tx, short)
		switch {
		case found && c.OwnerID != account.ID:
			return controlapi.Enrolled{}, controlapi.Refuse(controlapi.CodeForbidden, words.Of(`The name "%s" is taken. Choose another one.`, short))
		case !found:
			if c, err = s.newComputer(tx, computerID, short, account); err != nil {
				return controlapi.Enrolled{}, err
			}
		}
		tx.giveCredential(c, hash)
		return controlapi.Enrolled{AccountID: account.ID, Email: account.Email, Computer: s.computer(c), Credential: credential}, nil
	})
}

// ByName finds a computer by its short name, or refuses with
// CodeNotFound.
func (s *Computers) ByName(ctx context.Context, short string) (OwnedComputer, error) {
	return viewed(ctx, s.core, func(tx *txn) (OwnedComputer, error) {
		c, err := findByName(tx, short, refuse(controlapi.CodeNotFound, "There is no computer of that name."))
		return s.owned(tx, c), err
	})
}

// OwnedComputer is a computer as the operator sees it.
type OwnedComputer struct {
	controlapi.Computer
	Owner     string    `json:"owner"` // e-mail address
	CreatedAt time.Time `json:"createdAt"`
}

// List lists all computers, in no order that means anything.
func (s *Computers) List(ctx context.Context) ([]OwnedComputer, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]OwnedComputer, error) {
		out := []OwnedComputer{}
		for _, c := range each[computer](tx, keyComputer("")) {
			out = append(out, s.owned(tx, c))
		}
		return out, nil
	})
}

func (s *Computers) owned(tx *txn, c computer) OwnedComputer {
	owner, _ := get[Account](tx, keyAccount(c.OwnerID))
	return OwnedComputer{Computer: s.computer(c), Owner: owner.Email, CreatedAt: c.CreatedAt}
}

// OwnComputer is a computer as its owner sees it.
type OwnComputer struct {
	controlapi.Computer
	Machine   string // what it called itself when it was enrolled, or ""
	Platform  string // GOOS, or ""
	CreatedAt time.Time
	// Enrolled says whether a device credential speaks for it; without one it is
	// a short name being kept, with its people.
	Enrolled bool
	Presence
	People int // members who may reach it or are invited

	row computer
}

// Own lists the computers of an account by name.
func (s *Computers) Own(ctx context.Context, accountID string) ([]OwnComputer, error) {
	all, err := viewed(ctx, s.core, func(tx *txn) (out []OwnComputer, err error) {
		for computerID := range below(tx, keyMemberships(accountID)) {
			c, found := get[computer](tx, keyComputer(computerID))
			if !found || c.OwnerID != accountID {
				continue
			}
			seen, _ := get[time.Time](tx, keyComputerSeen(c.ID))
			own := OwnComputer{
				Computer: s.computer(c), Machine: c.Machine, Platform: c.Platform,
				CreatedAt: c.CreatedAt, Enrolled: c.CredentialHash != "",
				Presence: Presence{Since: seen}, People: countMembers(tx, c.ID), row: c,
			}
			out = append(out, own)
		}
		slices.SortFunc(out, func(a, b OwnComputer) int { return strings.Compare(a.Name, b.Name) })
		return out, nil
	})
	atOnce(len(all), func(i int) { all[i].Presence = s.presence(ctx, all[i].row, all[i].Since) })
	return all, err
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
		tx.endCredential(&c)
		return nil
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
		s.removeComputer(tx, c)
		return nil
	})
}

func (s *core) removeComputer(tx *txn, c computer) {
	tx.endCredential(&c)
	tx.certificateEnds(&c, time.Time{}) // a report may have come after its credential ended
	for g := range eachGrant(tx, keyComputerGrants(c.ID)) {
		tx.revokeGrant(g.ID)
	}
	tx.endPasswords(c.ID, keyPasswords(c.ID), everyPassword)
	tx.forgetKnocks(c.ID)
	tx.delete(keyComputerPasskeys(c.ID))
	tx.dropDomains(c.ID, nil)
	for accountID, p := range each[person](tx, keyPersons(c.ID)) {
		tx.voidInvitations(c.ID, accountID)
		tx.deletePerson(c.ID, p)
	}
	s.freeName(tx, c)
	tx.touch(c.ID)
	tx.deleteBelow(keyUsages(c.ID))
	tx.delete(
		keyComputer(c.ID), keyOwnedComputers(c.OwnerID)+c.ID, keyComputerName(c.Name), keyComputerApps(c.ID), keyComputerSeen(c.ID), keyCertifying(c.ID), keyVersion(c.ID), keyChange(c.ID))
}

func (t *txn) ownComputer(accountID, short string) (computer, error) {
	c, found := computerByName(t, short)
	if !found || c.OwnerID != accountID {
		return computer{}, refuse(controlapi.CodeNotFound, "You have no computer of that name any more.")
	}
	return c, nil
}

func countMembers(tx *txn, computerID string) (n int) {
	for _, p := range each[person](tx, keyPersons(computerID)) {
		if p.Role == controlapi.RoleMember && p.Status != controlapi.PersonRemoved {
			n++
		}
	}
	return n
}

// maxComputers is how many computers, and so how many short names, one account
// may have.
const maxComputers = 50

// newComputer makes a computer that nobody's credential speaks for yet. It
// refuses with CodeInvalid an account that has as many as it can have, and a name
// that this account may not take.
func (s *core) newComputer(tx *txn, id, short string, owner Account) (computer, error) {
	owner, err := find[Account](tx, keyAccount(owner.ID), noSession()) // as it is now
	if err != nil {
		return computer{}, err
	}
	former, err := s.takeName(tx, short, owner)
	if err != nil {
		return computer{}, err
	}
	n := 0
	for computerID := range below(tx, keyMemberships(owner.ID)) {
		if p, _ := get[person](tx, keyPerson(computerID, owner.ID)); p.Role == controlapi.RoleOwner {
			n++
		}
	}
	if n >= maxComputers {
		return computer{}, refuse(controlapi.CodeInvalid, "You have as many computers as an account can have. Remove one first.")
	}
	c := computer{ID: id, Name: short, OwnerID: owner.ID, CreatedAt: tx.now.UTC(), Former: former, Suspended: owner.Suspended}
	tx.put(keyComputerName(short), c.ID, 0)
	tx.put(keyComputer(c.ID), c, 0)
	tx.put(keyOwnedComputers(owner.ID)+c.ID, struct{}{}, 0)
	// What it will report, as good as absent. All computers of a node may report for the
	// first time together, and to change a row is no conflict where to make one is.
	tx.put(keyComputerApps(c.ID), []controlapi.App(nil), 0)
	tx.put(keyComputerKnocks(c.ID), controlapi.KnocksFrom(""), 0)
	tx.ensureOwner(c.ID, owner)
	return c, nil
}

// Device credentials: a computer has one or none. Ending one refuses its next
// request, wakes the syncs that wait with it, and is reported by
// Config.OnCredentialEnded, on every node, so that the tunnel it opened ends too.

func credentialUnknown() error {
	return refuse(controlapi.CodeUnauthorized, "This computer is not connected to an account any more. Connect it again.")
}

// giveCredential makes the credential with this hash the only one of a computer.
func (t *txn) giveCredential(c computer, hash string) {
	t.endCredential(&c)
	c.CredentialHash, c.ConnectedAt = hash, t.now.UTC()
	t.put(keyComputer(c.ID), c, 0)
	t.put(keyCredential(hash), c.ID, 0)
	t.note("computer-connected", c.OwnerID, c.ID)
	t.touch(c.ID)
}

// endCredential ends what a computer authenticates with, if it has anything.
func (t *txn) endCredential(c *computer) {
	if c.CredentialHash == "" {
		return
	}
	t.delete(keyCredential(c.CredentialHash))
	c.CredentialHash, c.AppGrants, c.TellOff, c.Fills = "", false, false, nil
	t.certificateEnds(c, time.Time{})
	t.put(keyComputer(c.ID), *c, 0)
	t.ended = append(t.ended, c.ID)
	t.note("computer-disconnected", c.OwnerID, c.ID)
	// For the other nodes; the random version keeps one ending from another.
	t.put(keyEndedCredentials+endedEvent(t.version, c.ID), c.ID, endedMemory)
	t.touch(c.ID)
}

// computerByCredential finds the computer of the credential with this hash, or
// refuses with CodeUnauthorized.
func computerByCredential(tx *txn, hash string) (computer, error) {
	id, err := find[string](tx, keyCredential(hash), credentialUnknown())
	if err != nil {
		return computer{}, err
	}
	return find[computer](tx, keyComputer(id), credentialUnknown())
}

// endedMemory is how long other nodes can learn that a credential ended.
const endedMemory = time.Hour

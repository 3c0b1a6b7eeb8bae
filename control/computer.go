package control

import (
	"context"
	"regexp"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Bounds of what one computer may report and give out. Together they keep every
// row within the store's limit and every snapshot within what controlapi.Client
// reads.
const (
	MaxApps = 500 // approved apps
	// maxLabel is how long a label may be, in characters: the interface's own
	// bound.
	maxLabel = 100
)

var (
	labelPattern = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
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

// EnsureComputer makes the computer named short of the account with this
// address, and the account too if need be, and gives it a fresh device
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

	var out controlapi.Enrolled
	err = s.update(ctx, func(tx *txn) error {
		account, err := tx.ensureOwnAccount(accountID, email)
		if err != nil {
			return err
		}
		c, found, err := computerByName(tx, short)
		if err != nil {
			return err
		}
		if found && c.OwnerID != account.ID {
			return refuse(controlapi.CodeForbidden, "The name \""+short+"\" is taken. Choose another one.")
		}
		if !found {
			if c, err = s.newComputer(tx, computerID, short, account); err != nil {
				return err
			}
		}
		out = controlapi.Enrolled{AccountID: account.ID, Email: account.Email, Computer: s.computer(c), Credential: credential}
		return tx.giveCredential(c, hash)
	})
	if err != nil {
		return controlapi.Enrolled{}, err
	}
	return out, nil
}

// ComputerByName finds a computer by its short name, or refuses with
// CodeNotFound.
func (s *Computers) ByName(ctx context.Context, short string) (OwnedComputer, error) {
	var out OwnedComputer
	err := s.store.View(ctx, func(tx kv.Tx) error {
		c, found, err := computerByName(tx, short)
		if err != nil {
			return err
		}
		if !found {
			return refuse(controlapi.CodeNotFound, "There is no computer of that name.")
		}
		out, err = s.owned(tx, c)
		return err
	})
	return out, err
}

func computerByName(tx kv.Tx, short string) (computer, bool, error) {
	id, found, err := get[string](tx, keyComputerName(short))
	if err != nil || !found {
		return computer{}, false, err
	}
	return get[computer](tx, keyComputer(id))
}

// computer as agents know it.
func (s *core) computer(c computer) controlapi.Computer {
	host := s.cfg.withPort(c.Name + "." + s.cfg.Domain)
	return controlapi.Computer{ID: c.ID, Name: c.Name, Host: host, URL: "https://" + host, Former: c.Former}
}

// PutApps replaces what a computer reports as approved. Apps that are no longer
// among them take their grants along, so that a name approved later starts with
// nobody (the interface, States: any approved state, owner revokes).
func (s *Agents) PutApps(ctx context.Context, computerID string, apps []controlapi.App) error {
	if len(apps) > MaxApps {
		return refuse(controlapi.CodeInvalid, "A computer can have at most 500 approved apps.")
	}
	now := make(map[string]bool, len(apps))
	names := make(map[string]bool, len(apps))
	for _, a := range apps {
		if !appIDPattern.MatchString(a.ID) || !labelPattern.MatchString(a.Name) || isReserved(a.Name) || !validLabel(a.Label) {
			return refuse(controlapi.CodeInvalid, "The list of apps holds one that cannot be published: names are of 1 to 63 lower-case letters, digits and hyphens, labels of 1 to 100 visible characters on one line.")
		}
		if now[a.ID] || names[a.Name] {
			return refuse(controlapi.CodeInvalid, "The list of apps holds the same app twice.")
		}
		now[a.ID], names[a.Name] = true, true
	}
	if apps == nil {
		apps = []controlapi.App{}
	}
	return s.update(ctx, func(tx *txn) error {
		before, _, err := get[[]controlapi.App](tx, keyComputerApps(computerID))
		if err != nil {
			return err
		}
		gone := map[string]bool{}
		for _, a := range before {
			if !now[a.ID] {
				gone[a.ID] = true
			}
		}
		if err := put(tx, keyComputerApps(computerID), apps, 0); err != nil {
			return err
		}
		return tx.forgetApps(computerID, gone)
	})
}

// Apps are the approved apps a computer reported last.
func (s *Agents) Apps(ctx context.Context, computerID string) ([]controlapi.App, error) {
	var out []controlapi.App
	err := s.store.View(ctx, func(tx kv.Tx) error {
		var err error
		out, _, err = get[[]controlapi.App](tx, keyComputerApps(computerID))
		return err
	})
	return out, err
}

package control

import (
	"crypto/rand"
	"strings"
	"time"

	"porchlight/control/controlapi"
)

// What is stored of invitations, and the address that their names make.

const (
	// invitationLife is how long an invitation's link can be used.
	invitationLife = 7 * 24 * time.Hour
	// overKept is how long an invitation that was used or has ended can say so.
	overKept = 30 * 24 * time.Hour
)

// invitation is an open link as stored, under its hash.
type invitation struct {
	ComputerID string    `json:"computerId"`
	AccountID  string    `json:"accountId"`
	Apps       []string  `json:"apps"` // ids, as named
	Until      time.Time `json:"until"`
	// Name is what its other address names it by; empty in one from before there was.
	Name string `json:"name,omitempty"`
	// Line and From are what the owner wrote with it, and calls themselves.
	Line string `json:"line,omitempty"`
	From string `json:"from,omitempty"`
}

// usedInvitation is one after its click, under the same hash.
type usedInvitation struct {
	invitation
	At time.Time `json:"at"`
}

func (t *txn) putInvitation(hash string, row invitation) {
	life := row.Until.Sub(t.now) + overKept
	t.put(keyInvitation(hash), row, life)
	if row.Name != "" {
		t.put(keyInvitationName(row.Name), hash, life)
	}
	t.put(keyPersonInvitation(row.ComputerID, row.AccountID, hash), struct{}{}, life)
}

// noteUsed takes an open invitation away, and keeps that it was used.
func (t *txn) noteUsed(hash string, row invitation) {
	t.delete(keyPersonInvitation(row.ComputerID, row.AccountID, hash), keyInvitation(hash))
	row.Line = "" // was for one reader, once
	t.put(keyUsedInvitation(hash), usedInvitation{row, t.now.UTC()}, overKept)
}

func (t *txn) deleteInvitation(computerID, accountID, hash string) {
	row, _ := get[invitation](t, keyInvitation(hash))
	if row.Name != "" {
		t.delete(keyInvitationName(row.Name))
	}
	t.delete(keyPersonInvitation(computerID, accountID, hash), keyInvitation(hash))
}

// voidInvitations ends every open link of a person to a computer.
func (t *txn) voidInvitations(computerID, accountID string) {
	for hash := range below(t, keyPersonInvitations(computerID, accountID)) {
		t.deleteInvitation(computerID, accountID, hash)
	}
}

// newestInvitation is the open invitation of a person that ends last, with its hash;
// both are empty where there is none. To one without a name only its mail leads, so it
// counts only where there is no other.
func newestInvitation(tx *txn, computerID, accountID string) (hash string, newest invitation) {
	for h, row := range eachOf[invitation](tx, keyPersonInvitations(computerID, accountID), keyInvitation) {
		newer := row.Until.After(newest.Until)
		if named := row.Name != ""; named != (newest.Name != "") {
			newer = named
		}
		if newer && tx.now.Before(row.Until) {
			hash, newest = h, row
		}
	}
	return hash, newest
}

// PathInvitationName is where the other address of an invitation leads, under the
// auth URL, followed by its name.
const PathInvitationName = "/i/"

// An invitation's name has 80 random bits, so that nobody finds one by trying, in
// groups that people can read to each other.
const (
	invitationNameLen   = 16
	invitationNameGroup = 4
)

func newInvitationName() string { return strings.ToLower(rand.Text()[:invitationNameLen]) }

// InvitationPath is the path of the invitation with a name.
func InvitationPath(name string) string {
	var groups []string
	for ; len(name) > invitationNameGroup; name = name[invitationNameGroup:] {
		groups = append(groups, name[:invitationNameGroup])
	}
	return PathInvitationName + strings.Join(append(groups, name), "-")
}

// link is the other address of an invitation.
func (s *core) link(row invitation) controlapi.InvitationLink {
	return controlapi.InvitationLink{URL: s.cfg.AuthURL() + InvitationPath(row.Name), Until: row.Until}
}

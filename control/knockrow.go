package control

import (
	"slices"
	"strings"
	"time"
)

// What is stored of knocks, and how it ends with what it is about.

const (
	// knockLife is how long a knock waits for the owner.
	knockLife = 7 * 24 * time.Hour
	// knockAgain is when the same person may ask for the same app again, and
	// knockPatience how long the page says that it waits.
	knockAgain    = 24 * time.Hour
	knockPatience = time.Hour
	// knockSilence is how long an app does not hear somebody it was refused to.
	knockSilence = 30 * 24 * time.Hour
	// maxMuted bounds the people of one computer who are not heard for good. One more
	// forgets who was muted longest ago.
	maxMuted = 1000
)

// knock waits for the owner's answer.
type knock struct {
	ID        string    `json:"id"`
	AccountID string    `json:"accountId"`
	Email     string    `json:"email"`
	AppID     string    `json:"appId"` // empty for the launcher
	SessionID string    `json:"sessionId"`
	Asked     string    `json:"asked"` // key of the knockAsked
	At        time.Time `json:"at"`
}

// knockOffer is a yes to somebody who was not active: an invitation that is accepted in
// the browser that knocked, and only there.
type knockOffer struct {
	SessionID string    `json:"sessionId"`
	Until     time.Time `json:"until"`
}

// knockAsked is what the page of a visitor knows: that they asked, and when. It is there
// whatever became of the knock.
type knockAsked struct {
	At         time.Time `json:"at"`
	ComputerID string    `json:"computerId"`
	AppID      string    `json:"appId"`
}

func (t *txn) putKnock(computerID string, row knock) {
	t.put(keyKnocks(computerID)+knockRest(row.AccountID, row.AppID), row, knockLife)
	t.touch(computerID)
}

// openKnocks are those that wait at a computer.
func (t *txn) openKnocks(computerID string) []knock {
	// The store may keep one a little longer.
	return slices.DeleteFunc(rows[knock](t, keyKnocks(computerID)), func(row knock) bool { return t.now.Sub(row.At) >= knockLife })
}

// deleteKnock ends a knock whose visitor goes on waiting.
func (t *txn) deleteKnock(computerID string, row knock) {
	t.delete(keyKnocks(computerID) + knockRest(row.AccountID, row.AppID))
	t.touch(computerID)
}

// endKnocks ends the knocks of a computer for which over is true.
func (t *txn) endKnocks(computerID string, which func(knock) bool) {
	for _, row := range t.openKnocks(computerID) {
		if which(row) {
			t.deleteKnock(computerID, row)
		}
	}
}

// answerKnocks ends what waits of a person for apps that they are given, by whatever
// way: no refusal of these is held against them any more, and when the apps are taken
// away again they may ask anew.
func (t *txn) answerKnocks(computerID, accountID string, apps []string) {
	for _, appID := range append(slices.Clone(apps), "") {
		rest := knockRest(accountID, appID)
		if row, found := get[knock](t, keyKnocks(computerID)+rest); found {
			t.delete(row.Asked)
			t.deleteKnock(computerID, row)
		}
		t.delete(keyKnocksRefused(computerID) + rest)
	}
}

// endPersonsKnocks ends the knocks of a person at a computer, and the invitations that
// answered some.
func (t *txn) endPersonsKnocks(computerID, accountID string) {
	t.endKnocks(computerID, func(row knock) bool { return row.AccountID == accountID })
	t.deleteBelow(keyKnockOffers(computerID) + accountID + "/")
}

// endAppsKnocks ends all there is of knocks at apps of a computer that are gone.
func (t *txn) endAppsKnocks(computerID string, gone map[string]bool) {
	t.endKnocks(computerID, func(row knock) bool { return gone[row.AppID] })
	for _, prefix := range []string{keyKnockOffers(computerID), keyKnocksRefused(computerID)} {
		for rest := range below(t, prefix) {
			if _, app, _ := strings.Cut(rest, "/"); gone[app] {
				t.delete(prefix + rest)
			}
		}
	}
}

// forgetKnocks deletes all there is of knocks at a computer.
func (t *txn) forgetKnocks(computerID string) {
	for _, prefix := range []string{
		keyKnocks(computerID), keyKnockOffers(computerID), keyKnocksRefused(computerID), keyKnocksMuted(computerID),
	} {
		t.deleteBelow(prefix)
	}
	t.delete(keyComputerKnocks(computerID))
}

// endAccountsKnocks ends all that an account asked, wherever.
func (t *txn) endAccountsKnocks(accountID string) {
	prefix := keyKnocksAsked(accountID)
	for rest, asked := range each[knockAsked](t, prefix) {
		if row, found := get[knock](t, keyKnocks(asked.ComputerID)+knockRest(accountID, asked.AppID)); found {
			t.deleteKnock(asked.ComputerID, row)
		}
		t.delete(prefix + rest)
	}
}

package control

import (
	"time"

	"porchlight/control/controlapi"
)

// What ends together with a way into an account.

// endSessions ends those sessions of an account that which says, and with any its sessions on
// every computer, as nobody can tell which browser opened those: browsers still signed in
// here open them again by themselves.
func (t *txn) endSessions(accountID, what string, which func(session) bool) error {
	ended := false
	for hash, row := range eachSession(t, accountID) {
		if which(row) {
			ended = true
			t.endSession(hash)
		}
	}
	if !ended {
		return nil
	}
	return t.raiseEpochs(accountID, what)
}

// endOpenedBy ends the sessions that a passkey or a login of this hash opened, but for the one
// of an id.
func (t *txn) endOpenedBy(accountID, hash, keep string) error {
	return t.endSessions(accountID, "with what signed them in", func(row session) bool { return (row.Passkey == hash || row.Login == hash) && row.ID != keep })
}

// endMailed ends the sessions that a mail opened.
func (t *txn) endMailed(accountID string) error {
	return t.endSessions(accountID, "whom a mail signed in", func(row session) bool { return row.Proof == "" || row.Proof == controlapi.ProofMail })
}

// endInvited ends, for a computer, the sessions and passkeys that its former invitations made:
// whoever has one of them is not to be there again when a person who was removed is invited anew.
func (t *txn) endInvited(computerID, accountID string) {
	left := func(only []string) (still []string, changed bool) {
		still = withoutApps(only, func(id string) bool { return id == computerID })
		return still, len(still) < len(only)
	}
	for hash, row := range eachSession(t, accountID) {
		if still, changed := left(row.Only); changed && len(still) == 0 {
			t.endSession(hash)
		} else if row.Only = still; changed {
			t.putSession(hash, row)
		}
	}
	for hash, row := range eachPasskey(t, accountID) {
		if still, changed := left(row.Only); changed && len(still) == 0 {
			t.deletePasskey(accountID, hash)
		} else if row.Only = still; changed {
			t.put(keyPasskey(hash), row, 0)
		}
	}
}

// endSince ends what was made for an account since a moment, as its person says that it was
// not them: ways in, what opens something by itself, computers but for one, and every
// session. What was allowed and not taken up yet is void (Account.NotBefore).
func (t *txn) endSince(account Account, since time.Time, but string) error {
	made := func(at time.Time) bool { return !at.Before(since) }
	for hash, row := range eachPasskey(t, account.ID) {
		if made(row.CreatedAt) {
			t.deletePasskey(account.ID, hash)
		}
	}
	if codes, _ := get[recovery](t, keyRecovery(account.Email)); made(codes.MadeAt) {
		t.delete(keyRecovery(account.Email))
	}
	for hash, row := range eachLogin(t, account.ID) {
		if made(row.CreatedAt) {
			t.deleteLogin(account.ID, hash)
		}
	}
	for g := range eachGrant(t, keyAccountGrants(account.ID)) {
		if made(g.CreatedAt) {
			t.revokeGrant(g.ID)
		}
	}
	for computerID := range below(t, keyMemberships(account.ID)) {
		t.endPasswords(computerID, keyPersonPasswords(computerID, account.ID), func(row appPassword) bool { return made(row.CreatedAt) })
		if c, _ := get[computer](t, keyComputer(computerID)); c.OwnerID == account.ID && c.ID != but && made(c.ConnectedAt) {
			t.endCredential(&c)
		}
	}
	account.NotBefore = t.now.UTC()
	t.put(keyAccount(account.ID), account, 0)
	if account.MailOff && !t.hasPasskey(account.ID) {
		t.mailOn(account) // whoever it was may have turned it off
	}
	for hash := range eachSession(t, account.ID) {
		t.endSession(hash)
	}
	return t.raiseEpochs(account.ID, "everywhere")
}

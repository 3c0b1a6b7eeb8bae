package control

import (
	"context"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/mail"
	"porchlight/internal/words"
)

// A new passkey is told to the connected computers of its owner, who can say there that it
// was not them: whoever reads their mailbox may have made it, and the mail that tells of it
// is in that.

// passkeyToldFor is for how long computers are told of a new passkey.
const passkeyToldFor = 7 * 24 * time.Hour

// addedPasskey tells the computers of an account of a passkey that was added to it.
func (t *txn) addedPasskey(accountID string, added controlapi.AddedPasskey) {
	for computerID := range below(t, keyMemberships(accountID)) {
		if c, found := get[computer](t, keyComputer(computerID)); !found || c.OwnerID != accountID {
			continue
		}
		told, _ := get[[]controlapi.AddedPasskey](t, keyComputerPasskeys(computerID))
		told = append(told, added)
		t.put(keyComputerPasskeys(computerID), told[max(0, len(told)-maxPasskeys):], passkeyToldFor)
		t.touch(computerID)
	}
}

// EndForComputer removes a passkey that the owner of a computer says was not theirs, with
// the recovery codes made and the logins bound since, and signs them out everywhere; they are told by mail. Where
// it was their last, mail signs them in again: whoever made it may have turned that off. A
// passkey that is gone, and anybody else's, is no error and changes nothing.
func (s *Passkeys) EndForComputer(ctx context.Context, computerID string, p controlapi.EndPasskey) error {
	mailID := newID()
	return s.update(ctx, func(tx *txn) error {
		c, owner, err := computerWithOwner(tx, computerID)
		row, found := get[passkey](tx, keyPasskey(p.ID))
		if err != nil || !found || row.AccountID != owner.ID {
			return err
		}
		tx.deletePasskey(owner.ID, p.ID)
		if codes, _ := get[recovery](tx, keyRecovery(owner.Email)); !codes.MadeAt.Before(row.CreatedAt) {
			tx.delete(keyRecovery(owner.Email))
		}
		for hash, l := range eachLogin(tx, owner.ID) {
			if !l.CreatedAt.Before(row.CreatedAt) {
				tx.deleteLogin(owner.ID, hash)
			}
		}
		if owner.MailOff && !tx.hasPasskey(owner.ID) {
			tx.mailOn(owner)
		}
		for hash := range eachSession(tx, owner.ID) {
			tx.endSession(hash)
		}
		message, err := mail.Account{
			To: owner.Email, Subject: words.Of("A passkey was removed from your account"),
			Says: []words.Sentence{words.Of("On %s somebody said that a new passkey was not yours. It opens nothing any more, and you are signed out everywhere.", s.computer(c).Host)},
			Link: s.cfg.AuthURL() + "/account", Button: words.Of("Your account"),
		}.Message()
		if err != nil {
			return err
		}
		s.putMail(tx, mailID, message)
		return tx.raiseEpochs(owner.ID)
	})
}

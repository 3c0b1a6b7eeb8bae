package control

import (
	"context"
	"time"

	"porchlight/control/controlapi"
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

// EndForComputer removes a passkey that the owner of a computer says was not theirs, with all
// that was made for their account since (endSince), but for this computer, and signs them out
// everywhere; they are told by mail. Where it was their last, mail signs them in again. A
// passkey that is gone, and anybody else's, is no error and changes nothing.
func (s *Passkeys) EndForComputer(ctx context.Context, computerID string, p controlapi.EndPasskey) error {
	mailID := newID()
	return s.update(ctx, func(tx *txn) error {
		c, owner, err := computerWithOwner(tx, computerID)
		row, found := get[passkey](tx, keyPasskey(p.ID))
		if err != nil || !found || row.AccountID != owner.ID {
			return err
		}
		if err := tx.endSince(owner, row.CreatedAt, c.ID); err != nil {
			return err
		}
		return s.tell(tx, mailID, owner, Asker{}, words.Of("A passkey was removed from your account"),
			words.Of("On %s somebody said that a new passkey was not yours. It opens nothing any more, and you are signed out everywhere.", s.computer(c).Host),
			words.Of("With it ended what was made since: passkeys, recovery codes, providers that sign you in, app passwords, connected apps and connected computers. What of it was yours you can make again."))
	})
}

package control

import (
	"context"
	"iter"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// A new passkey, or login, is told to the connected computers of its owner, who can say there that it
// was not them: whoever reads their mailbox may have made it, and the mail that tells of it
// is in that.

// passkeyToldFor is for how long computers are told of a new passkey.
const passkeyToldFor = 7 * 24 * time.Hour

// addedPasskey tells the computers of an account of a passkey, or login, that was added to it.
func (t *txn) addedPasskey(accountID string, added controlapi.AddedPasskey) {
	for c := range eachOwned(t, accountID) {
		kept, _ := get[[]controlapi.AddedPasskey](t, keyComputerPasskeys(c.ID))
		kept = append(kept, added)
		t.put(keyComputerPasskeys(c.ID), kept[max(0, len(kept)-maxPasskeys):], passkeyToldFor)
		t.touch(c.ID)
	}
}

// eachOwned are the computers of an account. Meanwhile they may be changed.
func eachOwned(t *txn, accountID string) iter.Seq[computer] {
	return func(yield func(computer) bool) {
		for _, c := range eachOf[computer](t, keyMemberships(accountID), keyComputer) {
			if c.OwnerID == accountID && !yield(c) {
				return
			}
		}
	}
}

// addedSince is since when a passkey or a login of an account is there.
func (t *txn) addedSince(accountID, id string) (since time.Time, found bool) {
	if row, _ := get[passkey](t, keyPasskey(id)); row.AccountID == accountID {
		return row.CreatedAt, true
	}
	row, _ := get[login](t, keyLogin(id))
	return row.CreatedAt, row.AccountID == accountID
}

// EndForComputer removes a passkey or a login that the owner of a computer says was not theirs,
// with all that was made for their account since (endSince), but for this computer, and signs
// them out everywhere; they are told by mail. Where it was their last passkey, mail signs them in
// again. One that is gone, and anybody else's, is no error and changes nothing.
func (s *Passkeys) EndForComputer(ctx context.Context, computerID string, p controlapi.EndPasskey) error {
	mailID := newID()
	return s.update(ctx, func(tx *txn) error {
		c, owner, err := computerWithOwner(tx, computerID)
		if err != nil {
			return err
		}
		since, found := tx.addedSince(owner.ID, p.ID)
		if !found {
			return nil
		}
		return s.notMe(tx, mailID, c, owner, since,
			words.Of("On %s somebody said that a new passkey or provider was not yours. It opens nothing any more, and you are signed out everywhere.", s.computer(c).Host))
	})
}

// notMe ends what was made for the owner of a computer since somebody else was in, who says so
// there, and tells them by mail. What gives power wants a session proven in the last FreshFor:
// whoever made a passkey may have made something else just before.
func (s *core) notMe(tx *txn, mailID string, c computer, owner Account, since time.Time, says words.Sentence) error {
	if err := tx.endSince(owner, since.Add(-FreshFor), c.ID); err != nil {
		return err
	}
	return s.tell(tx, mailID, owner, Asker{}, words.Of("Somebody else was in your account"), says,
		words.Of("With it ended what was made since: passkeys, recovery codes, providers that sign you in, app passwords, connected apps and connected computers. What of it was yours you can make again."))
}

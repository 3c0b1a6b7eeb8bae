package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
)

// The owner's side of knocks.

func knockOver() error {
	return refuse(controlapi.CodeNotFound, "This was answered already, or took too long.")
}

// Answer carries out the owner's answer to a knock on their computer. A yes gives
// somebody active the app; to anybody else it is an invitation out of the same budgets
// as a mailed one, which they accept in the browser that knocked. It refuses with
// CodeNotFound a knock that does not wait any more.
func (s *Knocks) Answer(ctx context.Context, computerID string, a controlapi.AnswerKnock) (controlapi.Person, error) {
	return updated(ctx, s.core, func(tx *txn) (controlapi.Person, error) {
		row, err := tx.openKnock(computerID, a.ID)
		if err != nil {
			return controlapi.Person{}, err
		}
		switch a.Answer {
		case controlapi.KnockYes:
			end, err := parseUntil(a.Until, tx.now)
			if err != nil {
				return controlapi.Person{}, err
			}
			return tx.letIn(computerID, row, end)
		case controlapi.KnockNo:
			tx.put(keyKnocksRefused(computerID)+knockRest(row.AccountID, row.AppID), tx.now.UTC(), knockSilence)
			tx.deleteKnock(computerID, row)
		case controlapi.KnockNever:
			tx.muteKnocks(computerID, row.AccountID)
		default:
			return controlapi.Person{}, refuse(controlapi.CodeInvalid, "A knock is answered by yes, no or never.")
		}
		return controlapi.Person{AccountID: row.AccountID, Email: row.Email, Apps: []string{}}, nil
	})
}

// openKnock is the knock of this id that waits at a computer.
func (t *txn) openKnock(computerID, id string) (knock, error) {
	open := t.openKnocks(computerID)
	i := slices.IndexFunc(open, func(row knock) bool { return row.ID == id })
	if i < 0 {
		return knock{}, knockOver()
	}
	_, err := find[Account](t, keyAccount(open[i].AccountID), knockOver())
	return open[i], err
}

// letIn is the owner's yes.
func (t *txn) letIn(computerID string, row knock, end until) (controlapi.Person, error) {
	if row.AppID == "" {
		return controlapi.Person{}, refuse(controlapi.CodeInvalid, "They asked for no app in particular. Invite them to the apps you choose.")
	}
	apps := []string{row.AppID}
	if err := t.liveApps(computerID, apps); err != nil {
		return controlapi.Person{}, err
	}
	p, _ := get[person](t, keyPerson(computerID, row.AccountID))
	event := personInvited
	if p.Status == controlapi.PersonActive {
		event = personGiven
	}
	p, err := t.changePerson(computerID, Account{ID: row.AccountID, Email: row.Email}, event, end, apps)
	if err != nil {
		return controlapi.Person{}, err
	}
	if event == personInvited {
		if err := t.putOffer(computerID, row); err != nil {
			return controlapi.Person{}, err
		}
	}
	return p.wire(t.now), t.roomFor(computerID, p)
}

// putOffer invites whoever knocked, in the browser they knocked with, without a mail.
func (t *txn) putOffer(computerID string, row knock) error {
	c, _, err := computerWithOwner(t, computerID)
	if err != nil {
		return err
	}
	if err := t.spend(budgetOwner.of(c.OwnerID), budgetInvited.of(row.Email), budgetRecipient.of(row.Email)); err != nil {
		return err
	}
	offer := knockOffer{SessionID: row.SessionID, Until: t.now.Add(invitationLife).UTC()}
	t.put(keyKnockOffers(computerID)+knockRest(row.AccountID, row.AppID), offer, invitationLife)
	return nil
}

// muteKnocks has nobody hear of a person again. Who was muted longest ago makes room.
func (t *txn) muteKnocks(computerID, accountID string) {
	type muted struct {
		account string
		at      time.Time
	}
	var all []muted
	for account, at := range each[time.Time](t, keyKnocksMuted(computerID)) {
		all = append(all, muted{account, at})
	}
	if len(all) >= maxMuted {
		oldest := slices.MinFunc(all, func(a, b muted) int { return a.at.Compare(b.at) })
		t.delete(keyKnocksMuted(computerID) + oldest.account)
	}
	t.put(keyKnocksMuted(computerID)+accountID, t.now.UTC(), 0)
	t.endKnocks(computerID, func(row knock) bool { return row.AccountID == accountID })
}

// Accept takes the invitation that answers a knock: the person becomes active. It
// refuses with CodeNotFound anybody but who knocked, in the browser they did it with.
func (s *Knocks) Accept(ctx context.Context, d Door, session Session) error {
	return s.update(ctx, func(tx *txn) error {
		b := s.readDoor(tx, d, session.Account)
		if b.there && b.opens {
			return nil // a second click
		}
		if b.stage(tx.now, session, false) != KnockInvited {
			return refuse(controlapi.CodeNotFound, "Nobody has let you in here yet, or it was taken back.")
		}
		account := session.Account
		if _, err := tx.changePerson(b.computer.ID, account, personAccepted, until{keep: true}, nil); err != nil {
			return err
		}
		tx.delete(keyKnockOffers(b.computer.ID) + knockRest(account.ID, d.App))
		return nil
	})
}

// takeKnocks notes from whom a computer takes knocks, as its agent says; what is not known
// counts as nobody. Who is not heard any more does not wait any more.
func (t *txn) takeKnocks(computerID string, from controlapi.KnocksFrom) {
	if from != controlapi.KnocksFromKnown && from != controlapi.KnocksFromEverybody {
		from = controlapi.KnocksFromNobody
	}
	if before, _ := get[controlapi.KnocksFrom](t, keyComputerKnocks(computerID)); before == from {
		return
	}
	t.put(keyComputerKnocks(computerID), from, 0)
	t.touch(computerID)
	for _, row := range t.openKnocks(computerID) {
		p, _ := get[person](t, keyPerson(computerID, row.AccountID))
		if from != controlapi.KnocksFromEverybody && !(from == controlapi.KnocksFromKnown && p.known()) {
			t.deleteKnock(computerID, row)
		}
	}
}

// snapshotKnocks are the knocks that wait at a computer, oldest first, and from whom it
// takes them. people are those with a row.
func snapshotKnocks(tx *txn, computerID string, people map[string]person) (out []controlapi.Knock, from controlapi.KnocksFrom) {
	from, _ = get[controlapi.KnocksFrom](tx, keyComputerKnocks(computerID))
	open := tx.openKnocks(computerID)
	slices.SortFunc(open, func(a, b knock) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) })
	for _, row := range open {
		out = append(out, controlapi.Knock{
			ID: row.ID, AccountID: row.AccountID, Email: row.Email, App: row.AppID, Known: people[row.AccountID].known(), At: row.At,
		})
	}
	return out, from
}

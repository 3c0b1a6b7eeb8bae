package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/internal/broadcast"
)

// The rows of the store. Values are JSON; secrets appear only as hashes.
//
//	account/ID                      account
//	account-email/EMAIL             account id
//	computer/ID                     computer
//	computer-name/NAME              computer id
//	former-name/NAME                formerName: whose name it was, when no longer
//	kept-name/ACCOUNT/NAME          nothing: the names kept back for an account
//	computer-apps/ID                []controlapi.App
//	computer-seen/ID                time.Time: when its agent was last here
//	credential/HASH                 computer id
//	ended-credential/EVENT/ID       computer id, for other nodes, for a while
//	enrolment/DEVICEHASH            enrolment
//	user-code/HASH                  hash of the device code
//	person/COMPUTER/ACCOUNT         person
//	ends/TIME/COMPUTER/ACCOUNT/APP  nothing: the index of person.Until by time
//	ended/TIME/COMPUTER/ACCOUNT/APP nothing: the index of person.Ended by time
//	membership/ACCOUNT/COMPUTER     nothing: the index of person by account
//	version/COMPUTER                opaque, new whenever the computer's snapshot changed
//	untold                          the version of the last change that no node was told of
//	change/COMPUTER                 int64: how often that was, in this line
//	line                            opaque: names the line, see Snapshot.Line; ended by a restore
//	session/HASH                    session
//	account-session/ACCOUNT/HASH    nothing: the index of session by account
//	signin/LINKHASH                 signIn
//	signin-browser/BROWSERHASH      link hash
//	signin-tries/BROWSERHASH        codes typed
//	invitation/LINKHASH             invitation
//	used-invitation/LINKHASH        usedInvitation, for a while
//	invitation-name/NAME            link hash: of an invitation's other address
//	person-invitation/COMPUTER/ACCOUNT/LINKHASH  nothing: the index of invitation by person
//	visit/HASH                      visit
//	client/ID                       client
//	authorization/HASH              authorization
//	grant/ID                        grant
//	account-grant/ACCOUNT/ID, computer-grant/COMPUTER/ID, client-grant/CLIENT/ID
//	                                nothing: the indexes of grants not revoked
//	revoked-grant/COMPUTER/ID       controlapi.RevokedGrant, while its tokens live
//	password/COMPUTER/ACCOUNT/ID    appPassword
//	password-form/ACCOUNT/HASH      nothing: forms that have made an app password
//	knock/COMPUTER/ACCOUNT/APP      knock
//	knock-offer/COMPUTER/ACCOUNT/APP    knockOffer
//	knock-refused/COMPUTER/ACCOUNT/APP  time.Time: since when this person is not heard there
//	knock-muted/COMPUTER/ACCOUNT    time.Time: since when this person is not heard
//	knock-asked/ACCOUNT/HASH        knockAsked: what the page knows of who asked
//	computer-knocks/ID              controlapi.KnocksFrom
//	budget/KIND/HASH                window
//	familiar/EMAILHASH              familiarNetworks: where mails to it have signed in
//	keys                            storedKeys
//	outbox/TIME-ID, mail/TIME-ID, mail-failed/TIME-ID
//	                                of package mail: mails kept, to be delivered, and given up
//	mail-failed-about/COMPUTER/TIME-ID
//	                                of package mail: whom such a mail did not reach
//	relay-node/NODE                 of package relay: its nodes
//	acme/KEY, acme-lock/NAME        of package certstore: ACME's account, certificates
//	                                and keys, sealed, and who has a lock
//	schema                          of package kv: how many migrations the rows have been through
//	schema-lease                    of package kv: who brings them up to date now
func keyAccount(id string) string         { return "account/" + id }
func keyAccountEmail(email string) string { return "account-email/" + email }
func keyComputer(id string) string        { return "computer/" + id }
func keyComputerName(name string) string  { return "computer-name/" + name }
func keyFormerName(name string) string    { return "former-name/" + name }
func keyKeptNames(account string) string  { return "kept-name/" + account + "/" }
func keyKeptName(account, name string) string {
	return keyKeptNames(account) + name
}
func keyComputerSeen(id string) string  { return "computer-seen/" + id }
func keyComputerApps(id string) string  { return "computer-apps/" + id }
func keyCredential(hash string) string  { return "credential/" + hash }
func keyEnrolment(hash string) string   { return "enrolment/" + hash }
func keyUserCode(hash string) string    { return "user-code/" + hash }
func keyPersons(computer string) string { return "person/" + computer + "/" }
func keyPerson(computer, account string) string {
	return keyPersons(computer) + account
}
func keyMemberships(account string) string { return "membership/" + account + "/" }
func keyMembership(account, computer string) string {
	return keyMemberships(account) + computer
}
func keyChange(computer string) string           { return "change/" + computer }
func keyVersion(computer string) string          { return "version/" + computer }
func keySession(hash string) string              { return "session/" + hash }
func keyAccountSessions(account string) string   { return "account-session/" + account + "/" }
func keyAccountSession(account, h string) string { return keyAccountSessions(account) + h }
func keySignIn(linkHash string) string           { return "signin/" + linkHash }
func keySignInBrowser(hash string) string        { return "signin-browser/" + hash }
func keySignInTries(hash string) string          { return "signin-tries/" + hash }
func keyInvitation(linkHash string) string       { return "invitation/" + linkHash }
func keyUsedInvitation(linkHash string) string   { return "used-invitation/" + linkHash }
func keyInvitationName(name string) string       { return "invitation-name/" + name }
func keyPersonInvitations(computer, account string) string {
	return "person-invitation/" + computer + "/" + account + "/"
}
func keyPersonInvitation(computer, account, linkHash string) string {
	return keyPersonInvitations(computer, account) + linkHash
}
func keyVisit(hash string) string        { return "visit/" + hash }
func keyBudget(kind, hash string) string { return "budget/" + kind + "/" + hash }
func keyFamiliar(email string) string    { return "familiar/" + hashOf(purposeFamiliar, email) }

func keyClient(id string) string               { return keyClients + id }
func keyAuthorization(hash string) string      { return "authorization/" + hash }
func keyGrant(id string) string                { return "grant/" + id }
func keyAccountGrants(account string) string   { return "account-grant/" + account + "/" }
func keyComputerGrants(computer string) string { return "computer-grant/" + computer + "/" }
func keyClientGrants(client string) string     { return "client-grant/" + client + "/" }
func keyRevokedGrants(computer string) string  { return "revoked-grant/" + computer + "/" }

func keyPasswords(computer string) string { return "password/" + computer + "/" }
func keyPersonPasswords(computer, account string) string {
	return keyPasswords(computer) + account + "/"
}
func keyPassword(computer, account, id string) string {
	return keyPersonPasswords(computer, account) + id
}
func keyPasswordForm(account, hash string) string { return "password-form/" + account + "/" + hash }

// endTime is how the indexes of ends write a time: as it sorts.
const endTime = "20060102T150405Z"

func keyEnd(prefix string, at time.Time, computer, account, app string) string {
	return prefix + at.UTC().Format(endTime) + "/" + computer + "/" + account + "/" + app
}

func keyKnocks(computer string) string        { return "knock/" + computer + "/" }
func keyKnockOffers(computer string) string   { return "knock-offer/" + computer + "/" }
func keyKnocksRefused(computer string) string { return "knock-refused/" + computer + "/" }
func keyKnocksMuted(computer string) string   { return "knock-muted/" + computer + "/" }
func keyKnocksAsked(account string) string    { return "knock-asked/" + account + "/" }
func keyComputerKnocks(id string) string      { return "computer-knocks/" + id }

// knockRest is what follows the computer in the keys of a person's knock at an app.
func knockRest(account, app string) string {
	if app == "" {
		app = "." // the launcher; no app has this id
	}
	return account + "/" + app
}

const (
	keyKeys    = "keys"
	keyClients = "client/"
	keyEnds    = "ends/"
	keyEnded   = "ended/"

	keyEndedCredentials = "ended-credential/"
	keyUntold           = "untold"
	// keyLine names the line in which changes are counted: from the first start, or since
	// rows were restored or an operator began another.
	keyLine = "line"
)

// txn is a writing transaction of the domain. It collects the computers whose
// snapshot it changes.
type txn struct {
	kv.Tx
	now     time.Time
	version string // of every computer touched; made before, as fn may run twice
	touched map[string]bool
	ended   []string // computers whose credential ended
	ends    bool     // an end was given to a share
	mails   bool     // a mail was put
}

// touch raises the version of a computer: every sync that waits for it is to look
// again.
func (t *txn) touch(computerID string) error {
	if t.touched[computerID] {
		return nil
	}
	t.touched[computerID] = true
	changes, _, err := get[int64](t, keyChange(computerID))
	if err != nil {
		return err
	}
	if err := put(t, keyChange(computerID), changes+1, 0); err != nil {
		return err
	}
	return put(t, keyVersion(computerID), t.version, 0)
}

// kept is a refusal that does not undo its transaction: that a code was tried, or
// is used up, stays written.
type kept struct{ refusal error }

func (k kept) Error() string { return k.refusal.Error() }

// update runs fn in a transaction and, once it is durable, wakes the waiting syncs
// of the computers it touched; also where nobody can say whether it is, because a
// reason to look costs only a look. fn may run more than once, so it must set its
// results afresh each time and make no secrets.
func (s *core) update(ctx context.Context, fn func(*txn) error) error {
	now, version := s.now(), newID()
	var t *txn
	var refusal error // with which the transaction was kept
	err := s.store.Update(ctx, func(tx kv.Tx) error {
		t = &txn{Tx: tx, now: now, version: version, touched: map[string]bool{}}
		refusal = nil
		err := fn(t)
		if kept, ok := errors.AsType[kept](err); ok {
			refusal, err = kept.refusal, nil
		}
		if err == nil && len(t.touched) > 0 && s.cfg.SharedStore && s.cfg.Tell == nil {
			err = put(t, keyUntold, version, 0)
		}
		return err
	})
	if err == nil || errors.Is(err, kv.ErrOutcomeUnknown) {
		s.haveLooked(t)
	}
	if err != nil {
		return err
	}
	for _, id := range t.ended {
		if s.cfg.SharedStore { // its reader is to leave this one alone
			s.endedHere.Store(endedEvent(version, id), true)
		}
		s.credentialEnded(id)
	}
	return refusal
}

// haveLooked has everybody look whom a transaction concerns, here and at other nodes.
func (s *core) haveLooked(t *txn) {
	tell := slices.Collect(maps.Keys(t.touched))
	s.Feed.Wake(tell...)
	if t.mails {
		s.cfg.Mail.Look(true)
		tell = append(tell, toldMail)
	}
	if s.cfg.Tell != nil && len(tell) > 0 {
		s.cfg.Tell(tell)
	}
	if t.ends {
		broadcast.Raise(s.endsWake)
	}
}

// deleteAll deletes the rows at some keys, as far as they are there.
func deleteAll(tx kv.Tx, keys ...string) error {
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// deleteBelow deletes all rows under a prefix.
func deleteBelow(tx kv.Tx, prefix string) error {
	return each(tx, prefix, func(rest string, _ []byte) error { return tx.Delete(prefix + rest) })
}

// putMail puts a mail into the queue, which hears of it when the transaction is over.
func (s *core) putMail(tx *txn, id string, m mail.Message) error {
	tx.mails = true
	return s.cfg.Mail.Put(tx, id, m)
}

func put(tx kv.Tx, key string, value any, ttl time.Duration) error {
	return kv.PutJSON(tx, key, value, ttl)
}

// get reads the row at key; found is false when there is none.
func get[T any](tx kv.Tx, key string) (value T, found bool, err error) {
	return kv.GetJSON[T](tx, key)
}

// updated is update with a result: what fn returned in the run that counts.
func updated[T any](ctx context.Context, s *core, fn func(*txn) (T, error)) (T, error) {
	var out, none T
	err := s.update(ctx, func(tx *txn) (err error) {
		out, err = fn(tx)
		return err
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

// viewed returns what fn finds in one reading transaction.
func viewed[T any](ctx context.Context, s *core, fn func(kv.Tx) (T, error)) (T, error) {
	var out, none T
	err := s.store.View(ctx, func(tx kv.Tx) (err error) {
		out, err = fn(tx)
		return err
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

// attemptsOf bounds how often viewedOf tries: no row here is found by following more
// others than this.
const attemptsOf = 8

// viewedOf is viewed for rows that are known before. What fn asks for besides is read
// by another attempt, together with all the rest and so of one moment, too; an attempt
// is one round trip where the rows are elsewhere. fn must set its results afresh each
// time.
func viewedOf[T any](ctx context.Context, s *core, rows kv.Rows, fn func(kv.Tx) (T, error)) (T, error) {
	var none T
	for attempt := 0; attempt < attemptsOf && len(rows.Keys) <= kv.MaxRows; attempt++ {
		var out T
		err := s.store.ViewOf(ctx, rows, func(tx kv.Tx) (err error) {
			out, err = fn(tx)
			return err
		})
		if err == nil {
			return out, nil
		}
		asked, ok := errors.AsType[*kv.NotReadError](err)
		if !ok {
			return none, err
		}
		rows = rows.With(asked.Missing)
	}
	return viewed(ctx, s, fn) // one round trip for each thing it asks for
}

// keysOf are the keys of rows, one for each id.
func keysOf(ids []string, key func(id string) string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = key(id)
	}
	return keys
}

// find is get for a row that has to be there: the error is none where it is not.
func find[T any](tx kv.Tx, key string, none error) (T, error) {
	value, found, err := get[T](tx, key)
	if err == nil && !found {
		err = none
	}
	return value, err
}

// rows are all rows under prefix, in key order.
func rows[T any](tx kv.Tx, prefix string) ([]T, error) {
	out := []T{}
	err := eachValue(tx, prefix, func(_ string, row T) error {
		out = append(out, row)
		return nil
	})
	return out, err
}

// eachValue is each, with the rows read.
func eachValue[T any](tx kv.Tx, prefix string, fn func(rest string, row T) error) error {
	return kv.EachJSON(tx, prefix, fn)
}

// each calls fn for the rows under prefix in key order, with what follows the
// prefix. fn may change the store.
func each(tx kv.Tx, prefix string, fn func(rest string, value []byte) error) error {
	return kv.Each(tx, prefix, fn)
}

// eachRow calls fn for the rows an index names, with what follows its prefix:
// key is where the row of that is. Rows that are gone are left out. The rows are
// read many at a time, because on a store elsewhere each Get is a round trip. fn
// may change the row it is called with, and no other of them.
func eachRow[T any](tx kv.Tx, index string, key func(rest string) string, fn func(rest string, row T) error) error {
	after := ""
	for {
		items, err := tx.Scan(index, after, kv.MaxKeys)
		if err != nil || len(items) == 0 {
			return err
		}
		keys := make([]string, len(items))
		for i, it := range items {
			keys[i] = key(it.Key[len(index):])
		}
		values, err := tx.GetAll(keys...)
		if err != nil {
			return err
		}
		for i, value := range values {
			if value == nil {
				continue
			}
			var row T
			if err := json.Unmarshal(value, &row); err != nil {
				return fmt.Errorf("decoding %T: %w", row, err)
			}
			if err := fn(items[i].Key[len(index):], row); err != nil {
				return err
			}
		}
		if len(items) < kv.MaxKeys {
			return nil
		}
		after = items[len(items)-1].Key
	}
}

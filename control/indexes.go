package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"porchlight/control/kv"
)

// The keys that only an Overview needs. They are written with what they are about, and for
// rows of before by whoever runs (makeIndexes): some rows in each transaction, and how far
// that is in a row written with them. So a crash goes on where it was, several nodes share
// the work, and a row that is changed meanwhile is seen by one of the two transactions.

// An index of rows below a prefix; its name is that of the row that says how far it is made.
const (
	indexAccountDomain = "account-domain"
	indexAccountBelow  = "account-below"
	indexOwnedComputer = "owned-computer"
	indexClient        = "client"
	indexDocument      = "client-document"
)

// indexesMade are the indexes with how to write the keys of one row.
func indexesMade() []index {
	return []index{
		{indexAccountDomain, keyAccountEmail(""), func(tx *txn, it kv.Item) {
			tx.put(keyAccountDomain(it.Key[len(keyAccountEmail("")):]), text(tx, it), 0)
		}},
		{indexAccountBelow, keyAccountEmail(""), func(tx *txn, it kv.Item) {
			tx.put(keyAccountBelow(it.Key[len(keyAccountEmail("")):]), text(tx, it), 0)
		}},
		{indexOwnedComputer, keyComputer(""), func(tx *txn, it kv.Item) {
			if c, ok := parsed[computer](tx, it.Value); ok {
				tx.put(keyOwnedComputers(c.OwnerID)+c.ID, struct{}{}, 0)
			}
		}},
		{indexClient, keyClients, indexOneClient},
		{indexDocument, keyDocuments, indexOneClient},
	}
}

type index struct {
	name, of string
	write    func(tx *txn, it kv.Item)
}

// made is how far an index is: after which key it goes on.
type made struct {
	After string `json:"after,omitempty"`
	Done  bool   `json:"done,omitempty"`
}

// indexed says whether all rows of before have the keys of an index.
func (t *txn) indexed(name string) bool {
	m, _ := get[made](t, keyMade(name))
	return m.Done
}

const (
	// indexAtOnce bounds the rows of one transaction of makeIndexes, and indexAgain is how
	// long it waits after one that failed.
	indexAtOnce = 200
	indexAgain  = 5 * time.Second
)

// makeIndexes writes what is missing of the indexes. It rests as long as it works, so that
// half of a store that takes one writer at a time is for people.
func (s *core) makeIndexes(ctx context.Context) error {
	for _, ix := range indexesMade() {
		for done := false; !done; {
			began := time.Now()
			var err error
			if done, err = s.makeSome(ctx, ix); ctx.Err() != nil {
				return ctx.Err()
			}
			rest := time.Since(began)
			if err != nil {
				s.log.Warn("what operators search could not be indexed; it is tried again", "err", err)
				rest, done = indexAgain, false
			}
			if done {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(rest):
			}
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// makeSome makes an index for the next rows.
func (s *core) makeSome(ctx context.Context, ix index) (done bool, err error) {
	done, err = viewed(ctx, s, func(tx *txn) (bool, error) { return tx.indexed(ix.name), nil })
	if done || err != nil {
		return done, err
	}
	return updated(ctx, s, func(tx *txn) (bool, error) {
		m, _ := get[made](tx, keyMade(ix.name))
		if m.Done {
			return true, nil
		}
		items := tx.scan(ix.of, m.After, indexAtOnce)
		for _, it := range items {
			ix.write(tx, it)
		}
		if m.Done = len(items) < indexAtOnce; m.Done {
			m.After = ""
		} else {
			m.After = items[len(items)-1].Key
		}
		tx.put(keyMade(ix.name), m, 0)
		return m.Done, nil
	})
}

// IndexAll makes the indexes, for a program that does not Run.
func (s *Overview) IndexAll(ctx context.Context) error {
	for _, ix := range indexesMade() {
		for done := false; !done; {
			var err error
			if done, err = s.makeSome(ctx, ix); err != nil {
				return errors.Join(err, ctx.Err())
			}
		}
	}
	return nil
}

func keyMade(name string) string { return "index-made/" + name }

const keyAccountDomains = "account-domain/"

func keyAccountDomain(email string) string {
	_, domain, _ := strings.Cut(email, "@")
	return keyAccountDomains + domain + "/" + email
}

// keyAccountsBelow begins the keys of all accounts of a domain and of those below it.
func keyAccountsBelow(domain string) string {
	labels := strings.Split(domain, ".")
	slices.Reverse(labels)
	return "account-below/" + strings.Join(labels, ".") + "."
}

func keyAccountBelow(email string) string {
	_, domain, _ := strings.Cut(email, "@")
	return keyAccountsBelow(domain) + "/" + email
}

func keyOwnedComputers(account string) string { return "owned-computer/" + account + "/" }

const (
	keyClientNames = "client-name/"
	keyClientIDs   = "client-id/"
	// maxIndexedID is how much of an id is searched, in bytes: one that is an address may be
	// too long for a key.
	maxIndexedID = 300
)

// clientIndex are the keys by which a client is searched.
func clientIndex(c client) []string {
	id := strings.ToValidUTF8(strings.ToLower(c.ID)[:min(len(c.ID), maxIndexedID)], "")
	return []string{
		keyClientNames + strings.ToLower(c.Name) + "/" + clientRest(c.ID),
		keyClientIDs + id + "/" + clientRest(c.ID),
	}
}

func indexOneClient(tx *txn, it kv.Item) {
	if c, ok := parsed[client](tx, it.Value); ok {
		tx.indexClient(c)
	}
}

func (t *txn) indexClient(c client) {
	for _, key := range clientIndex(c) {
		t.put(key, c.ID, 0)
	}
}

// putClient stores a client, which may have had another name before.
func (t *txn) putClient(c client) {
	if before, found := get[client](t, keyClient(c.ID)); found {
		t.delete(clientIndex(before)...)
	}
	t.put(keyClient(c.ID), c, 0)
	t.indexClient(c)
}

// deleteClient deletes the row of a client, and by what it is searched.
func (t *txn) deleteClient(id string) {
	if before, found := get[client](t, keyClient(id)); found {
		t.delete(clientIndex(before)...)
	}
	t.delete(keyClient(id))
}

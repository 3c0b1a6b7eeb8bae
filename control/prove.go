package control

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"

	"porchlight/control/clientdoc"
	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
)

// How a client proves by an assertion who it is. It costs a stranger what a wrong secret
// costs, one look at the store, and a signature; only what is signed is written down.

const (
	// usedAssertionLife is how long a used assertion is remembered: longer than any node
	// takes it, however their clocks differ.
	usedAssertionLife = 10 * time.Minute
	// keysAskedEvery is how often at most the keys of one client are fetched, whoever asks
	// for one that is not known.
	keysAskedEvery = 5 * time.Minute
	// awayKeysLife is how long the last keys count while their host does not answer.
	awayKeysLife = 7 * 24 * time.Hour
)

// bucketAssertions is how often one client gets tokens by assertions at a node, each of which
// is a row for a while: the people of a large service come at once after an outage.
var bucketAssertions = bounds.Bucket{Size: 1000, Refill: 50 * time.Millisecond}

// mostSigners bounds the clients whose buckets are remembered.
const mostSigners = 1000

// provers are what proving who a client is takes besides the store.
type provers struct {
	paces   *bounds.Buckets[string]
	fetches singleflight.Group // of keys by client, and of documents
}

func newProvers() *provers {
	return &provers{paces: bounds.NewBuckets[string](bucketAssertions, mostSigners)}
}

// fetchedKeys are the keys of a client whose document says where they are, as stored.
type fetchedKeys struct {
	Address string          `json:"address"` // where they are from
	Keys    json.RawMessage `json:"keys,omitempty"`
	AskedAt time.Time       `json:"askedAt"`          // last
	At      time.Time       `json:"at,omitzero"`      // when they were fetched
	Until   time.Time       `json:"freshTo,omitzero"` // when they are to be fetched again
}

// prove checks the assertion in a client's credentials, if there is one, and uses it up
// whatever comes of the request. It refuses with CodeInvalidClient. What gets tokens is
// limited, what takes access away is not.
func (s *Clients) prove(ctx context.Context, cred Credentials, limited bool) (Credentials, error) {
	if cred.Assertion == "" {
		return cred, nil
	}
	a, err := parseAssertion(cred.Assertion)
	if err != nil {
		return cred, err
	}
	if cred.ID == "" {
		cred.ID = a.Subject
	}
	if err := a.check(cred.ID, []string{s.cfg.AuthURL(), s.cfg.AuthURL() + controlapi.PathToken}, s.now()); err != nil {
		return cred, err
	}
	c, keys, err := s.signer(ctx, cred.ID)
	if err != nil {
		return cred, err
	}
	if err := s.signed(ctx, a, c, keys); err != nil {
		return cred, err
	}
	if limited {
		if wait := s.provers.paces.Take(s.now(), cred.ID); wait > 0 {
			return cred, notNow("This client signs in very often. Wait a moment, then try again.", wait)
		}
	}
	cred.proved = true
	return cred, s.useUp(ctx, a)
}

// notNow is a refusal that passes.
func notNow(why string, wait time.Duration) error {
	return &controlapi.Error{Code: controlapi.CodeUnavailable, Message: why, RetryAfter: wait}
}

// signer finds a client that signs, with what was fetched of its keys.
func (s *Clients) signer(ctx context.Context, id string) (c client, keys fetchedKeys, err error) {
	c, err = viewed(ctx, s.core, func(tx *txn) (client, error) {
		c, found := clientOf(tx, id)
		keys, _ = get[fetchedKeys](tx, keyClientKeys(id))
		switch {
		case !found:
			return client{}, badAssertion("The client is not known.")
		case !c.signs():
			return client{}, badAssertion("The client is not one that signs: send no client_assertion.")
		}
		return c, nil
	})
	return c, keys, err
}

// signed says whether an assertion was signed by a key of the client's. Keys that are kept
// elsewhere are fetched when their time is over, or this one is not among them.
func (s *Clients) signed(ctx context.Context, a assertion, c client, kept fetchedKeys) error {
	if c.Document.JWKS != nil {
		return s.signedInDocument(ctx, a, c)
	}
	if kept.of(c) && s.now().Before(kept.Until) {
		if err := signedBySet(a, kept.Keys); !errors.Is(err, errUnknownKey) {
			return err
		}
	}
	fetched, err, _ := s.provers.fetches.Do(c.ID, func() (any, error) {
		return s.fetchKeys(context.WithoutCancel(ctx), c) // others wait for it, too
	})
	if err != nil {
		return err
	}
	kept = fetched.(fetchedKeys)
	if !kept.of(c) {
		return notNow("The client's keys cannot be fetched from its jwks_uri just now.", awayFor) // another node may be fetching them
	}
	return signedBySet(a, kept.Keys)
}

// signedInDocument is signed for keys that are in the client's document, which is read again
// as keys that are elsewhere are.
func (s *Clients) signedInDocument(ctx context.Context, a assertion, c client) error {
	err, now := signedBySet(a, c.Document.JWKS), s.now()
	due := !now.Before(c.Document.Until) || errors.Is(err, errUnknownKey)
	if due && now.Sub(c.Document.Asked).Abs() >= keysAskedEvery {
		read, err := s.readDocument(ctx, c.ID)
		switch {
		case err != nil:
			return err
		case !read.signs():
			return badAssertion("The client is not one that signs: send no client_assertion.")
		}
		return s.signed(ctx, a, read, fetchedKeys{}) // it was asked for just now
	}
	if err == nil && !c.Document.counts(now) {
		return notNow("The client's document, where its keys are, cannot be read just now.", awayFor)
	}
	return err
}

// of says whether these are keys of the client as its document is now.
func (k fetchedKeys) of(c client) bool { return k.Address == c.Document.JWKSURI && k.Keys != nil }

func signedBySet(a assertion, set []byte) error {
	keys, err := clientKeys(set)
	if err != nil {
		return err
	}
	return a.signedBy(keys)
}

// fetchKeys fetches the keys of a client, unless that was tried a moment ago, by whichever
// node, and returns those that count from now on.
func (s *Clients) fetchKeys(ctx context.Context, c client) (fetchedKeys, error) {
	mayAsk := false
	kept, err := updated(ctx, s.core, func(tx *txn) (fetchedKeys, error) {
		kept, _ := get[fetchedKeys](tx, keyClientKeys(c.ID))
		if kept.Address != c.Document.JWKSURI {
			kept = fetchedKeys{Address: c.Document.JWKSURI}
		}
		if mayAsk = tx.now.Sub(kept.AskedAt).Abs() >= keysAskedEvery; mayAsk {
			kept.AskedAt = tx.now.UTC()
			tx.put(keyClientKeys(c.ID), kept, awayKeysLife)
		}
		return kept, nil
	})
	if err != nil || !mayAsk {
		return kept, err
	}
	body, fresh, err := s.cfg.Fetch(ctx, c.Document.JWKSURI)
	if err == nil {
		_, err = clientKeys(body)
	}
	switch {
	case err == nil:
		kept.Keys, kept.At, kept.Until = body, s.now().UTC(), s.now().Add(fresh).UTC()
	case errors.Is(err, clientdoc.ErrAway) && s.now().Sub(kept.At) < awayKeysLife: // the last ones count
	default:
		kept.Keys = nil
	}
	if err != nil {
		s.log.Warn("the keys of a client could not be fetched", "client", c.ID, "err", err)
	}
	return kept, s.update(ctx, func(tx *txn) error { tx.put(keyClientKeys(c.ID), kept, awayKeysLife); return nil })
}

// useUp refuses an assertion that was used before, at whichever node.
func (s *Clients) useUp(ctx context.Context, a assertion) error {
	key := keyAssertion(hashOf(purposeAssertion, a.Subject, a.ID))
	return s.update(ctx, func(tx *txn) error {
		if _, used := get[struct{}](tx, key); used {
			return badAssertion("This client_assertion was used before. Sign another one, with a jti of its own.")
		}
		tx.put(key, struct{}{}, usedAssertionLife)
		return nil
	})
}

package control

import (
	"context"
	"crypto/subtle"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/control/controlapi"
)

// OAuth clients. They are made by the operator only (O18), and all of them keep a
// secret.

// Clients are the OAuth clients.
type Clients struct{ *core }

const (
	maxRedirectURIs = 10
	maxRedirectURI  = 1024 // bytes
	maxClientName   = 80   // characters
	revokeAtOnce    = 200  // grants ended in one transaction
)

// Client is a registered OAuth client.
type Client struct {
	ID           string    `json:"clientId"`
	Name         string    `json:"name"`         // shown on the consent page
	RedirectURIs []string  `json:"redirectUris"` // exact
	CreatedAt    time.Time `json:"createdAt"`
	RotatedAt    time.Time `json:"rotatedAt,omitzero"` // when the secret was last replaced, zero if never
}

// client as stored.
type client struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	RedirectURIs []string  `json:"redirectUris"`
	SecretHash   string    `json:"secretHash"`
	CreatedAt    time.Time `json:"createdAt"`
	RotatedAt    time.Time `json:"rotatedAt,omitzero"`
}

func (c client) shown() Client {
	return Client{ID: c.ID, Name: c.Name, RedirectURIs: c.RedirectURIs, CreatedAt: c.CreatedAt, RotatedAt: c.RotatedAt}
}

// Credentials are what a client authenticates with.
type Credentials struct{ ID, Secret string }

func noClient() error {
	return refuse(controlapi.CodeNotFound, "There is no client of that id.")
}

// Add registers a client and returns its secret, this once.
func (s *Clients) Add(ctx context.Context, name string, redirectURIs []string) (Client, string, error) {
	name = strings.TrimSpace(name)
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxClientName ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Client{}, "", refuse(controlapi.CodeInvalid,
			"A client's name has 1 to 80 characters, none of them invisible. People read it when they are asked for consent.")
	}
	if len(redirectURIs) == 0 || len(redirectURIs) > maxRedirectURIs {
		return Client{}, "", refuse(controlapi.CodeInvalid, "A client has 1 to 10 redirect URIs.")
	}
	for i, uri := range redirectURIs {
		if err := validRedirectURI(uri); err != nil {
			return Client{}, "", err
		}
		if slices.Contains(redirectURIs[:i], uri) {
			return Client{}, "", refuse(controlapi.CodeInvalid, "The redirect URI "+uri+" is there twice.")
		}
	}
	secret := newToken()
	row := client{
		ID: newID(), Name: name, RedirectURIs: slices.Clone(redirectURIs),
		SecretHash: hashOf(purposeClient, secret), CreatedAt: s.now().UTC(),
	}
	err := s.update(ctx, func(tx *txn) error { tx.put(keyClient(row.ID), row, 0); return nil })
	if err != nil {
		return Client{}, "", err
	}
	return row.shown(), secret, nil
}

// List lists the registered clients, oldest first.
func (s *Clients) List(ctx context.Context) ([]Client, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]Client, error) {
		out := []Client{}
		for _, c := range each[client](tx, keyClients) {
			out = append(out, c.shown())
		}
		slices.SortStableFunc(out, func(a, b Client) int { return a.CreatedAt.Compare(b.CreatedAt) })
		return out, nil
	})
}

// Rotate replaces a client's secret and returns the new one, this once.
// The old one stops working; grants stay. It refuses with CodeNotFound.
func (s *Clients) Rotate(ctx context.Context, id string) (secret string, err error) {
	secret = newToken()
	hash := hashOf(purposeClient, secret)
	err = s.update(ctx, func(tx *txn) error {
		c, err := find[client](tx, keyClient(id), noClient())
		if err != nil {
			return err
		}
		c.SecretHash, c.RotatedAt = hash, tx.now.UTC()
		tx.put(keyClient(id), c, 0)
		return nil
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Remove ends a client: at once nobody gets tokens with its id, and then
// every grant it holds is revoked. Called again it goes on where it was
// interrupted; until then a grant that is left still has its origins told. It
// refuses with CodeNotFound.
func (s *Clients) Remove(ctx context.Context, id string) error {
	for first := true; ; first = false {
		var more bool
		err := s.update(ctx, func(tx *txn) error {
			_, found := get[client](tx, keyClient(id))
			items := tx.scan(keyClientGrants(id), "", revokeAtOnce)
			if !found && len(items) == 0 && first {
				return noClient()
			}
			for _, it := range items {
				tx.revokeGrant(it.Key[len(keyClientGrants(id)):])
				// Of a grant that is no longer there only this row is left.
				tx.delete(it.Key)
			}
			more = len(items) == revokeAtOnce
			tx.delete(keyClient(id))
			return nil
		})
		if err != nil || !more {
			return err
		}
	}
}

// For finds the client of an authorization request, or refuses with
// CodeInvalidClient, and with CodeInvalidRedirectURI when the redirect URI is not
// one of its own, byte for byte. Nobody may be redirected then.
func (s *Clients) For(ctx context.Context, id, redirectURI string) (Client, error) {
	c, err := viewed(ctx, s.core, func(tx *txn) (client, error) { return clientFor(tx, id, redirectURI) })
	return c.shown(), err
}

func clientFor(tx *txn, id, redirectURI string) (client, error) {
	unknown := refuse(controlapi.CodeInvalidClient, "The app that sent you here is not known to this service.")
	if !idPattern.MatchString(id) {
		return client{}, unknown
	}
	c, err := find[client](tx, keyClient(id), unknown)
	if err == nil && !slices.Contains(c.RedirectURIs, redirectURI) {
		err = refuse(controlapi.CodeInvalidRedirectURI,
			"The app that sent you here asked to get the answer at an address that is not registered for it.")
	}
	return c, err
}

// Authenticate checks a client's credentials and changes nothing, or
// refuses with CodeInvalidClient.
func (s *Clients) Authenticate(ctx context.Context, cred Credentials) error {
	_, err := viewed(ctx, s.core, func(tx *txn) (client, error) { return authenticateClient(tx, cred) })
	return err
}

// authenticateClient checks a client's secret, or refuses with
// CodeInvalidClient.
func authenticateClient(tx *txn, cred Credentials) (client, error) {
	refused := refuse(controlapi.CodeInvalidClient, "The client is not known, or its secret is not right.")
	if !idPattern.MatchString(cred.ID) || len(cred.Secret) != tokenLen {
		return client{}, refused
	}
	c, found := get[client](tx, keyClient(cred.ID))
	if !found || subtle.ConstantTimeCompare([]byte(hashOf(purposeClient, cred.Secret)), []byte(c.SecretHash)) != 1 {
		return client{}, refused
	}
	return c, nil
}

// idPattern is that of newID; see IsID.
var idPattern = regexp.MustCompile(`^[a-z0-9]{26,64}$`)

// IsID says whether a string has the form of the ids this service makes.
func IsID(s string) bool { return idPattern.MatchString(s) }

package control

import (
	"cmp"
	"context"
	"crypto/subtle"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/control/clientdoc"
	"porchlight/control/controlapi"
)

// OAuth clients. They are made by the operator only (O18), or of a host that the operator
// allows (document.go). One that cannot keep a secret is public and has none (RFC 6749,
// section 2.1).

// Clients are the OAuth clients.
type Clients struct {
	*core
	provers *provers
}

const (
	maxRedirectURIs = 10
	maxRedirectURI  = 1024 // bytes
	maxClientName   = 80   // characters
	revokeAtOnce    = 200  // grants ended in one transaction
)

// Client is a registered OAuth client, or one that describes itself.
type Client struct {
	ID           string    `json:"clientId"`
	Host         string    `json:"host,omitempty"` // whose document it is; empty for a registered one
	Name         string    `json:"name"`           // shown on the consent page
	RedirectURIs []string  `json:"redirectUris"`   // exact; see client.leadsTo
	Public       bool      `json:"public,omitempty"`
	CreatedAt    time.Time `json:"createdAt"`
	RotatedAt    time.Time `json:"rotatedAt,omitzero"` // when the secret was last replaced, zero if never
	// Version is of the name and redirect URIs that it describes itself by: who allowed
	// another is asked anew. Empty for a registered one.
	Version string `json:"-"`
}

// client as stored.
type client struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	RedirectURIs []string  `json:"redirectUris"`
	SecretHash   string    `json:"secretHash"` // empty for a public one, which no secret fits
	Public       bool      `json:"public,omitempty"`
	CreatedAt    time.Time `json:"createdAt"`
	RotatedAt    time.Time `json:"rotatedAt,omitzero"`
	Document     *document `json:"document,omitempty"` // nil for a registered one
}

func (c client) shown() Client {
	out := Client{ID: c.ID, Name: c.Name, RedirectURIs: c.RedirectURIs, Public: c.Public, CreatedAt: c.CreatedAt, RotatedAt: c.RotatedAt}
	if c.Document != nil {
		out.Host, out.Version = c.Document.Host, hashOf(purposeDocument, append([]string{c.Name}, c.RedirectURIs...)...)
	}
	return out
}

// Credentials are what a client authenticates with: a Secret, an Assertion that says its ID
// too, or, as a public one, with neither.
type Credentials struct {
	ID, Secret, Assertion string
	proved                bool // by the Assertion, see Clients.prove
}

func noClient() error {
	return refuse(controlapi.CodeNotFound, "There is no client of that id.")
}

// Add registers a confidential client and returns its secret, this once.
func (s *Clients) Add(ctx context.Context, name string, redirectURIs []string) (Client, string, error) {
	secret := newToken()
	c, err := s.add(ctx, client{Name: name, RedirectURIs: redirectURIs, SecretHash: hashOf(purposeClient, secret)})
	if err != nil {
		return Client{}, "", err
	}
	return c, secret, nil
}

// AddPublic registers a client without a secret.
func (s *Clients) AddPublic(ctx context.Context, name string, redirectURIs []string) (Client, error) {
	return s.add(ctx, client{Name: name, RedirectURIs: redirectURIs, Public: true})
}

func (s *Clients) add(ctx context.Context, row client) (Client, error) {
	name := strings.TrimSpace(row.Name)
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxClientName ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Client{}, refuse(controlapi.CodeInvalid,
			"A client's name has 1 to 80 characters, none of them invisible. People read it when they are asked for consent.")
	}
	if len(row.RedirectURIs) == 0 || len(row.RedirectURIs) > maxRedirectURIs {
		return Client{}, refuse(controlapi.CodeInvalid, "A client has 1 to 10 redirect URIs.")
	}
	for i, uri := range row.RedirectURIs {
		if err := validRedirectURI(uri, row.Public); err != nil {
			return Client{}, err
		}
		if slices.Contains(row.RedirectURIs[:i], uri) {
			return Client{}, refuse(controlapi.CodeInvalid, "The redirect URI "+uri+" is there twice.")
		}
	}
	row.ID, row.Name, row.RedirectURIs, row.CreatedAt = newID(), name, slices.Clone(row.RedirectURIs), s.now().UTC()
	err := s.update(ctx, func(tx *txn) error { tx.putClient(row); return nil })
	if err != nil {
		return Client{}, err
	}
	return row.shown(), nil
}

// List lists the registered clients, oldest first, and then those that describe
// themselves.
func (s *Clients) List(ctx context.Context) ([]Client, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]Client, error) {
		out := []Client{}
		for _, c := range slices.Concat(rows[client](tx, keyClients), rows[client](tx, keyDocuments)) {
			out = append(out, c.shown())
		}
		slices.SortStableFunc(out, func(a, b Client) int {
			return cmp.Or(cmp.Compare(a.Host, b.Host), a.CreatedAt.Compare(b.CreatedAt))
		})
		return out, nil
	})
}

// Rotate replaces a client's secret and returns the new one, this once.
// The old one stops working; grants stay. It refuses with CodeNotFound, and a public
// client with CodeInvalid.
func (s *Clients) Rotate(ctx context.Context, id string) (secret string, err error) {
	secret = newToken()
	hash := hashOf(purposeClient, secret)
	err = s.update(ctx, func(tx *txn) error {
		c, err := find[client](tx, keyClient(id), noClient())
		if err != nil {
			return err
		}
		if c.Public || c.Document != nil {
			return refuse(controlapi.CodeInvalid, "That client has no secret to replace. To end what it holds, remove it.")
		}
		c.SecretHash, c.RotatedAt = hash, tx.now.UTC()
		tx.putClient(c)
		return nil
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Remove ends a client: at once nobody gets tokens with its id, and then
// every grant it holds is revoked. One that describes itself may come again while its
// host is allowed. Called again it goes on where it was
// interrupted; until then a grant that is left still has its origins told. It
// refuses with CodeNotFound.
func (s *Clients) Remove(ctx context.Context, id string) error {
	for first := true; ; first = false {
		var more bool
		err := s.update(ctx, func(tx *txn) error {
			c, found := get[client](tx, keyClient(id))
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
			if c.Document == nil || !more { // by its row Disallow finds what is left
				tx.deleteClient(id)
			}
			return nil
		})
		if err != nil || !more {
			return err
		}
	}
}

// For finds the client of an authorization request, or refuses with
// CodeInvalidClient, and with CodeInvalidRedirectURI when the redirect URI is not
// one of its own (see client.leadsTo). Nobody may be redirected then.
func (s *Clients) For(ctx context.Context, id, redirectURI string) (Client, error) {
	c, err := viewed(ctx, s.core, func(tx *txn) (client, error) { return clientFor(tx, id, redirectURI) })
	return c.shown(), err
}

func clientFor(tx *txn, id, redirectURI string) (client, error) {
	c, found := clientOf(tx, id)
	if err := tx.refuseSuspendedClient(id); found && err != nil {
		return client{}, err
	}
	switch {
	case !found:
		return client{}, unknownClient()
	case !c.leadsTo(redirectURI):
		return client{}, refuse(controlapi.CodeInvalidRedirectURI,
			"The app that sent you here asked to get the answer at an address that is not registered for it.")
	}
	return c, nil
}

// reachClient is built in: programs of this very service at people's own computers.
var reachClient = client{ID: controlapi.ReachClient, Name: "porchlight reach", RedirectURIs: []string{"http://127.0.0.1/"}, Public: true}

// clientOf finds a client, of those that describe themselves only one of a host that is
// allowed.
func clientOf(tx *txn, id string) (client, bool) {
	if id == controlapi.ReachClient {
		return reachClient, true
	}
	if !idPattern.MatchString(id) && !tx.allows(clientdoc.HostOf(id)) {
		return client{}, false
	}
	return get[client](tx, keyClient(id))
}

// Authenticate checks a client's credentials and changes nothing, but that an assertion is
// used up, or refuses with CodeInvalidClient.
func (s *Clients) Authenticate(ctx context.Context, cred Credentials) error {
	_, err := s.authenticated(ctx, cred)
	return err
}

// authenticated is Authenticate; it returns the credentials as authenticateClient takes
// them, once more.
func (s *Clients) authenticated(ctx context.Context, cred Credentials) (Credentials, error) {
	cred, err := s.prove(ctx, cred, true)
	if err == nil {
		_, err = viewed(ctx, s.core, func(tx *txn) (client, error) { return authenticateClient(tx, cred) })
	}
	return cred, err
}

// authenticateClient checks a client's secret, that a public one sends none, or that one
// that signs has proved who it is, or refuses with CodeInvalidClient.
func authenticateClient(tx *txn, cred Credentials) (client, error) {
	c, found := clientOf(tx, cred.ID)
	switch {
	case found && c.signs() && !cred.proved:
		return client{}, badAssertion("This client signs: send a client_assertion and its client_assertion_type.")
	case found && c.signs():
		return c, nil
	case cred.Secret == "" && found && c.Public:
		return c, nil
	case cred.Secret == "":
		return client{}, refuse(controlapi.CodeInvalidClient, "The parameter client_secret is missing.")
	case c.Public:
		return client{}, refuse(controlapi.CodeInvalidClient, "This client is public and has no secret: send its client_id alone, in the form.")
	case !found || len(cred.Secret) != tokenLen ||
		subtle.ConstantTimeCompare([]byte(hashOf(purposeClient, cred.Secret)), []byte(c.SecretHash)) != 1:
		return client{}, refuse(controlapi.CodeInvalidClient, "The client is not known, or its secret is not right.")
	}
	return c, nil
}

// signs says whether a client proves by assertions who it is, see Clients.prove.
func (c client) signs() bool { return c.Document != nil && !c.Public }

// idPattern is that of newID.
var idPattern = regexp.MustCompile(`^[a-z0-9]{26,64}$`)

// DescribesItself says whether an id can only be that of a client that describes itself.
func DescribesItself(clientID string) bool { return isAddress(clientID) }

// IsClientID says whether a string has the form of a client's id: of those this service
// makes, or the address of a document.
func IsClientID(s string) bool {
	return idPattern.MatchString(s) || s == controlapi.ReachClient || clientdoc.HostOf(s) != ""
}

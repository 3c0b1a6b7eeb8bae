package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"porchlight/control/clientdoc"
	"porchlight/control/controlapi"
)

// Clients that nobody registered: their id is the https address at which they describe
// themselves (package clientdoc), of a host that the operator allows. What was read there
// is a row as that of a registered client; whatever asks for consent or tokens finds both
// alike, the former only while its host is allowed.

const (
	maxDocuments = 1000
	maxKeySet    = 16 << 10 // bytes of one document's keys
	// lastGood is how long a document asks for consent while its host is away.
	lastGood = 7 * 24 * time.Hour
	// askAgain is how soon a host that failed is asked again, by whomever.
	askAgain = time.Minute
)

// document is what a client's row has besides where it came from its address.
type document struct {
	Host    string          `json:"host"`
	JWKS    json.RawMessage `json:"jwks,omitempty"` // one of the two where it is not public
	JWKSURI string          `json:"jwksUri,omitempty"`
	Read    time.Time       `json:"read"`              // when it was there
	Asked   time.Time       `json:"asked,omitzero"`    // when it was last asked for
	Until   time.Time       `json:"until"`             // it is not asked for anew before
	Refused bool            `json:"refused,omitempty"` // there is none, or it is wrong: nothing is allowed anew
}

// AllowedHost is one whose documents count.
type AllowedHost struct {
	Host      string    `json:"host"`
	AllowedAt time.Time `json:"allowedAt"`
}

func (t *txn) hosts() []AllowedHost {
	hosts, _ := get[[]AllowedHost](t, keyHosts)
	return hosts
}

func (t *txn) allows(host string) bool {
	return slices.ContainsFunc(t.hosts(), func(a AllowedHost) bool { return a.Host == host })
}

// Hosts are those whose documents count, as they were allowed.
func (s *Clients) Hosts(ctx context.Context) ([]AllowedHost, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]AllowedHost, error) { return append([]AllowedHost{}, tx.hosts()...), nil })
}

// Allow has the documents of some hosts count, besides those of before. It refuses with
// CodeInvalid what is no whole name of a host elsewhere, and then allows none.
func (s *Clients) Allow(ctx context.Context, hosts ...string) error {
	for _, host := range hosts {
		if !controlapi.ValidClientHost(host) || s.cfg.own(host) {
			return refuse(controlapi.CodeInvalid, "A host is a whole name like claude.ai, in lower case, without https:// and port, and none of this service.")
		}
	}
	return s.update(ctx, func(tx *txn) error {
		all := tx.hosts()
		for _, host := range hosts {
			if !slices.ContainsFunc(all, func(a AllowedHost) bool { return a.Host == host }) {
				all = append(all, AllowedHost{host, tx.now.UTC()})
			}
		}
		if len(all) == len(tx.hosts()) {
			return nil
		}
		if len(all) > controlapi.MaxClientHosts {
			return refuse(controlapi.CodeInvalid, "No more than 100 hosts can be allowed.")
		}
		tx.put(keyHosts, all, 0)
		return nil
	})
}

func (n Naming) own(host string) bool {
	return host == n.AuthHost || host == n.Domain || strings.HasSuffix(host, "."+n.Domain)
}

// Disallow ends a host: at once nobody gets tokens for its clients, and then each of them
// is removed as by Remove. Called again it goes on where it was interrupted. It refuses
// with CodeNotFound.
func (s *Clients) Disallow(ctx context.Context, host string) error {
	var allowed bool
	ids, err := updated(ctx, s.core, func(tx *txn) (ids []string, err error) {
		all := tx.hosts()
		allowed = tx.allows(host)
		if allowed {
			tx.put(keyHosts, slices.DeleteFunc(all, func(a AllowedHost) bool { return a.Host == host }), 0)
		}
		for _, c := range each[client](tx, keyDocuments) {
			if c.Document.Host == host {
				ids = append(ids, c.ID)
			}
		}
		return ids, nil
	})
	if err != nil {
		return err
	}
	if !allowed && len(ids) == 0 {
		return refuse(controlapi.CodeNotFound, "That host is not allowed.")
	}
	for _, id := range ids {
		if err := s.Remove(ctx, id); err != nil && !IsRefusal(err, controlapi.CodeNotFound) {
			return err
		}
	}
	return nil
}

// AllowOnly allows these hosts and ends all others.
func (s *Clients) AllowOnly(ctx context.Context, hosts []string) error {
	clients, err := s.List(ctx)
	if err != nil {
		return err
	}
	allowed, err := s.Hosts(ctx)
	if err != nil {
		return err
	}
	for _, c := range clients { // an end that was interrupted leaves clients alone
		allowed = append(allowed, AllowedHost{Host: c.Host})
	}
	for _, a := range allowed {
		if a.Host == "" || slices.Contains(hosts, a.Host) {
			continue
		}
		if err := s.Disallow(ctx, a.Host); err != nil && !IsRefusal(err, controlapi.CodeNotFound) {
			return err
		}
	}
	return s.Allow(ctx, hosts...)
}

func unknownClient() error {
	return refuse(controlapi.CodeInvalidClient, "The app that sent you here is not known to this service.")
}

const (
	sayAway = "What the app that sent you here says of itself cannot be read just now, because its host does not answer. Try again later."
	sayBad  = "What the app that sent you here says of itself is not as it must be. Only its makers can mend that."
)

// MayDescribe refuses with CodeInvalidClient an id that is no address of a document at a
// host that is allowed, before anybody is asked to sign in for it.
func (s *Clients) MayDescribe(ctx context.Context, id string) error {
	allowed, err := viewed(ctx, s.core, func(tx *txn) (bool, error) { return tx.allows(clientdoc.HostOf(id)), nil })
	if err == nil && !allowed {
		err = unknownClient()
	}
	return err
}

// Describe sees to it that what a client says of itself at its id is known, and not too
// old: it asks there in the name of an account, which may so introduce 5 new ones an hour.
// It refuses with CodeInvalidClient.
func (s *Clients) Describe(ctx context.Context, accountID, id string) error {
	known, err := viewed(ctx, s.core, func(tx *txn) (client, error) {
		if !tx.allows(clientdoc.HostOf(id)) {
			return client{}, unknownClient()
		}
		c, _ := get[client](tx, keyClient(id))
		return c, nil
	})
	if err == nil && known.ID == "" {
		err = s.update(ctx, func(tx *txn) error { return tx.spend(budgetDocuments.of(accountID)) })
	}
	if err == nil && (known.ID == "" || !s.now().Before(known.Document.Until)) {
		known, err = s.readDocument(ctx, id)
	}
	if err != nil {
		return err
	}
	if known.Document.Refused {
		return refuse(controlapi.CodeInvalidClient, sayBad)
	}
	if s.now().Sub(known.Document.Read) >= lastGood {
		return refuse(controlapi.CodeInvalidClient, sayAway)
	}
	return nil
}

// counts says whether what was read last may still be gone by.
func (d document) counts(now time.Time) bool { return !d.Refused && now.Sub(d.Read) < lastGood }

// readDocument asks for a document, once for all who want it at that time, and keeps what
// came of it, in the row that is there by then. Of one that was never there nothing is kept.
func (s *Clients) readDocument(ctx context.Context, id string) (client, error) {
	read, err, _ := s.provers.fetches.Do("document "+id, func() (any, error) {
		ctx := context.WithoutCancel(ctx) // others wait for it, too
		known, err := viewed(ctx, s.core, func(tx *txn) (client, error) {
			c, _ := get[client](tx, keyClient(id))
			return c, nil
		})
		if err != nil || known.ID != "" && s.now().Sub(known.Document.Asked).Abs() < askAgain { // by whoever came just before
			return known, err
		}
		return s.readDocumentNow(ctx, id)
	})
	c, _ := read.(client)
	return c, err
}

func (s *Clients) readDocumentNow(ctx context.Context, id string) (client, error) {
	got, fresh, problem := s.fetchDocument(ctx, id)
	if problem != nil {
		s.log.Info("what a client says of itself could not be read", "client", id, "err", problem)
	}
	return updated(ctx, s.core, func(tx *txn) (client, error) {
		if !tx.allows(clientdoc.HostOf(id)) {
			return client{}, unknownClient()
		}
		row, found := get[client](tx, keyClient(id))
		away := errors.Is(problem, clientdoc.ErrAway)
		switch {
		case problem == nil:
			row.ID, row.Name, row.RedirectURIs, row.Public = got.ID, got.Name, got.RedirectURIs, got.Public
			doc := *got.Document
			doc.Read, doc.Until = tx.now.UTC(), tx.now.Add(fresh).UTC()
			row.Document = &doc
		case !found && away:
			return client{}, refuse(controlapi.CodeInvalidClient, sayAway)
		case !found:
			return client{}, refuse(controlapi.CodeInvalidClient, sayBad)
		default:
			row.Document.Until = tx.now.Add(askAgain).UTC()
			row.Document.Refused = !away || row.Document.Refused
		}
		row.Document.Asked = tx.now.UTC()
		if !found {
			row.CreatedAt = tx.now.UTC()
			if err := tx.roomForDocument(); err != nil {
				return client{}, err
			}
		}
		tx.putClient(row)
		return row, nil
	})
}

// fetchDocument is the row of a client as its document says now.
func (s *Clients) fetchDocument(ctx context.Context, id string) (client, time.Duration, error) {
	body, fresh, err := s.cfg.Fetch(ctx, id)
	if err != nil {
		return client{}, 0, err
	}
	d, err := clientdoc.Read(id, body)
	if err != nil {
		return client{}, 0, err
	}
	host := clientdoc.HostOf(id)
	c := client{
		ID: id, Name: d.Name, Public: d.AuthMethod == clientdoc.AuthNone,
		Document: &document{Host: host, JWKS: d.JWKS, JWKSURI: d.JWKSURI},
	}
	for _, uri := range d.RedirectURIs {
		if len(c.RedirectURIs) < maxRedirectURIs && describable(uri, host) && !slices.Contains(c.RedirectURIs, uri) {
			c.RedirectURIs = append(c.RedirectURIs, uri)
		}
	}
	switch {
	case len(c.RedirectURIs) == 0:
		return client{}, 0, errors.New("none of its redirect_uris is https at its own host, or http to 127.0.0.1, [::1] or localhost")
	case len(d.JWKS) > maxKeySet:
		return client{}, 0, errors.New("its jwks is larger than 16 KiB")
	}
	return c, fresh, nil
}

// describable says whether a redirect URI of a document counts: https at the very host of
// the document, or the person's own computer. Whoever writes a document could name any
// other, and with it whoever listens there.
func describable(uri, host string) bool {
	_, loopback := withoutPort(uri)
	return validRedirectURI(uri, true) == nil && (loopback || strings.HasPrefix(uri, "https://"+host+"/"))
}

// roomForDocument makes room for one more document: of those without a grant the one that
// was there last the longest ago goes.
func (t *txn) roomForDocument() error {
	var all []client
	for _, c := range each[client](t, keyDocuments) {
		all = append(all, c)
	}
	if len(all) < maxDocuments {
		return nil
	}
	slices.SortFunc(all, func(a, b client) int { return a.Document.Read.Compare(b.Document.Read) })
	for _, c := range all {
		if len(t.scan(keyClientGrants(c.ID), "", 1)) == 0 {
			t.deleteClient(c.ID)
			return nil
		}
	}
	return refuse(controlapi.CodeInvalidClient, "As many apps as this service can know are connected to it. Ask who runs it to remove some.")
}

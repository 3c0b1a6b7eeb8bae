package control

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// Overview is what operators see: who is there, how it is with them and how much they carry,
// never what anybody opens or whom anybody lets in. Everything is a page of rows below one
// prefix of keys, so no question reads more than it shows; the keys that only these questions
// need are written with what they are about (indexes.go).
type Overview struct{ *core }

// What lists are searched by. Each kind of list has its own, the first of them if none is named.
const (
	ByMail   = "mail"
	ByID     = "id"
	ByDomain = "domain"
	ByName   = "name"
)

// Bounds of a page, in rows, and of what is searched for and Page.Next, in bytes.
const (
	usualPage = 50
	MaxPage   = 200
	maxSought = 500
	maxAfter  = 4 << 10
)

// mayBeSought says whether a store can be asked for a text.
func mayBeSought(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Query asks for a page of a list.
type Query struct {
	// Prefix is what the field By of a row begins with, in letters of any case; "" for all rows.
	Prefix string
	// By is one of the constants By*; "" for the list's first. A Prefix that begins with @
	// is searched ByDomain.
	By string
	// After is Page.Next of the page before, "" for the first.
	After string
	// Limit is how many rows there are at most: 1 to MaxPage, 0 for 50.
	Limit int
	// Kind and About are for Audit alone: the kind of its rows, and whom they are of or about, an
	// id or the mail address of an account; "" for all.
	Kind, About string
}

// Page is a part of a list, in the order of the keys it is searched by.
type Page[T any] struct {
	Rows []T `json:"rows"`
	// Next is Query.After of the page that follows; "" where there is none.
	Next string `json:"next,omitempty"`
	// Partial says that keys are still being made, so that rows may be missing.
	Partial bool `json:"partial,omitempty"`
}

// checked is q with what follows from the rest, or a refusal. by are the list's fields.
func (q Query) checked(by ...string) (Query, error) {
	q.Prefix = strings.ToLower(strings.TrimSpace(q.Prefix))
	if domain, is := strings.CutPrefix(q.Prefix, "@"); is && (q.By == "" || q.By == ByDomain) {
		q.By, q.Prefix = ByDomain, domain
	}
	if q.By == "" {
		q.By = by[0]
	}
	if q.Limit == 0 {
		q.Limit = usualPage
	}
	if !mayBeSought(q.Prefix, maxSought) || !mayBeSought(q.After, maxAfter) {
		return q, refuse(controlapi.CodeInvalid, "What is searched for is too long, or has invisible characters.")
	}
	if q.Kind != "" || q.About != "" {
		return q, refuse(controlapi.CodeInvalid, "The audit log alone is searched by kind and account.")
	}
	for _, known := range by {
		if q.By == known && q.Limit > 0 && q.Limit <= MaxPage {
			return q, nil
		}
	}
	return q, refuse(controlapi.CodeInvalid, "This list is searched by "+strings.Join(by, ", ")+", and a page has 1 to 200 rows.")
}

// pageOf is a page of the rows below prefix whose keys go on as q says, as read makes it of
// their items: rows that it leaves out are gone.
func pageOf[T any](tx *txn, prefix string, q Query, read func(items []kv.Item) []T) Page[T] {
	return pageIn(tx.scan(prefix+q.Prefix, prefix+q.After, q.Limit+1), prefix, q, read)
}

// pageIn is pageOf of items that were read, one more than the page has.
func pageIn[T any](items []kv.Item, prefix string, q Query, read func(items []kv.Item) []T) Page[T] {
	var p Page[T]
	if len(items) > q.Limit {
		items = items[:q.Limit]
		p.Next = items[q.Limit-1].Key[len(prefix):]
	}
	p.Rows = append([]T{}, read(items)...)
	return p
}

// rowsNamed are the rows at the keys that key makes of some items, as far as they are there.
func rowsNamed[T any](t *txn, items []kv.Item, key func(kv.Item) string) []T {
	keys := make([]string, len(items))
	for i, it := range items {
		keys[i] = key(it)
	}
	return rowsAt[T](t, keys...)
}

// rowsAt are the rows at some keys, as far as they are there.
func rowsAt[T any](t *txn, keys ...string) []T {
	out := make([]T, 0, len(keys))
	for _, value := range t.getAll(keys...) {
		if value == nil {
			continue
		}
		if row, ok := parsed[T](t, value); ok {
			out = append(out, row)
		}
	}
	return out
}

// text is a value that is a string; of one that cannot be read the store's error is kept.
func text(t *txn, it kv.Item) string {
	s, _ := parsed[string](t, it.Value)
	return s
}

// Accounts are those whose mail address, id or domain of the address begins with something.
func (s *Overview) Accounts(ctx context.Context, q Query) (Page[Account], error) {
	q, err := q.checked(ByMail, ByID, ByDomain)
	if err != nil {
		return Page[Account]{}, err
	}
	return viewed(ctx, s.core, func(tx *txn) (Page[Account], error) {
		switch q.By {
		case ByID:
			return pageOf(tx, keyAccount(""), q, func(items []kv.Item) []Account { return rowsOf[Account](tx, items) }), nil
		case ByDomain:
			p := pageOf(tx, keyAccountDomains, q, func(items []kv.Item) []Account { return accountsNamed(tx, items) })
			p.Partial = !tx.indexed(indexAccountDomain)
			return p, nil
		}
		return pageOf(tx, keyAccountEmail(""), q, func(items []kv.Item) []Account { return accountsNamed(tx, items) }), nil
	})
}

func accountsNamed(tx *txn, items []kv.Item) []Account {
	return rowsNamed[Account](tx, items, func(it kv.Item) string { return keyAccount(text(tx, it)) })
}

// rowsOf are the rows that some items are.
func rowsOf[T any](t *txn, items []kv.Item) (out []T) {
	for _, it := range items {
		if row, ok := parsed[T](t, it.Value); ok {
			out = append(out, row)
		}
	}
	return out
}

// AccountDetail is one account as operators see it.
type AccountDetail struct {
	Account
	Operator bool `json:"operator,omitempty"`
	// Suspensions are those that end what it may: its own, its address's, its domain's.
	Suspensions []Suspension     `json:"suspensions"`
	Computers   []ListedComputer `json:"computers"` // its own, by id
	Passkeys    int              `json:"passkeys"`
	Providers   []string         `json:"providers"` // the names of those it is bound at, each as often
	Sessions    int              `json:"sessions"`  // signed-in browsers
	Partial     bool             `json:"partial,omitempty"`
}

// Account is the account of an id or a mail address. It refuses with CodeNotFound.
func (s *Overview) Account(ctx context.Context, idOrMail string) (AccountDetail, error) {
	return viewed(ctx, s.core, func(tx *txn) (AccountDetail, error) {
		row, err := tx.suspendable(SuspendAccount, idOrMail)
		if err != nil {
			return AccountDetail{}, err
		}
		a, _ := get[Account](tx, keyAccount(row.ID))
		_, operator := get[Operator](tx, keyOperator(a.ID))
		d := AccountDetail{Account: a, Operator: operator, Providers: []string{}, Suspensions: tx.suspensionsOf(a.ID, a.Email), Partial: !tx.indexed(indexOwnedComputer)}
		owned := rowsNamed[computer](tx, tx.scan(keyOwnedComputers(a.ID), "", maxComputers), func(it kv.Item) string {
			return keyComputer(it.Key[len(keyOwnedComputers(a.ID)):])
		})
		d.Computers = s.listed(tx, owned)
		d.Passkeys = len(tx.scan(keyAccountPasskeys(a.ID), "", kv.MaxKeys))
		for _, l := range eachOf[login](tx, keyAccountLogins(a.ID), keyLogin) {
			d.Providers = append(d.Providers, l.Provider)
		}
		d.Sessions = len(tx.scan(keyAccountSessions(a.ID), "", kv.MaxKeys))
		return d, nil
	})
}

// ListedComputer is a computer as operators see it.
type ListedComputer struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	URL       string    `json:"url"`
	OwnerID   string    `json:"ownerId"`
	Owner     string    `json:"owner"` // mail address
	CreatedAt time.Time `json:"createdAt"`
	// Connected says that a credential speaks for it; else its name and people are kept.
	Connected bool      `json:"connected"`
	Suspended time.Time `json:"suspended,omitzero"` // since when, its own suspension or its owner's
}

// listed are computers with their owners.
func (s *core) listed(tx *txn, computers []computer) []ListedComputer {
	owners := make([]string, len(computers))
	for i, c := range computers {
		owners[i] = keyAccount(c.OwnerID)
	}
	out := make([]ListedComputer, len(computers))
	for i, value := range tx.getAll(owners...) {
		c := computers[i]
		out[i] = ListedComputer{ID: c.ID, Name: c.Name, URL: s.computer(c).URL, OwnerID: c.OwnerID, CreatedAt: c.CreatedAt, Connected: c.CredentialHash != "", Suspended: c.Suspended}
		if value != nil {
			owner, _ := parsed[Account](tx, value)
			out[i].Owner = owner.Email
		}
	}
	return out
}

// Computers are those whose short name or id begins with something.
func (s *Overview) Computers(ctx context.Context, q Query) (Page[ListedComputer], error) {
	q, err := q.checked(ByName, ByID)
	if err != nil {
		return Page[ListedComputer]{}, err
	}
	return viewed(ctx, s.core, func(tx *txn) (Page[ListedComputer], error) {
		if q.By == ByID {
			return pageOf(tx, keyComputer(""), q, func(items []kv.Item) []ListedComputer { return s.listed(tx, rowsOf[computer](tx, items)) }), nil
		}
		return pageOf(tx, keyComputerName(""), q, func(items []kv.Item) []ListedComputer {
			return s.listed(tx, rowsNamed[computer](tx, items, func(it kv.Item) string { return keyComputer(text(tx, it)) }))
		}), nil
	})
}

// ComputerDetail is one computer as operators see it.
type ComputerDetail struct {
	ListedComputer
	On   bool      `json:"on"`
	Seen time.Time `json:"seen,omitzero"` // when its agent was here last, of one that is not on
	// People is how many may reach it or are invited, counted to 1,000.
	People  int            `json:"people"`
	Domains []ListedDomain `json:"ownDomains"`
	// Suspension is its own, where there is one.
	Suspension *Suspension `json:"suspension,omitempty"`
	Usage      []UsageDay  `json:"usage"` // newest first, days without a visit left out
	// Certificate is what it shows a visitor now; nil where it is away, or nothing is known.
	Certificate *Certificate `json:"certificate,omitempty"`
}

// ListedDomain is an own domain of a computer's, without the app that it leads to.
type ListedDomain struct {
	Name  string                 `json:"name"`
	State controlapi.DomainState `json:"state"`
}

// Certificate is one that a computer shows for its root host.
type Certificate struct {
	Issuer string    `json:"issuer"`
	From   time.Time `json:"from"`
	Ends   time.Time `json:"ends"`
	// Problem is why this machine would not trust it.
	Problem string `json:"problem,omitempty"`
}

// maxCounted is how many people of a computer are counted.
const maxCounted = 1000

// Computer is the computer of an id or a short name. It refuses with CodeNotFound.
func (s *Overview) Computer(ctx context.Context, idOrName string) (ComputerDetail, error) {
	var c computer
	d, err := viewed(ctx, s.core, func(tx *txn) (ComputerDetail, error) {
		named, err := tx.suspendable(SuspendComputer, idOrName)
		if err != nil {
			return ComputerDetail{}, err
		}
		c, _ = get[computer](tx, keyComputer(named.ID))
		d := ComputerDetail{ListedComputer: s.listed(tx, []computer{c})[0], Usage: tx.usage(c.ID)}
		if own, found := get[Suspension](tx, keySuspended(SuspendComputer, c.ID)); found {
			d.Suspension = &own
		}
		for _, p := range rowsOf[person](tx, tx.scan(keyPersons(c.ID), "", maxCounted)) {
			if p.Role == controlapi.RoleMember && p.Status != controlapi.PersonRemoved {
				d.People++
			}
		}
		d.Seen, _ = get[time.Time](tx, keyComputerSeen(c.ID))
		d.Domains = []ListedDomain{}
		owned, _ := get[[]domain](tx, keyComputerDomains(c.ID))
		for _, one := range owned {
			d.Domains = append(d.Domains, ListedDomain{one.Name, one.State})
		}
		return d, nil
	})
	if err != nil {
		return ComputerDetail{}, err
	}
	p := s.presence(ctx, c, d.Seen)
	d.On, d.Seen = p.On, p.Since
	if d.On && d.Suspended.IsZero() && s.cfg.CertificateOf != nil {
		d.Certificate = s.cfg.CertificateOf(ctx, c.Name+"."+s.cfg.Domain)
	}
	return d, nil
}

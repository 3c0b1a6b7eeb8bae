package control

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
)

// Clients are the OAuth clients whose name or id begins with something, those that were
// registered and those that describe themselves.
func (s *Overview) Clients(ctx context.Context, q Query) (Page[ListedClient], error) {
	q, err := q.checked(ByName, ByID)
	if err != nil {
		return Page[ListedClient]{}, err
	}
	return viewed(ctx, s.core, func(tx *txn) (Page[ListedClient], error) {
		prefix := keyClientNames
		if q.By == ByID {
			prefix = keyClientIDs
		}
		p := pageOf(tx, prefix, q, func(items []kv.Item) []ListedClient {
			return tx.listedClients(rowsNamed[client](tx, items, func(it kv.Item) string { return keyClient(text(tx, it)) }))
		})
		p.Partial = !tx.indexed(indexClient) || !tx.indexed(indexDocument)
		return p, nil
	})
}

// ListedClient is an OAuth client as operators see it.
type ListedClient struct {
	Client
	Suspended time.Time `json:"suspended,omitzero"`
}

func (t *txn) listedClients(clients []client) []ListedClient {
	keys := make([]string, len(clients))
	for i, c := range clients {
		keys[i] = keySuspended(SuspendClient, c.ID)
	}
	out := make([]ListedClient, len(clients))
	for i, value := range t.getAll(keys...) {
		out[i].Client = clients[i].shown()
		if value != nil {
			row, _ := parsed[Suspension](t, value)
			out[i].Suspended = row.At
		}
	}
	return out
}

// suspensionsLooked bounds the suspensions that are looked at for those of a name.
const suspensionsLooked = 5000

// Suspensions are what operators ended, by kind and id: q.By is a SuspensionKind, and q.Prefix
// what the id begins with; without a kind all of them. By name, q.Prefix is what the name or id
// begins with, an @ left out, and 5,000 are looked at for a page, which may have few and go on.
func (s *Overview) Suspensions(ctx context.Context, q Query) (Page[Suspension], error) {
	kind := q.By
	if kind == ByName {
		q.Prefix = strings.TrimPrefix(q.Prefix, "@")
	}
	q, err := q.checked("", ByName, string(SuspendAccount), string(SuspendComputer), string(SuspendClient), string(SuspendAddress), string(SuspendDomain))
	if err != nil {
		return Page[Suspension]{}, err
	}
	if kind == ByName {
		return viewed(ctx, s.core, func(tx *txn) (Page[Suspension], error) { return suspensionsNamed(tx, q), nil })
	}
	if kind != "" {
		q.Prefix = kind + "/" + q.Prefix
	}
	return viewed(ctx, s.core, func(tx *txn) (Page[Suspension], error) {
		return pageOf(tx, keySuspensions, q, func(items []kv.Item) []Suspension { return rowsOf[Suspension](tx, items) }), nil
	})
}

func suspensionsNamed(tx *txn, q Query) (p Page[Suspension]) {
	p.Rows, p.Next = []Suspension{}, q.After
	for looked := 0; looked < suspensionsLooked; {
		items := tx.scan(keySuspensions, keySuspensions+p.Next, kv.MaxKeys)
		for _, it := range items {
			p.Next = it.Key[len(keySuspensions):]
			row, ok := parsed[Suspension](tx, it.Value)
			if !ok || !strings.HasPrefix(strings.ToLower(row.Name), q.Prefix) && !strings.HasPrefix(strings.ToLower(row.ID), q.Prefix) {
				continue
			}
			if p.Rows = append(p.Rows, row); len(p.Rows) == q.Limit {
				return p
			}
		}
		if looked += len(items); len(items) < kv.MaxKeys {
			p.Next = ""
			return p
		}
	}
	return p
}

// Undelivered is a mail that did not arrive: to whom, never what it said.
type Undelivered struct {
	To string    `json:"to"`
	At time.Time `json:"at"` // when it was written
	// FailedAt is when it was given up; zero for one that is still tried.
	FailedAt time.Time `json:"failedAt,omitzero"`
	Next     time.Time `json:"next,omitzero"`    // when that is
	Reason   string    `json:"reason,omitempty"` // mail.ReasonRefused, or for its age
	Code     int       `json:"code,omitempty"`   // the mail server's last, where it gave one
	Tries    int       `json:"tries"`
}

// FailedMails are those given up in the last seven days, newest first, at most 500 in all.
// They are searched ByMail.
func (s *Overview) FailedMails(ctx context.Context, q Query) (Page[Undelivered], error) {
	all, err := mail.Failures(ctx, s.store)
	if err != nil {
		return Page[Undelivered]{}, err
	}
	list := make([]Undelivered, len(all))
	for i, f := range all {
		list[i] = Undelivered{To: f.To, At: f.At, FailedAt: f.FailedAt, Reason: f.Reason, Code: f.Code, Tries: f.Tries}
	}
	return pageOfMails(q, list)
}

// WaitingMails are those that are still tried, the one due first at the head, at most 1,000
// in all. They are searched ByMail.
func (s *Overview) WaitingMails(ctx context.Context, q Query) (Page[Undelivered], error) {
	all, err := mail.Queued(ctx, s.store)
	if err != nil {
		return Page[Undelivered]{}, err
	}
	list := make([]Undelivered, len(all))
	for i, w := range all {
		list[i] = Undelivered{To: w.To, At: w.At, Next: w.Next, Tries: w.Tries}
	}
	return pageOfMails(q, list)
}

// pageOfMails is a page of a list that is bounded; its Next counts rows.
func pageOfMails(q Query, list []Undelivered) (Page[Undelivered], error) {
	q, err := q.checked(ByMail)
	if err != nil {
		return Page[Undelivered]{}, err
	}
	list = slices.DeleteFunc(list, func(m Undelivered) bool { return !strings.HasPrefix(strings.ToLower(m.To), q.Prefix) })
	from, _ := strconv.Atoi(q.After)
	from = min(max(from, 0), len(list))
	to := min(from+q.Limit, len(list))
	p := Page[Undelivered]{Rows: list[from:to]}
	if to < len(list) {
		p.Next = strconv.Itoa(to)
	}
	return p, nil
}

// auditLooked bounds the rows that are looked at for a page of some of them.
const auditLooked = 5000

// auditFilter says of rows whether they are asked for; nil for all.
func (s *Overview) auditFilter(ctx context.Context, q Query) (func(audit.Row) bool, error) {
	kind, about := q.Kind, strings.TrimSpace(q.About)
	switch {
	case !mayBeSought(kind, maxSought) || !mayBeSought(about, maxSought):
		return nil, refuse(controlapi.CodeInvalid, "What is searched for is too long, or has invisible characters.")
	case kind == "" && about == "":
		return nil, nil
	}
	if strings.Contains(about, "@") {
		account, err := s.Account(ctx, about)
		if err != nil {
			return nil, err
		}
		about = account.ID
	}
	return func(row audit.Row) bool {
		return (kind == "" || row.Kind == kind) && (about == "" || row.On == about || row.By == about)
	}, nil
}

// EachAudit calls fn for all rows that q.Kind and q.About ask for, chain by chain, the oldest of
// each first.
func (s *Overview) EachAudit(ctx context.Context, q Query, fn func(audit.Row) error) error {
	asked, err := s.auditFilter(ctx, q)
	if err == nil {
		err = s.cfg.Audit.Flush(ctx)
	}
	if err != nil {
		return err
	}
	return audit.List(ctx, s.store, func(row audit.Row) error {
		if asked != nil && !asked(row) {
			return nil
		}
		return fn(row)
	})
}

// Audit is what was kept of acts and of the security of accounts, newest first, of all nodes.
// Where some are asked for, auditLooked rows are looked at: a page may have fewer than there
// are, or none, and go on. q.Prefix and q.By are of no use here.
func (s *Overview) Audit(ctx context.Context, q Query) (Page[audit.Row], error) {
	asked, err := s.auditFilter(ctx, q)
	if err != nil {
		return Page[audit.Row]{}, err
	}
	q.Kind, q.About = "", ""
	if q, err = q.checked(""); err != nil {
		return Page[audit.Row]{}, err
	}
	var before url.Values
	if q.After != "" {
		before, _ = url.ParseQuery(q.After) // what is none of ours says nothing
	}
	if err := s.cfg.Audit.Flush(ctx); err != nil {
		return Page[audit.Row]{}, err
	}
	p := Page[audit.Row]{}
	err = s.store.View(ctx, func(tx kv.Tx) (err error) {
		if asked == nil {
			p, err = auditPage(tx, q, before)
		} else {
			p, err = auditSome(tx, q, before, asked)
		}
		return err
	})
	return p, err
}

// AuditState is what this node knows of whether the audit log is whole.
func (s *Overview) AuditState() audit.State { return s.cfg.Audit.State() }

// VerifyAudit goes through the whole audit log, without the heads that were told outside of the
// store. It refuses with CodeUnavailable while somebody else does.
func (s *Overview) VerifyAudit(ctx context.Context) error {
	if s.cfg.Audit == nil {
		return nil
	}
	_, err := s.cfg.Audit.Verify(ctx, nil)
	if errors.Is(err, audit.ErrVerifying) {
		return refuse(controlapi.CodeUnavailable, "The audit log is being verified already. Try again in a moment.")
	}
	return err
}

// auditSome is auditPage of those rows that are asked for.
func auditSome(tx kv.Tx, q Query, before url.Values, asked func(audit.Row) bool) (p Page[audit.Row], err error) {
	p.Rows = []audit.Row{}
	for looked := 0; looked < auditLooked; looked += MaxPage {
		some, err := auditPage(tx, Query{Limit: MaxPage}, before)
		if err != nil {
			return p, err
		}
		for i, row := range some.Rows {
			if !asked(row) {
				continue
			}
			if p.Rows = append(p.Rows, row); len(p.Rows) == q.Limit {
				some, err = auditPage(tx, Query{Limit: i + 1}, before) // for where it goes on
				p.Next = some.Next
				return p, err
			}
		}
		if p.Next = some.Next; p.Next == "" {
			return p, nil
		}
		before, _ = url.ParseQuery(p.Next)
	}
	return p, nil
}

// auditPage merges the chains of all nodes, those that end last first: what ended before all of
// a page is not read. before says of chains that were shown how many of their rows are left.
func auditPage(tx kv.Tx, q Query, before url.Values) (p Page[audit.Row], err error) {
	ends, err := audit.Ends(tx)
	if err != nil {
		return p, err
	}
	slices.SortFunc(ends, func(a, b audit.Head) int { return b.At.Compare(a.At) })
	var chains [][]audit.Row // what each has for the page, and one more, the newest first
	for _, end := range ends {
		if newer(chains, end.At) > q.Limit {
			break
		}
		left := end.Seq
		if n, err := strconv.ParseUint(before.Get(end.Node), 10, 64); err == nil {
			left = min(left, n)
		}
		some, err := audit.Before(tx, end.Node, left, q.Limit+1)
		if err != nil {
			return p, err
		}
		slices.Reverse(some)
		chains = append(chains, some)
	}
	next := url.Values{}
	maps.Copy(next, before)
	p.Rows = []audit.Row{}
	for {
		chains = slices.DeleteFunc(chains, func(c []audit.Row) bool { return len(c) == 0 })
		if len(chains) == 0 {
			return p, nil
		}
		if len(p.Rows) == q.Limit {
			p.Next = next.Encode()
			return p, nil
		}
		// A chain stays in its order, also where the clock of its node was set back.
		newest := slices.MaxFunc(chains, func(a, b []audit.Row) int { return a[0].At.Compare(b[0].At) })
		i := slices.IndexFunc(chains, func(c []audit.Row) bool { return &c[0] == &newest[0] })
		p.Rows, chains[i] = append(p.Rows, newest[0]), newest[1:]
		next.Set(newest[0].Node, strconv.FormatUint(newest[0].Seq-1, 10))
	}
}

// newer counts the rows that are from after a time.
func newer(chains [][]audit.Row, at time.Time) (n int) {
	for _, c := range chains {
		for _, row := range c {
			if row.At.After(at) {
				n++
			}
		}
	}
	return n
}

// Node is one node of the service.
type Node struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Address  string `json:"address,omitempty"` // where agents connect
	Draining bool   `json:"draining,omitempty"`
	// This says that it is the one that answers, which knows its own numbers alone.
	This      bool `json:"this,omitempty"`
	Computers int  `json:"computers,omitempty"` // connections of computers
	Visits    int  `json:"visits,omitempty"`    // under way
	// CertificateEnds is when that of the auth host does, which all nodes may share.
	CertificateEnds time.Time `json:"certificateEnds,omitzero"`
}

// Nodes are those that are there.
func (s *Overview) Nodes(ctx context.Context) ([]Node, error) {
	if s.cfg.Nodes == nil {
		return []Node{}, nil
	}
	return s.cfg.Nodes(ctx)
}

// Limit is a bound of the node that answers.
type Limit struct {
	Name    string `json:"name"`
	Value   int    `json:"value,omitempty"`   // 0 where it has no number of its own
	Reached uint64 `json:"reached,omitempty"` // how often, since the node began
}

// Limits are the bounds of the node that answers.
func (s *Overview) Limits() []Limit {
	if s.cfg.Limits == nil {
		return []Limit{}
	}
	return s.cfg.Limits()
}

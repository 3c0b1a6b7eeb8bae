package control

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"porchlight/control/audit"
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

// Suspensions are what operators ended, by kind and id: q.By is a SuspensionKind, and q.Prefix
// what the id begins with; without a kind all of them.
func (s *Overview) Suspensions(ctx context.Context, q Query) (Page[Suspension], error) {
	kind := q.By
	q, err := q.checked("", string(SuspendAccount), string(SuspendComputer), string(SuspendClient), string(SuspendAddress), string(SuspendDomain))
	if err != nil {
		return Page[Suspension]{}, err
	}
	if kind != "" {
		q.Prefix = kind + "/" + q.Prefix
	}
	return viewed(ctx, s.core, func(tx *txn) (Page[Suspension], error) {
		return pageOf(tx, keySuspensions, q, func(items []kv.Item) []Suspension { return rowsOf[Suspension](tx, items) }), nil
	})
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

// Audit is what was kept of acts and of the security of accounts, newest first, of all nodes.
// q.Prefix and q.By are of no use here.
func (s *Overview) Audit(ctx context.Context, q Query) (Page[audit.Row], error) {
	q, err := q.checked("")
	if err != nil {
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
		p, err = auditPage(tx, q, before)
		return err
	})
	return p, err
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

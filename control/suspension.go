package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// What the operator ends is a row for each suspension, and follows from those rows alone
// (suspendedSince). So that whatever decides reads it with what it reads anyway, the time
// is written to the rows of accounts, computers and people too (follow): Account,
// computer and person each have Suspended. Clients are looked up by their row.

// SuspensionKind is what a suspension is of.
type SuspensionKind string

// Kinds of suspensions, and what their ids are. An account's id may be given as its
// mail address and a computer's as its short name.
const (
	SuspendAccount  SuspensionKind = "account"  // its id
	SuspendComputer SuspensionKind = "computer" // its id
	SuspendClient   SuspensionKind = "client"   // its client_id
	SuspendAddress  SuspensionKind = "address"  // a mail address, whether it has an account or not
	SuspendDomain   SuspensionKind = "domain"   // of mail addresses, with those below it
)

// Suspension is what the operator ended, until it is resumed.
type Suspension struct {
	Kind   SuspensionKind `json:"kind"`
	ID     string         `json:"id"`
	Name   string         `json:"name"` // mail address, short name or name of the client, as it was then
	Reason string         `json:"reason"`
	By     string         `json:"by"` // who did it: an account's id, or ByCommandLine
	At     time.Time      `json:"at"`
}

// event is what is kept of it: of an address only that it was one.
func (s Suspension) event(kind string) audit.Event {
	on := s.ID
	if s.Kind == SuspendAddress {
		on = ""
	}
	return audit.Event{Kind: kind, By: s.By, On: on, What: string(s.Kind) + ": " + s.Reason}
}

// ByCommandLine is who acts by the command line of the server.
const ByCommandLine = "command-line"

// maxSuspendable is how long an id may be, in bytes: a client's may be an address.
const maxSuspendable = 4 << 10

// maxReason is how long the reason of a suspension may be, in characters.
const maxReason = 500

func noReason() error {
	return refuse(controlapi.CodeInvalid, "Give the reason in 1 to 500 visible characters on one line, for whoever looks later (--reason).")
}

// Suspensions are what the operator ended.
type Suspensions struct{ *core }

// List lists the suspensions, by kind and id.
func (s *Suspensions) List(ctx context.Context) ([]Suspension, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]Suspension, error) { return rows[Suspension](tx, keySuspensions), nil })
}

// Suspend ends access until Resume: nobody of an account, address or domain signs in,
// opens anything or is let in by a client, and nothing is forwarded to a computer of
// theirs; a client gets no token and those it has open nothing. Nothing is deleted. It
// holds for an address or a domain from the first moment on, and account by account for
// those that exist: interrupted, it goes on when it is called again. It refuses with
// CodeNotFound and CodeInvalid, and with CodeForbidden a token that would end what an operator
// may. What is suspended already keeps its time.
func (s *Suspensions) Suspend(ctx context.Context, kind SuspensionKind, id, reason, by string) (Suspension, error) {
	if reason = strings.TrimSpace(reason); !validText(reason, maxReason) {
		return Suspension{}, noReason()
	}
	row, err := updated(ctx, s.core, func(tx *txn) (Suspension, error) {
		row, err := tx.suspendable(kind, id)
		if err != nil {
			return Suspension{}, err
		}
		if err := tx.mayEnd(row, by); err != nil {
			return Suspension{}, err
		}
		row.Reason, row.By, row.At = reason, by, tx.now.UTC()
		if before, found := get[Suspension](tx, keySuspended(row.Kind, row.ID)); found {
			row.At = before.At
		}
		tx.put(keySuspended(row.Kind, row.ID), row, 0)
		tx.audited = append(tx.audited, row.event("suspended"))
		return row, nil
	})
	if err != nil {
		return Suspension{}, err
	}
	return row, s.followAll(ctx, row)
}

// Resume takes a suspension back; whose it was have all they had, but for sessions: they sign
// in again, and programs, which cannot, go on. It refuses with
// CodeNotFound where there is none, and as Suspend does. Interrupted, it goes on when it is called
// again.
func (s *Suspensions) Resume(ctx context.Context, kind SuspensionKind, id, reason, by string) (Suspension, error) {
	if reason = strings.TrimSpace(reason); reason != "" && !validText(reason, maxReason) {
		return Suspension{}, noReason()
	}
	var none error
	row, err := updated(ctx, s.core, func(tx *txn) (Suspension, error) {
		row, err := tx.suspendable(kind, id)
		if err != nil && !IsRefusal(err, controlapi.CodeNotFound) {
			return Suspension{}, err
		}
		row.Kind, row.ID = kind, cmp.Or(row.ID, id) // what was removed meanwhile is found by its id
		there, found := get[Suspension](tx, keySuspended(kind, row.ID))
		if none = nil; !found {
			none = refuse(controlapi.CodeNotFound, "That is not suspended.")
			return row, nil
		}
		if err := tx.mayEnd(there, by); err != nil {
			return Suspension{}, err
		}
		tx.delete(keySuspended(kind, row.ID))
		there.Reason, there.By = reason, by
		tx.audited = append(tx.audited, there.event("resumed"))
		return there, nil
	})
	if err != nil {
		return Suspension{}, err
	}
	return row, cmp.Or(s.followAll(ctx, row), none)
}

// mayEnd refuses a program's token what is above it: suspending an operator, and bringing one back.
func (t *txn) mayEnd(row Suspension, by string) error {
	if !strings.HasPrefix(by, byToken) {
		return nil
	}
	for _, o := range each[Operator](t, keyOperator("")) {
		if row.Kind == SuspendAccount && row.ID == o.ID || row.Kind == SuspendAddress && row.ID == o.Email || row.Kind == SuspendDomain && withinDomain(o.Email, row.ID) {
			return refuse(controlapi.CodeForbidden, "That is an operator's account, or one is among them: a token may not suspend or resume it. The command line and /admin may.")
		}
	}
	return nil
}

// withinDomain says whether a mail address is of a domain, or of one below it.
func withinDomain(email, domain string) bool {
	_, of, _ := strings.Cut(email, "@")
	return of == domain || strings.HasSuffix(of, "."+domain)
}

// suspendable names what there is of a kind by an id, without reason and time.
func (t *txn) suspendable(kind SuspensionKind, id string) (row Suspension, err error) {
	row.Kind = kind
	if !mayBeSought(id, maxSuspendable) {
		return row, refuse(controlapi.CodeNotFound, "There is no such thing: its name is too long, or has invisible characters.")
	}
	switch kind {
	case SuspendAccount:
		a, found := t.accountCalled(id)
		if !found {
			return row, refuse(controlapi.CodeNotFound, "There is no such account.")
		}
		row.ID, row.Name = a.ID, a.Email
	case SuspendComputer:
		c, found := t.computerCalled(id)
		if !found {
			return row, refuse(controlapi.CodeNotFound, "There is no such computer.")
		}
		row.ID, row.Name = c.ID, c.Name
	case SuspendClient:
		c, found := client{}, false
		if id == controlapi.ReachClient {
			c, found = reachClient, true
		} else if IsClientID(id) {
			c, found = get[client](t, keyClient(id))
		}
		if !found {
			return row, noClient()
		}
		row.ID, row.Name = c.ID, c.Name
	case SuspendAddress:
		row.ID, err = ParseEmail(id)
		row.Name = row.ID
	case SuspendDomain:
		var email string
		if email, err = ParseEmail("any@" + strings.TrimPrefix(id, "@")); err != nil {
			return row, refuse(controlapi.CodeInvalid, "That does not look like the domain of e-mail addresses.")
		}
		row.ID = strings.TrimPrefix(email, "any@")
		row.Name = row.ID
	default:
		return row, refuse(controlapi.CodeInvalid, "What is suspended is an account, a computer, a client, an address or a domain.")
	}
	return row, err
}

// accountCalled is the account with an id or a mail address.
func (t *txn) accountCalled(id string) (a Account, found bool) {
	if email, err := ParseEmail(id); err == nil {
		return accountByEmail(t, email)
	}
	if len(id) > maxSought { // no key
		return a, false
	}
	return get[Account](t, keyAccount(id))
}

// computerCalled is the computer with an id or a short name.
func (t *txn) computerCalled(id string) (c computer, found bool) {
	if len(id) > maxSought { // no key
		return c, false
	}
	if c, found = get[computer](t, keyComputer(id)); found {
		return c, true
	}
	return computerByName(t, id)
}

// suspendedSince is since when mail addresses like this one are suspended, with their
// account where there is one (""): the earliest of what suspends it, zero for nothing.
func (t *txn) suspendedSince(accountID, email string) (since time.Time) {
	for _, row := range t.suspensionsOf(accountID, email) {
		since = earlier(since, row.At)
	}
	return since
}

// suspensionsOf are those that suspendedSince goes by.
func (t *txn) suspensionsOf(accountID, email string) []Suspension {
	keys := []string{keySuspended(SuspendAddress, email)}
	_, domain, _ := strings.Cut(email, "@")
	for more := true; more; _, domain, more = strings.Cut(domain, ".") {
		keys = append(keys, keySuspended(SuspendDomain, domain))
	}
	if accountID != "" {
		keys = append(keys, keySuspended(SuspendAccount, accountID))
	}
	return rowsAt[Suspension](t, keys...)
}

// earlier is the first of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// followAll has what a suspension is about follow it, that there is.
func (s *Suspensions) followAll(ctx context.Context, row Suspension) error {
	switch row.Kind {
	case SuspendAccount:
		return s.update(ctx, func(tx *txn) error { tx.followAccount(row.ID); return nil })
	case SuspendComputer:
		return s.update(ctx, func(tx *txn) error { tx.followComputer(row.ID); return nil })
	case SuspendClient:
		return s.inPages(ctx, keyClientGrants(row.ID), func(tx *txn, grantID string, _ []byte) {
			if g, found := get[grant](tx, keyGrant(grantID)); found {
				tx.touch(g.ComputerID)
			}
		})
	case SuspendAddress:
		return s.update(ctx, func(tx *txn) error {
			if a, found := accountByEmail(tx, row.ID); found {
				tx.followAccount(a.ID)
			}
			return nil
		})
	}
	indexed, err := viewed(ctx, s.core, func(tx *txn) (bool, error) { return tx.indexed(indexAccountBelow), nil })
	if err != nil {
		return err
	}
	prefix := keyAccountsBelow(row.ID)
	if !indexed {
		prefix = keyAccountEmail("")
	}
	return s.inPages(ctx, prefix, func(tx *txn, email string, value []byte) {
		if indexed || withinDomain(email, row.ID) {
			if id, ok := parsed[string](tx, value); ok {
				tx.followAccount(id)
			}
		}
	})
}

// inPages goes through all rows below a prefix, some in each transaction.
func (s *core) inPages(ctx context.Context, prefix string, do func(tx *txn, rest string, value []byte)) error {
	for after := ""; ; {
		items, err := updated(ctx, s, func(tx *txn) ([]kv.Item, error) {
			items := tx.scan(prefix, after, suspendAtOnce)
			for _, it := range items {
				do(tx, it.Key[len(prefix):], it.Value)
			}
			return items, nil
		})
		if err != nil || len(items) < suspendAtOnce {
			return err
		}
		after = items[len(items)-1].Key
	}
}

// suspendAtOnce bounds the rows of one transaction of inPages.
const suspendAtOnce = 100

// followAccount has an account, its computers and its places among the people of others
// say since when it is suspended.
func (t *txn) followAccount(id string) {
	a, found := get[Account](t, keyAccount(id))
	if !found {
		return
	}
	since := t.suspendedSince(a.ID, a.Email)
	if begins(since, a.Suspended) { // it is resumed: until now their browsers are told why
		for hash := range eachSession(t, id) {
			t.endSession(hash)
		}
	}
	if !a.Suspended.Equal(since) {
		a.Suspended = since
		t.put(keyAccount(id), a, 0)
	}
	for computerID := range below(t, keyMemberships(id)) {
		p, found := get[person](t, keyPerson(computerID, id))
		if found && !p.Suspended.Equal(since) {
			before := p
			if p.Suspended = since; begins(before.Suspended, since) {
				p.Epoch = laterEpoch(p.Epoch, t.now)
			}
			t.putPerson(computerID, before, p)
		}
		if p.Role == controlapi.RoleOwner {
			t.followComputer(computerID)
		}
	}
}

// followComputer is followAccount for one computer, which its owner's suspension ends, too.
func (t *txn) followComputer(id string) {
	c, found := get[computer](t, keyComputer(id))
	if !found {
		return
	}
	owner, _ := get[Account](t, keyAccount(c.OwnerID))
	own, _ := get[Suspension](t, keySuspended(SuspendComputer, id))
	since := earlier(owner.Suspended, own.At)
	if c.Suspended.Equal(since) {
		return
	}
	if begins(c.Suspended, since) {
		for _, p := range each[person](t, keyPersons(id)) {
			before := p
			p.Epoch = laterEpoch(p.Epoch, t.now)
			t.putPerson(id, before, p)
		}
	}
	c.Suspended = since
	t.put(keyComputer(id), c, 0)
	t.touch(id)
	t.suspended = append(t.suspended, suspendedComputer{id, since})
	t.put(keyEndedCredentials+suspensionEvent+endedEvent(t.version, id), id, endedMemory) // for the other nodes
}

// suspendedItself says whether a computer is suspended and not just its owner, though it may
// be removed.
func (t *txn) suspendedItself(computerID string) bool {
	_, found := get[Suspension](t, keySuspended(SuspendComputer, computerID))
	return found
}

// begins says whether a suspension begins: then sessions on computers end for good, at agents
// that know of no suspension, too.
func begins(was, since time.Time) bool { return was.IsZero() && !since.IsZero() }

// suspendedComputer is one whose suspension began, or ended where since is zero.
type suspendedComputer struct {
	id    string
	since time.Time
}

// suspensionEvent begins the names of events that are no ending of a credential.
const suspensionEvent = "suspension-"

// tellSuspended reports, as Config.OnSuspended says, how these computers are now.
func (s *Agents) tellSuspended(ctx context.Context, ids []string) error {
	if len(ids) == 0 || s.cfg.OnSuspended == nil {
		return nil
	}
	for some := range slices.Chunk(ids, kv.MaxRows) {
		keys := keysOf(some, keyComputer)
		now, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx *txn) (out []suspendedComputer, err error) {
			for _, id := range some {
				c, _ := get[computer](tx, keyComputer(id))
				out = append(out, suspendedComputer{id, c.Suspended})
			}
			return out, nil
		})
		if err != nil {
			return err
		}
		for _, c := range now {
			s.cfg.OnSuspended(c.id, c.since)
		}
	}
	return nil
}

// refuseSuspended is what is told of whatever the operator has ended.
func (t *txn) refuseSuspended() error {
	says := controlapi.Suspended{Ask: t.ask}.Sentence()
	refusal := controlapi.Refuse(controlapi.CodeSuspended, says)
	refusal.RetryAfter = suspendedFor
	return refusal
}

// suspendedFor is when a program may ask again for what is suspended: it may be resumed.
const suspendedFor = 5 * time.Minute

// refuseSuspendedClient refuses a client that is suspended.
func (t *txn) refuseSuspendedClient(id string) error {
	if _, found := get[Suspension](t, keySuspended(SuspendClient, id)); found {
		return t.refuseSuspended()
	}
	return nil
}

// refuseSuspendedAt refuses where a computer is suspended, or somebody who has a place there.
func (t *txn) refuseSuspendedAt(c computer, accountID string) error {
	p, _ := get[person](t, keyPerson(c.ID, accountID))
	if c.Suspended.IsZero() && p.Suspended.IsZero() {
		return nil
	}
	return t.refuseSuspended()
}

// Suspended is what people are told of what is suspended since then.
func (s *core) Suspended(since time.Time) controlapi.Suspended {
	return controlapi.Suspended{Since: since, Ask: s.abuseContact()}
}

// abuseContact is whom people are told to ask.
func (s *core) abuseContact() string { return cmp.Or(s.cfg.AbuseContact, s.cfg.AuthHostPort()) }

package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/kvtest"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Stopping(m)) }

// clock is a time that moves when a test says so.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a control plane in memory; the stores it runs on pass one suite.
type bench struct {
	*Service
	t      testing.TB
	made   Config // what it was made of
	clock  *clock
	store  *kvtest.Telling
	outbox *mail.Outbox
}

func newBench(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	return newBenchOn(t, "memory:", change...)
}

// newBenchOn is newBench on a store of its own.
func newBenchOn(t testing.TB, url string, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, clock: newClock()}
	store, err := kv.Open(t.Context(), url, kv.Options{Now: b.clock.Now})
	programs.Must(t, err)
	t.Cleanup(func() { store.Close() })
	b.store = kvtest.Tell(store)
	b.outbox = mail.NewOutbox(b.store, b.clock.Now)
	cfg := Config{
		Store: b.store, Naming: Naming{Domain: "localhost", AuthHost: "control.localhost", PublicPort: 8443},
		Mail: b.outbox, Now: b.clock.Now,
		Relays: []controlapi.Relay{{Address: "127.0.0.1:8443", ServerName: "control.localhost"}},
	}
	for _, f := range change {
		f(&cfg)
	}
	b.made, b.Service = cfg, ok[*Service](t)(New(cfg))
	return b
}

// node is another one on the same store.
func (b *bench) node(change ...func(*Config)) *Service {
	b.t.Helper()
	cfg := b.made
	for _, f := range change {
		f(&cfg)
	}
	return ok[*Service](b.t)(New(cfg))
}

// watch is somebody who is woken by each change of a computer, and looks at nothing.
type watch struct {
	woke    atomic.Bool
	unwatch func()
}

func watchAt(node *Service, computerID string) *watch {
	w := &watch{}
	w.unwatch = node.Feed.Watch(computerID, func() { w.woke.Store(true) })
	return w
}

func (b *bench) watch(computerID string) *watch { return watchAt(b.Service, computerID) }

// woken says whether that happened since the last time.
func (w *watch) woken() bool { return w.woke.Swap(false) }

// note has a computer be seen.
func (b *bench) note(id string, at time.Time) { b.Feed.Seen.Note(id, at) }

// change writes rows behind the service's back.
func (b *bench) change(rows func(tx *txn)) {
	b.t.Helper()
	programs.Must(b.t, b.update(b.t.Context(), func(tx *txn) error { rows(tx); return nil }))
}

// keep writes a row behind the service's back, for ever, and drop takes rows away.
func (b *bench) keep(key string, row any) {
	b.t.Helper()
	b.change(func(tx *txn) { tx.put(key, row, 0) })
}

// keepAll is keep of many rows.
func (b *bench) keepAll(rows map[string]any) {
	b.t.Helper()
	b.change(func(tx *txn) {
		for key, row := range rows {
			tx.put(key, row, 0)
		}
	})
}

// keepGrants has grants be given behind the service's back.
func (b *bench) keepGrants(all ...grant) {
	b.t.Helper()
	b.change(func(tx *txn) {
		for _, g := range all {
			tx.putGrant(g)
		}
	})
}

func (b *bench) drop(keys ...string) { b.t.Helper(); b.change(func(tx *txn) { tx.delete(keys...) }) }

// edit changes a row as it is stored.
func edit[T any](b *bench, key string, to func(row *T)) {
	b.t.Helper()
	row := rowAt[T](b, key)
	to(&row)
	b.keep(key, row)
}

// bound has somebody sign in by a provider, too.
func (b *bench) bound(account Account, by login) {
	b.t.Helper()
	b.change(func(tx *txn) { programs.Must(b.t, b.bind(tx, anID(), account, by, Asker{})) })
}

// anID and aSecret have the form of those that are given out, and are nobody's.
func anID() string { return strings.ToLower(rand.Text()) }

func aSecret() string { return (rand.Text() + rand.Text())[:43] }

// askedTx is a transaction that says before each call which it is, and of what keys: the
// error is the answer.
type askedTx struct {
	kv.Tx
	asked func(call string, keys ...string) error
}

func (t askedTx) Get(key string) ([]byte, error) {
	if err := t.asked("Get", key); err != nil {
		return nil, err
	}
	return t.Tx.Get(key)
}

func (t askedTx) GetAll(keys ...string) ([][]byte, error) {
	if err := t.asked("GetAll", keys...); err != nil {
		return nil, err
	}
	return t.Tx.GetAll(keys...)
}

func (t askedTx) Put(key string, value []byte, ttl time.Duration) error {
	if err := t.asked("Put", key); err != nil {
		return err
	}
	return t.Tx.Put(key, value, ttl)
}

func (t askedTx) Delete(key string) error {
	if err := t.asked("Delete", key); err != nil {
		return err
	}
	return t.Tx.Delete(key)
}

func (t askedTx) Scan(prefix, after string, limit int) ([]kv.Item, error) {
	if err := t.asked("Scan", prefix); err != nil {
		return nil, err
	}
	return t.Tx.Scan(prefix, after, limit)
}

// stored are all rows, by their keys.
func (b *bench) stored() map[string]string {
	b.t.Helper()
	rows := map[string]string{}
	programs.Must(b.t, b.store.Dump(b.t.Context(), func(row kv.Record) error { rows[row.Key] = string(row.Value); return nil }))
	return rows
}

// rowAt is the row at key, the zero one where there is none.
func rowAt[T any](b *bench, key string) T {
	b.t.Helper()
	return ok[T](b.t)(viewed(b.t.Context(), b.core, func(tx *txn) (T, error) { row, _ := get[T](tx, key); return row, nil }))
}

// rowOf is a person's row as it is stored.
func (b *bench) rowOf(computer, account string) person {
	b.t.Helper()
	return rowAt[person](b, keyPerson(computer, account))
}

// session is an open one, by its id ("" for one that is made up), and its token.
func (b *bench) session(id, account string, only ...string) (token string) {
	b.t.Helper()
	next := newEntry()
	b.change(func(tx *txn) {
		tx.openSession(next.hash, session{ID: cmp.Or(id, next.id), AccountID: account, Client: addressOf(home), Only: only})
	})
	return next.token
}

// changePerson writes a person's row as it is to be.
func (b *bench) changePerson(computerID, account string, to func(p *person)) {
	b.t.Helper()
	p := b.rowOf(computerID, account)
	to(&p)
	b.change(func(tx *txn) { tx.putPerson(computerID, p, p) })
}

// run runs the service until the test ends.
func (b *bench) run() { programs.Run(b.t, b.Run) }

// until waits for a condition on the store, looking after each Update.
func (b *bench) until(what string, is func() bool) {
	b.t.Helper()
	late := time.After(programs.Patience)
	for !is() {
		select {
		case <-b.store.Done:
		case <-late:
			b.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// rows counts the keys under a prefix.
func (b *bench) rows(prefix string) int {
	b.t.Helper()
	n := 0
	for key := range b.stored() {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}

func (b *bench) mails() []mail.Entry {
	b.t.Helper()
	return programs.Got(b.outbox.List(b.t.Context(), mail.OutboxSize))(b.t)
}

func (b *bench) owner() controlapi.Enrolled {
	b.t.Helper()
	return programs.Got(b.Computers.Ensure(b.t.Context(), "maya@example.com", "maya"))(b.t)
}

// joined invites somebody to apps of a computer, and takes the invitation.
func (b *bench) joined(computerID, email string, apps ...string) Account {
	b.t.Helper()
	p := ok[controlapi.Person](b.t)(b.People.Invite(b.t.Context(), computerID, controlapi.Invite{Email: email, Apps: apps}))
	ok[Accepted](b.t)(b.People.AcceptInvitation(b.t.Context(), b.invitation(email), "", home))
	return Account{ID: p.AccountID, Email: email}
}

// invitation is the token of the link that was mailed to an address last.
func (b *bench) invitation(email string) string {
	b.t.Helper()
	b.clock.Add(time.Millisecond) // so that mails have an order
	mails := b.mails()
	i := slices.IndexFunc(mails, func(m mail.Entry) bool { return m.To == email })
	u, err := url.Parse(mails[i].Links[0])
	if err != nil || !strings.HasPrefix(mails[i].Links[0], b.AuthURL()+PathInvitation+"?") {
		b.t.Fatalf("the mail is %+v", mails[i])
	}
	return u.Query().Get("token")
}

var (
	home     = netip.MustParseAddr("192.0.2.7")
	codeLine = regexp.MustCompile(`Your code: (\d{3} \d{3})`)
)

// mailed is what the newest sign-in mail to an address says.
func (b *bench) mailed(email string, nth int) (link, code string) {
	b.t.Helper()
	var found mail.Entry
	b.until("mail to "+email, func() bool {
		n := 0
		for _, m := range b.mails() {
			if m.To == email && m.Subject == "Your link to sign in" {
				if n++; n == 1 {
					found = m
				}
			}
		}
		return n >= nth
	})
	u, err := url.Parse(found.Links[0])
	if err != nil || !strings.HasPrefix(found.Links[0], b.AuthURL()+PathSignInLink+"?") {
		b.t.Fatalf("the link is %q", found.Links[0])
	}
	m := codeLine.FindStringSubmatch(found.Text)
	if m == nil {
		b.t.Fatalf("no code in %q", found.Text)
	}
	return u.Query().Get("token"), m[1]
}

// begin starts a sign-in and returns all three secrets of it.
func (b *bench) begin(email string, nth int) (browser, link, code string) {
	b.t.Helper()
	b.clock.Add(time.Millisecond) // so that mails have an order
	browser = programs.Got(b.SignIn.Begin(b.t.Context(), email, Browser{Client: network(nth)}, ""))(b.t)
	link, code = b.mailed(email, nth)
	return browser, link, code
}

func wantRefusal(t testing.TB, err error, code string) {
	t.Helper()
	if !IsRefusal(err, code) {
		t.Fatalf("got %v, want a refusal %q", err, code)
	}
}

func ok[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		programs.Must(t, err)
		return v
	}
}

// Snapshot is that of a computer whose credential the test does not have.
func (s *Agents) Snapshot(ctx context.Context, computerID string) (controlapi.Snapshot, error) {
	reading := s.reading(computerID)
	return viewedOf(ctx, s.core, snapshotRows(computerID), func(tx *txn) (controlapi.Snapshot, error) {
		c, err := find[computer](tx, keyComputer(computerID), credentialUnknown())
		if err != nil {
			return controlapi.Snapshot{}, err
		}
		return reading.snapshot(tx, c)
	})
}

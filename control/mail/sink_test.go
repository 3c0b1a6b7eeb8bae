package mail

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/test/mailserver"
	"porchlight/test/programs"
)

const thePassword = "correct-horse"

// sink is a real mail server that ends with its test.
type sink struct {
	*mailserver.Server
	t testing.TB
}

func newSink(t testing.TB) *sink {
	s := &sink{mailserver.New(), t}
	s.Password = thePassword
	t.Cleanup(s.Stop)
	return s
}

func (s *sink) start(implicit bool) *sink {
	s.t.Helper()
	programs.Must(s.t, s.Start(implicit))
	return s
}

// queueRig is a queue on a real store, its clock moved by hand.
type queueRig struct {
	*SMTP
	t     testing.TB
	store kv.Store
	clock *time.Time
	logs  *bytes.Buffer
}

func newQueue(t testing.TB, s *sink, url string) *queueRig {
	t.Helper()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := &queueRig{t: t, clock: &now, logs: &bytes.Buffer{}}
	clock := func() time.Time { return *r.clock }
	store := programs.Got(kv.Open(t.Context(), "memory:", kv.Options{Now: clock}))(t)
	t.Cleanup(func() { store.Close() })
	r.store = store
	r.SMTP = programs.Got(NewSMTP(store, SMTPConfig{
		Server: strings.ReplaceAll(url, "ADDR", s.Address), From: "Porchlight <porchlight@control.example.net>", RootCAs: s.Roots, Now: clock,
		Log: slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}))(t)
	return r
}

func (r *queueRig) put(id string, m Message) {
	r.t.Helper()
	programs.Must(r.t, r.store.Update(r.t.Context(), func(tx kv.Tx) error { return r.Put(tx, id, m) }))
}

func (r *queueRig) waiting() int { r.t.Helper(); return rows(r.t, r.store, queuePrefix) }

// rows counts the rows under a prefix, up to 1,000.
func rows(t testing.TB, store kv.Store, prefix string) (n int) {
	t.Helper()
	err := store.View(t.Context(), func(tx kv.Tx) error {
		items, err := tx.Scan(prefix, "", 1000)
		n = len(items)
		return err
	})
	programs.Must(t, err)
	return n
}

func (r *queueRig) after(d time.Duration) {
	*r.clock = r.clock.Add(d)
	r.deliverDue(r.t.Context())
}

// untilDialled lets the longest wait for a mail server go by.
func (r *queueRig) untilDialled() { r.after(slowestRedial) }

func anInvitation(t testing.TB) Message {
	t.Helper()
	m := programs.Got(Invitation{
		To: "bob@example.com", Owner: "maya@example.com", Until: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC),
		Apps: []App{{Label: "Notizbücher 日記", Name: "notes"}}, Link: "https://control.example.net/invitation?token=" + strings.Repeat("abc_", 20),
	}.Message())(t)
	return m
}

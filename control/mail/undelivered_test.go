package mail

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"porchlight/control/kv"
	"porchlight/test/programs"
)

// mostFailures is how many are kept.
const mostFailures = failuresSize

// What the server refuses for good, and what got too old, is noted for the
// operator, without its text and its links; the rest waits in sight.
func TestUndeliveredMailsAreSeen(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	s.OnRcpt = func(to string) error {
		switch {
		case strings.HasPrefix(to, "gone@"):
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
		case strings.HasPrefix(to, "full@"), strings.HasPrefix(to, "late@"):
			return &smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 2, 2}, Message: "mailbox full"}
		}
		return nil
	}
	s.start(false)
	r := newQueue(t, s, "smtp://ADDR")
	began := *r.clock
	for _, who := range []string{"gone", "full", "late", "bob"} {
		m := anInvitation(t)
		m.To = who + "@example.com"
		if who == "late" {
			m.Life = 15 * time.Minute
		}
		r.put(who, m)
	}
	waiting, err := Queued(t.Context(), r.store)
	if err != nil || len(waiting) != 4 || !waiting[0].At.Equal(began) || !waiting[0].Next.Equal(began) {
		t.Fatalf("before the first try wait %+v, %v", waiting, err)
	}
	r.after(0)
	r.after(15 * time.Minute) // the late one is dropped, the full one is put off again

	failed, err := Failures(t.Context(), r.store)
	if err != nil || len(failed) != 2 {
		t.Fatalf("failed are %+v, %v", failed, err)
	}
	if f := failed[0]; f.To != "late@example.com" || f.Reason != reasonExpired || f.Code != 452 || f.Tries != 1 || !f.FailedAt.Equal(*r.clock) {
		t.Errorf("the one too old: %+v", f)
	}
	if f := failed[1]; f.To != "gone@example.com" || f.Reason != ReasonRefused || f.Code != 550 || f.Tries != 1 || !f.At.Equal(began) ||
		!strings.HasPrefix(f.Subject, "maya@example.com shares") {
		t.Errorf("the one refused: %+v", f)
	}
	waiting, err = Queued(t.Context(), r.store)
	if err != nil || len(waiting) != 1 || waiting[0].To != "full@example.com" || waiting[0].Tries != 2 || !waiting[0].Next.After(*r.clock) {
		t.Errorf("waiting are %+v, %v", waiting, err)
	}
	if got, want := r.Stats(), (Stats{Delivered: 1, Refused: 1, Expired: 1, PutOff: 3}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if err := r.store.View(t.Context(), func(tx kv.Tx) error {
		items, err := tx.Scan(failures.prefix, "", 10)
		for _, it := range items {
			if strings.Contains(string(it.Value), "token=") {
				t.Errorf("%s holds the link: %s", it.Key, it.Value)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A mail whose time ends while it waits for its next try is given up then, even
// where nobody has looked for old mails since.
func TestMailIsOverWhenItIsTakenUp(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	s.OnRcpt = func(string) error {
		return &smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 2, 2}, Message: "mailbox full"}
	}
	s.start(false)
	r := newQueue(t, s, "smtp://ADDR")
	m := anInvitation(t)
	m.Life = 30 * time.Second
	r.put("id1", m)
	r.after(0)
	r.after(m.Life) // less than expireEvery
	if got, want := r.Stats(), (Stats{Expired: 1, PutOff: 1}); got != want || r.waiting() != 0 {
		t.Errorf("counted %+v, want %+v; %d wait", got, want, r.waiting())
	}
}

// The list of failures is bounded, newest first.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	r := newQueue(t, newSink(t).start(false), "smtp://ADDR")
	for n := range mostFailures + 3 {
		programs.Must(t, r.store.Update(t.Context(), func(tx kv.Tx) error {
			return putFailure(tx, fmt.Sprint(n), "", Failure{To: fmt.Sprint(n), FailedAt: r.clock.Add(time.Duration(n) * time.Second)})
		}))
	}
	list, err := Failures(t.Context(), r.store)
	if err != nil || len(list) != mostFailures || list[0].To != fmt.Sprint(mostFailures+2) || list[mostFailures-1].To != "3" {
		t.Errorf("%d failures, %v", len(list), err)
	}
	if n := rows(t, r.store, failures.prefix); n != mostFailures {
		t.Errorf("%d failures are stored", n)
	}
}

// A server that is away, then back, is counted; no mail is put off by it.
func TestUnreachableIsCounted(t *testing.T) {
	t.Parallel()
	s := newSink(t).start(false)
	r := newQueue(t, s, "smtp://ADDR")
	s.Stop()
	r.put("id1", anInvitation(t))
	for range 3 {
		r.untilDialled()
	}
	s.start(false)
	r.untilDialled()
	if got, want := r.Stats(), (Stats{Delivered: 1, Unreachable: 3}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// TestUndeliveredIsTold: a computer's owner is told of each address once, newest
// first and bounded, of no other computer's, and no more of one written to anew.
func TestUndeliveredIsTold(t *testing.T) {
	t.Parallel()
	r := newQueue(t, newSink(t).start(false), "smtp://ADDR")
	list := func(computer string) (out []string) {
		t.Helper()
		programs.Must(t, r.store.View(t.Context(), func(tx kv.Tx) (err error) {
			out, err = Undelivered(tx, computer)
			return err
		}))
		return out
	}
	for n := range toldSize + 3 {
		for i, about := range []string{"one", "one", ""} {
			programs.Must(t, r.store.Update(t.Context(), func(tx kv.Tx) error {
				at := r.clock.Add(time.Duration(n) * time.Second)
				return putFailure(tx, fmt.Sprint(n, i), about, Failure{To: fmt.Sprint(n / 2), FailedAt: at})
			}))
		}
	}
	if got := list("one"); len(got) == 0 || len(got) > 20 || got[0] != "11" || got[1] != "10" {
		t.Errorf("told of %v", got)
	}
	if got := list("another"); got != nil {
		t.Errorf("another is told of %v", got)
	}
	programs.Must(t, r.store.Update(t.Context(), func(tx kv.Tx) error { return ForgetUndelivered(tx, "one", "11") }))
	if got := list("one"); len(got) == 0 || got[0] != "10" {
		t.Errorf("written to anew, and told of %v", got)
	}
}

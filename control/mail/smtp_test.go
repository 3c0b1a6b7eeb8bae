package mail

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset"
	gomessage "github.com/emersion/go-message/mail"
	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"

	"porchlight/control/kv"
	"porchlight/test/mailserver"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What arrives, over STARTTLS with credentials, is what was composed, and the
// headers say who may be answered.
func TestSMTPDelivers(t *testing.T) {
	t.Parallel()
	for name, implicit := range map[string]bool{"smtp://maya:" + thePassword + "@ADDR": false, "smtps://maya:" + thePassword + "@ADDR": true} {
		s := newSink(t)
		s.User = "maya"
		s.start(implicit)
		r := newQueue(t, s, name)
		m := anInvitation(t)
		r.put("id1", m)
		r.after(0)
		list := s.Mails()
		if len(list) != 1 || r.waiting() != 0 || !list[0].Secured {
			t.Fatalf("%s: %+v, %d waiting\n%s", name, list, r.waiting(), r.logs)
		}
		got := list[0]
		if got.From != "porchlight@control.example.net" || got.To[0] != "bob@example.com" {
			t.Errorf("the envelope is %s to %s", got.From, got.To[0])
		}
		mr := programs.Got(gomessage.CreateReader(bytes.NewReader(got.Data)))(t)
		subject, err1 := mr.Header.Subject()
		from, err2 := mr.Header.AddressList("From")
		to, err3 := mr.Header.AddressList("To")
		reply, err4 := mr.Header.AddressList("Reply-To")
		date, err5 := mr.Header.Date()
		id, err6 := mr.Header.MessageID()
		programs.Must(t, err1, err2, err3, err4, err5, err6)
		if subject != m.Subject || len(from) != 1 || from[0].Name != "Porchlight" || len(to) != 1 || to[0].Address != "bob@example.com" ||
			len(reply) != 1 || reply[0].Address != "maya@example.com" || !date.Equal(*r.clock) || id != "id1@control.example.net" ||
			mr.Header.Get("Auto-Submitted") != "auto-generated" {
			t.Errorf("the headers are %v", mr.Header)
		}
		parts := map[string]string{}
		for {
			p, err := mr.NextPart()
			if errors.Is(err, io.EOF) {
				break
			}
			programs.Must(t, err)
			kind, _, _ := p.Header.(*gomessage.InlineHeader).ContentType()
			body := programs.Got(io.ReadAll(p.Body))(t)
			parts[kind] = strings.ReplaceAll(string(body), "\r\n", "\n")
		}
		if len(parts) != 2 || strings.TrimSpace(parts["text/plain"]) != strings.TrimSpace(m.Text) || strings.TrimSpace(parts["text/html"]) != strings.TrimSpace(m.HTML) {
			t.Errorf("the parts are %q", parts)
		}
		if e, err := message.Read(bytes.NewReader(got.Data)); err != nil || !strings.HasPrefix(e.Header.Get("Content-Type"), "multipart/alternative") {
			t.Errorf("the mail is %v, %v", e.Header.Get("Content-Type"), err)
		}
	}
}

// A server that is away for an hour loses nothing and costs no mail a try.
func TestSMTPDownForAnHour(t *testing.T) {
	t.Parallel()
	s := newSink(t).start(false)
	r := newQueue(t, s, "smtp://ADDR")
	s.Stop()
	for n := range 5 {
		r.put(fmt.Sprint(n), anInvitation(t))
	}
	for range 60 {
		r.after(time.Minute)
	}
	if r.waiting() != 5 || len(s.Mails()) != 0 {
		t.Fatalf("%d wait, %d arrived", r.waiting(), len(s.Mails()))
	}
	s.start(false)
	r.untilDialled()
	ids := map[string]bool{}
	for _, m := range s.Mails() {
		e := programs.Got(message.Read(bytes.NewReader(m.Data)))(t)
		ids[e.Header.Get("Message-Id")] = true
	}
	if len(s.Mails()) != 5 || len(ids) != 5 || r.waiting() != 0 {
		t.Errorf("%d arrived, %d of them different, %d wait\n%s", len(s.Mails()), len(ids), r.waiting(), r.logs)
	}
}

// Weakness: mails whose time is over while the server is still away end with their
// rows, and nobody hears of it. Checked: they are given up when it is time, are
// on the operator's list and counted, whether the server ever comes back or not.
func TestSMTPDownForTooLong(t *testing.T) {
	t.Parallel()
	s := newSink(t).start(false)
	r := newQueue(t, s, "smtp://ADDR")
	s.Stop()
	const many = 2 * expireAtOnce
	for n := range many {
		r.put(fmt.Sprint(n), anInvitation(t))
	}
	short := anInvitation(t)
	short.Life = 15 * time.Minute
	r.put("short", short)
	failed := func() []Failure {
		return programs.Got(Failures(t.Context(), r.store))(t)
	}
	r.after(15*time.Minute - time.Second)
	if len(failed()) != 0 || r.waiting() != many+1 {
		t.Errorf("given up too early: %v", failed())
	}
	for range 30 {
		r.after(time.Hour)
		if len(failed()) == 1 && r.waiting() != many {
			t.Fatalf("%d wait", r.waiting())
		}
	}
	if list := failed(); len(list) != many+1 || list[0].Reason != reasonExpired || list[0].To != "bob@example.com" {
		t.Errorf("%d are on the list: %+v", len(list), list[:min(1, len(list))])
	}
	if r.waiting() != 0 || r.Stats().Expired != many+1 {
		t.Errorf("%d wait; %+v", r.waiting(), r.Stats())
	}
}

// Wrong credentials, a certificate that does not fit and a server without TLS
// keep the mails waiting; no password is sent, and none is logged.
func TestSMTPServerThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		url   string
		set   func(*sink)
		roots bool
	}{
		"wrong password": {"smtp://maya:wrong-" + thePassword + "@ADDR", func(s *sink) { s.User = "maya" }, true},
		"no auth there":  {"smtp://ADDR?starttls=required", func(s *sink) { s.User = "maya" }, true},
		"no STARTTLS":    {"smtp://maya:" + thePassword + "@ADDR", func(s *sink) { s.NoTLS = true }, true},
		// Somebody in between could take STARTTLS out of what the server offers.
		"no STARTTLS, and no password to lose": {"smtp://ADDR?starttls=required", func(s *sink) { s.NoTLS = true }, true},
		"auth wanted for a recipient": {"smtp://ADDR", func(s *sink) {
			s.OnRcpt = func(string) error { return &smtp.SMTPError{Code: 530, Message: "authentication required"} }
		}, true},
		"unknown issuer": {"smtp://maya:" + thePassword + "@ADDR", func(s *sink) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t)
			tt.set(s)
			s.start(false)
			r := newQueue(t, s, tt.url)
			if !tt.roots {
				r.roots = x509.NewCertPool()
			}
			r.put("id1", anInvitation(t))
			for range 3 {
				r.untilDialled()
			}
			if r.waiting() != 1 || len(s.Mails()) != 0 {
				t.Errorf("%d wait, %d arrived", r.waiting(), len(s.Mails()))
			}
			if logs := r.logs.String(); strings.Contains(logs, thePassword) || strings.Contains(logs, "abc_") || strings.Contains(logs, "bob@") ||
				!strings.Contains(logs, "level=") {
				t.Errorf("the log is\n%s", logs)
			}
		})
	}
}

// 4xx is tried again, 5xx is dropped, and one bad mail does not hold up others.
func TestSMTPAnswers(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	busy := true
	s.OnRcpt = func(to string) error {
		switch {
		case strings.HasPrefix(to, "gone@"):
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no <gone@example.com> here"}
		case strings.HasPrefix(to, "grey@") && busy:
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later, grey@example.com"}
		}
		return nil
	}
	s.start(false)
	r := newQueue(t, s, "smtp://ADDR")
	for _, who := range []string{"gone", "grey", "bob"} {
		m := anInvitation(t)
		m.To = who + "@example.com"
		r.put(who, m)
	}
	r.after(0)
	if list := s.Mails(); len(list) != 1 || list[0].To[0] != "bob@example.com" || r.waiting() != 1 {
		t.Fatalf("%d arrived, %d wait\n%s", len(list), r.waiting(), r.logs)
	}
	for range 10 {
		r.after(firstRetry)
	}
	busy = false
	r.after(slowestRetry)
	if list := s.Mails(); len(list) != 2 || list[1].To[0] != "grey@example.com" || r.waiting() != 0 {
		t.Fatalf("%d arrived, %d wait\n%s", len(list), r.waiting(), r.logs)
	}
	if logs := r.logs.String(); strings.Contains(logs, "@example.com") || !strings.Contains(logs, "code=550") || !strings.Contains(logs, "code=451") {
		t.Errorf("the log is\n%s", logs)
	}
}

func TestSMTPGivesUp(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	s.OnMail = func(mailserver.Mail) error { return &smtp.SMTPError{Code: 452, Message: "full"} }
	s.start(false)
	r := newQueue(t, s, "smtp://ADDR")
	short := anInvitation(t)
	short.Life = 15 * time.Minute
	r.put("short", short)
	r.put("long", anInvitation(t))
	r.after(14 * time.Minute)
	if r.waiting() != 2 {
		t.Fatalf("%d wait", r.waiting())
	}
	r.after(time.Minute)
	if r.waiting() != 1 {
		t.Errorf("a mail of no use any more is still kept")
	}
	for range 22 {
		r.after(time.Hour)
	}
	if r.waiting() != 1 {
		t.Errorf("given up before a day was over")
	}
	for range 2 {
		r.after(slowestRetry)
	}
	if r.waiting() != 0 || len(s.Mails()) != 0 || strings.Count(r.logs.String(), "given up") != 2 {
		t.Errorf("%d wait, %d arrived\n%s", r.waiting(), len(s.Mails()), r.logs)
	}
}

// Weakness: a process dies, or loses the connection, with a mail in its hands.
// Checked: after the lease it is delivered.
func TestSMTPDiesWithAMailInHand(t *testing.T) {
	t.Parallel()
	s := newSink(t).start(false)
	r := newQueue(t, s, "smtp://ADDR")
	r.put("id1", anInvitation(t))
	m, found, err := r.takeNext(t.Context())
	if err != nil || !found {
		t.Fatal(found, err)
	}
	r.after(lease - time.Second) // another process: the mail is held
	if len(s.Mails()) != 0 {
		t.Fatal("a mail was delivered that another process held")
	}
	r.after(time.Second)
	if len(s.Mails()) != 1 || r.waiting() != 0 {
		t.Fatalf("%d arrived, %d wait", len(s.Mails()), r.waiting())
	}
	// The first one wakes up again and was too late.
	if err := r.note(t.Context(), m, outcome{broken: true}); err != nil || r.waiting() != 0 {
		t.Errorf("%v, %d wait", err, r.waiting())
	}
}

func TestSMTPRefusesHeaderInjection(t *testing.T) {
	t.Parallel()
	s := newSink(t).start(false)
	r := newQueue(t, s, "smtp://ADDR")
	for name, change := range map[string]func(*Message){
		"line in the subject":   func(m *Message) { m.Subject = "x\r\nBcc: eve@example.com" },
		"bare newline":          func(m *Message) { m.Subject = "x\nBcc: eve@example.com" },
		"unicode line":          func(m *Message) { m.Subject = "x\u2028y" },
		"two recipients":        func(m *Message) { m.To = "bob@example.com, eve@example.com" },
		"line in the recipient": func(m *Message) { m.To = "bob@example.com\r\nRCPT TO:<eve@example.com>" },
		"a display name":        func(m *Message) { m.ReplyTo = "Eve <eve@example.com>" },
		"line in the reply":     func(m *Message) { m.ReplyTo = "eve@example.com\r\nBcc: x@example.com" },
		"no recipient":          func(m *Message) { m.To = "" },
	} {
		m := anInvitation(t)
		change(&m)
		if err := r.store.Update(t.Context(), func(tx kv.Tx) error { return r.Put(tx, "id", m) }); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if r.waiting() != 0 {
		t.Errorf("%d mails were kept", r.waiting())
	}
	for _, from := range []string{"", "nobody", "A <a@example.com>, b@example.com", "A\r\nBcc: b@example.com <a@example.com>"} {
		if _, err := NewSMTP(r.store, SMTPConfig{Server: "smtp://127.0.0.1", From: from}); err == nil {
			t.Errorf("the sender %q was taken", from)
		}
	}
}

// askedOnce is a store that counts transactions, and reads of one statement.
type askedOnce struct {
	kv.Store
	transactions, statements atomic.Int64
}

func (s *askedOnce) View(ctx context.Context, fn func(kv.Tx) error) error {
	s.transactions.Add(1)
	return s.Store.View(ctx, fn)
}

func (s *askedOnce) Update(ctx context.Context, fn func(kv.Tx) error) error {
	s.transactions.Add(1)
	return s.Store.Update(ctx, fn)
}

func (s *askedOnce) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	s.statements.Add(1)
	return s.Store.ViewOf(ctx, rows, fn)
}

// Weakness: a node asked twice a second whether a mail was due, though it had put none.
// Checked: in an hour with nothing to send there are two looks a minute, a mail that waits
// for later is looked for when it is due, and one that a node left which ended, within half
// a minute.
func TestFewLooksForMails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := programs.Got(kv.Open(t.Context(), "memory:", kv.Options{Now: time.Now}))(t)
		defer memory.Close()
		store := &askedOnce{Store: memory}
		s, err := NewSMTP(store, SMTPConfig{Server: "smtp://127.0.0.1:1", From: "porchlight@control.example.net", Now: time.Now})
		programs.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		passes := func(d time.Duration) int64 {
			synctest.Wait()
			before := store.statements.Load()
			time.Sleep(d)
			synctest.Wait()
			return store.statements.Load() - before
		}
		if n := passes(time.Hour); n > 120 || store.transactions.Load() > 0 {
			t.Errorf("%d looks in an hour, and %d transactions", n, store.transactions.Load())
		}
		put := func(id string, due time.Time) {
			err := memory.Update(t.Context(), func(tx kv.Tx) error {
				return putQueued(tx, id, queued{Message: anInvitation(t), PutAt: time.Now()}, due)
			})
			programs.Must(t, err)
		}
		// Nothing listens there, so what is tried shows as a server that is away.
		put("later", time.Now().Add(40*time.Second))
		s.Look(true)
		if passes(40*time.Second - time.Millisecond); s.away.Load() != 0 {
			t.Error("it was tried before it was due")
		}
		if passes(time.Millisecond + lookAgain); s.away.Load() != 1 {
			t.Error("it was not tried when it was due")
		}
		programs.Must(t, memory.Update(t.Context(), func(tx kv.Tx) error { return tx.Delete(firstKey(t, tx)) }))
		passes(slowestRedial)
		away := s.away.Load()
		put("left", time.Now())
		s.Look(false) // the node that put it would deliver it
		if passes(lookEvery); s.away.Load() == away {
			t.Error("what a node left was not tried")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func firstKey(t *testing.T, tx kv.Tx) string {
	items, err := tx.Scan(queuePrefix, "", 1)
	if err != nil || len(items) != 1 {
		t.Fatal(items, err)
	}
	return items[0].Key
}

// Weakness: a whole transaction looked whether a mail was due. Checked:
// with nothing due, and a mail that waits for later, a look is one statement.
func TestLookForMailsIsOneStatement(t *testing.T) {
	t.Parallel()
	r := newQueue(t, newSink(t).start(false), "smtp://ADDR")
	r.deliverDue(t.Context()) // also gives up old ones, now and then
	later := r.clock.Add(time.Hour)
	programs.Must(t, r.store.Update(t.Context(), func(tx kv.Tx) error { return putQueued(tx, "id", queued{Message: anInvitation(t)}, later) }))
	store := &askedOnce{Store: r.store}
	r.SMTP.store = store
	for range 10 {
		r.deliverDue(t.Context())
	}
	if store.transactions.Load() != 0 || store.statements.Load() != 10 {
		t.Errorf("ten looks were %d transactions and %d statements", store.transactions.Load(), store.statements.Load())
	}
}

// Run sends at once what it hears was put here, and ends.
func TestSMTPRuns(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	got := make(chan struct{}, 1)
	s.OnMail = func(mailserver.Mail) error { got <- struct{}{}; return nil }
	s.start(false)
	r := newQueue(t, s, "smtp://ADDR")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for n := range 3 {
		r.put(fmt.Sprint(n), anInvitation(t))
		r.Look(true)
		select {
		case <-got:
		case <-time.After(programs.Patience):
			t.Fatal("waited in vain for the mail")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if r.waiting() != 0 {
		t.Errorf("%d wait", r.waiting())
	}
}

// A server that hangs does not keep Run from ending.
func TestSMTPEndsWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	hanging, release := make(chan struct{}), make(chan struct{})
	s.OnMail = func(mailserver.Mail) error { close(hanging); <-release; return errors.New("gone") }
	t.Cleanup(func() { close(release) })
	s.start(false)
	r := newQueue(t, s, "smtp://ADDR")
	r.put("id1", anInvitation(t))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	<-hanging
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if r.waiting() != 1 {
		t.Errorf("%d wait", r.waiting())
	}
}

package mail

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/mail"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"porchlight/control/kv"
	"porchlight/internal/broadcast"
)

// Delivery over SMTP.
const (
	// giveUpAfter is how long delivery of a mail is tried.
	giveUpAfter = 24 * time.Hour

	// lookEvery is how often a node looks for due mails that it knows nothing of: those of
	// a node that ended before it could deliver them.
	lookEvery     = 30 * time.Second
	lookAgain     = 500 * time.Millisecond // at least
	expireEvery   = time.Minute
	firstRetry    = 10 * time.Second // of one mail; doubles
	slowestRetry  = time.Hour
	firstRedial   = 5 * time.Second // of a server that does not answer; doubles
	slowestRedial = 5 * time.Minute
	stopWithin    = 3 * time.Second // of a mail under way when Run is to end
)

// SMTPConfig of an SMTP queue. Server and From are required.
type SMTPConfig struct {
	// Server is smtp://user:password@host:587, where STARTTLS is required, or
	// smtps://user:password@host:465. A host on the loopback interface without
	// credentials needs no encryption. The password may be left out of it.
	Server   string
	Password string // of the user in Server, unless it is there
	// From is what mails come from: an address, with a display name or without.
	From    string
	RootCAs *x509.CertPool // that the server's certificate is checked with; nil means the system's
	Now     func() time.Time
	Log     *slog.Logger
}

// SMTP is a Queue that hands mails to a server.
//
// A mail is kept in the store until the server has answered for it, so neither
// a restart nor a server that is away loses one. It is delivered at least once:
// twice only when this process, or the connection, ends between the server's
// having taken it and that being noted. Both copies then have the same
// Message-ID, and the link in them works once. Several nodes may share the store;
// a process that takes a mail up has it for lease.
//
// While the server cannot be reached, refuses the credentials or has no TLS,
// mails wait, and only connecting is retried. A mail the server puts off (4xx) is
// tried again, later each time, up to giveUpAfter or its own Life; one it refuses
// (5xx for the recipient or the content) is given up. What is given up is logged
// without address or content, counted (Stats), and noted for the operator
// (Failures).
type SMTP struct {
	store  kv.Store
	now    func() time.Time
	log    *slog.Logger
	server server
	from   *mail.Address
	domain string // of from
	roots  *x509.CertPool
	look   chan struct{} // has room for one: a mail may have been put here

	givenUp func(ctx context.Context, about string) // see OnGivenUp; nil for nobody

	delivered, refused, expired, putOff, away atomic.Uint64 // see Stats

	// Of the goroutine of Run.
	redialAt time.Time
	expireAt time.Time
	failures int
}

// NewSMTP makes the queue, which uses the keys under "mail/" in store. It
// connects to nothing before Run.
func NewSMTP(store kv.Store, cfg SMTPConfig) (*SMTP, error) {
	srv, from, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	s := &SMTP{
		store: store, now: cfg.Now, log: cfg.Log, server: srv, from: from,
		domain: from.Address[strings.LastIndexByte(from.Address, '@')+1:], roots: cfg.RootCAs, look: make(chan struct{}, 1),
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.log = cmp.Or(s.log, slog.New(slog.DiscardHandler))
	return s, nil
}

// Check says in a sentence why mails cannot be delivered like this, if they cannot. It
// asks no server.
func (c SMTPConfig) Check() error {
	_, _, err := c.parse()
	return err
}

func (c SMTPConfig) parse() (server, *mail.Address, error) {
	srv, err := parseServer(c.Server, c.Password)
	if err != nil {
		return server{}, nil, err
	}
	from, err := mail.ParseAddress(c.From)
	if err != nil || oneLine("sender", from.Name, from.Address) != nil {
		return server{}, nil, fmt.Errorf("%q cannot be the sender of mails; write an address", c.From)
	}
	return srv, from, nil
}

// OnGivenUp has f told of each computer that a mail about was given up, which its owner is
// to hear of. Call it before Run.
func (s *SMTP) OnGivenUp(f func(ctx context.Context, computer string)) { s.givenUp = f }

func (s *SMTP) gaveUp(ctx context.Context, about string) {
	if s.givenUp != nil && about != "" {
		s.givenUp(ctx, about)
	}
}

// oneLine refuses text that would end a header, or hide in one.
func oneLine(what string, texts ...string) error {
	for _, text := range texts {
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) {
			return fmt.Errorf("the %s of a mail holds a line break or another control character", what)
		}
	}
	return nil
}

// valid refuses what no header may hold. Addresses are bare: a name, a second
// address or a comment in one is refused.
func (m Message) valid() error {
	if err := oneLine("subject", m.Subject); err != nil {
		return err
	}
	for _, address := range []string{m.To, m.ReplyTo} {
		if address == "" && address != m.To {
			continue
		}
		a, err := mail.ParseAddress(address)
		if err != nil || a.Address != address || a.Name != "" {
			return errors.New("an address of a mail is not in its canonical form")
		}
	}
	return nil
}

// Put takes a mail for delivery. It refuses one whose headers would hold more
// than they should.
func (s *SMTP) Put(tx kv.Tx, id string, m Message) error {
	if err := m.valid(); err != nil {
		return err
	}
	now := s.now()
	return putQueued(tx, id, queued{Message: m, PutAt: now.UTC()}, now)
}

// Look implements Queue. What another node put is for that node to deliver.
func (s *SMTP) Look(here bool) {
	if here {
		broadcast.Raise(s.look)
	}
}

// Run delivers what is due until ctx is done. A mail under way then has a few
// seconds left; what is cut off is tried again in the next run.
func (s *SMTP) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.look:
		case <-timer.C:
		}
		next := s.deliverDue(ctx)
		timer.Reset(min(max(next.Sub(s.now()), lookAgain), lookEvery))
	}
}

// deliverDue delivers the mails that are due, over one connection, and says when the next
// will be, as far as it knows; a zero time after what failed.
func (s *SMTP) deliverDue(ctx context.Context) (next time.Time) {
	if now := s.now(); now.Before(s.redialAt) && now.Before(s.expireAt) {
		return s.redialAt
	}
	var c *connection
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	for ctx.Err() == nil {
		due, there, err := s.due(ctx)
		if err != nil {
			s.logStore(ctx, "looking for mails to deliver failed", err)
			return time.Time{}
		}
		now := s.now()
		if !there {
			return now.Add(lookEvery)
		} else if now.Before(due) {
			return due
		}
		if !now.Before(s.expireAt) {
			s.expireAt = now.Add(expireEvery)
			if err := s.expire(ctx); err != nil {
				s.logStore(ctx, "giving up old mails failed", err)
			}
			continue
		}
		if now.Before(s.redialAt) {
			return s.redialAt
		}
		// Connect before taking a mail up: a server that is away costs none a try.
		if c == nil {
			if c, err = s.server.connect(ctx, s.domain, s.roots, stopWithin); err != nil {
				s.unreachable(ctx, err)
				return s.redialAt
			}
			s.reached()
		}
		m, found, err := s.takeNext(ctx)
		if err != nil {
			s.logStore(ctx, "taking a mail up failed", err)
			return time.Time{}
		}
		if !found {
			continue // another node was faster, or its time was over
		}
		result := s.send(c, m)
		// The outcome is noted even when ctx ended meanwhile.
		if err := s.note(context.WithoutCancel(ctx), m, result); err != nil {
			s.log.Error("noting the outcome of a mail failed; it may be sent again", "mail", m.id, "err", err)
			return time.Time{}
		}
		if result.broken {
			return time.Time{} // the connection; the next look makes another
		}
	}
	return time.Time{}
}

func (s *SMTP) unreachable(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	wait := backoff(firstRedial, slowestRedial, s.failures)
	s.failures++
	s.away.Add(1)
	s.redialAt = s.now().Add(wait)
	s.log.Error("the mail server cannot be used; mails wait", "host", s.server.host, "port", s.server.port,
		"retry_in", wait.Round(time.Second), "err", err)
}

func (s *SMTP) reached() {
	if s.failures > 0 {
		s.log.Info("the mail server can be used again", "host", s.server.host)
	}
	s.failures, s.redialAt = 0, time.Time{}
}

func (s *SMTP) logStore(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		s.log.Error(what, "err", err)
	}
}

// backoff is the wait after so many failures before: doubling, a fifth of it
// left to chance so that many do not come back together.
func backoff(first, slowest time.Duration, before int) time.Duration {
	d := min(first<<min(before, 16), slowest)
	return d - rand.N(d/5)
}

// outcome of handing a mail over.
type outcome struct {
	delivered bool
	refused   bool // for good
	broken    bool // the connection is of no more use
	code      int  // the server's, 0 where it gave none
}

// send hands a mail over.
func (s *SMTP) send(c *connection, m taken) outcome {
	msg := s.compose(m)
	err := c.client.Send(msg)
	if err == nil || msg.IsDelivered() {
		return outcome{delivered: true, broken: err != nil}
	}
	failed, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return outcome{broken: true}
	}
	out := outcome{code: failed.ErrorCode()}
	switch {
	case out.code == 0 || out.code == 421: // no answer, or a closing server
		out.broken = true
	case out.code < 500:
	default:
		// What is said of the sender concerns how this service is set up, and
		// every mail alike; that can be mended.
		out.refused = failed.Reason != gomail.ErrSMTPMailFrom && out.code != 530
	}
	return out
}

func (s *SMTP) compose(m taken) *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(&mail.Address{Address: m.To})
	if m.ReplyTo != "" {
		msg.ReplyToMailAddress(&mail.Address{Address: m.ReplyTo})
	}
	msg.Subject(m.Subject)
	msg.SetDateWithValue(m.PutAt)
	msg.SetMessageIDWithValue(m.id + "@" + s.domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation notices
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	return msg
}

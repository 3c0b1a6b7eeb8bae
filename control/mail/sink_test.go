package mail

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"porchlight/control/kv"
)

const thePassword = "correct-horse"

// sink is a real mail server that keeps what it is given.
type sink struct {
	t     testing.TB
	tls   *tls.Config
	roots *x509.CertPool
	addr  string
	user  string // demanded, with thePassword, unless empty
	noTLS bool   // offers no STARTTLS

	mu       sync.Mutex
	server   *smtp.Server
	listener net.Listener
	ended    chan struct{}
	received []received
	onRcpt   func(to string) error
	onData   func() error
	secured  bool // the last mail came over TLS
	got      chan struct{}
}

type received struct {
	from, to string
	data     []byte
}

func newSink(t testing.TB) *sink {
	cert := httptest.NewTLSServer(nil) // for its certificate of 127.0.0.1
	defer cert.Close()
	s := &sink{t: t, addr: "127.0.0.1:0", roots: x509.NewCertPool(), got: make(chan struct{}, 64)}
	s.roots.AddCert(cert.Certificate())
	s.tls = &tls.Config{Certificates: cert.TLS.Certificates}
	t.Cleanup(s.stop)
	return s
}

// start listens, again on the same port when it did before.
func (s *sink) start(implicit bool) *sink {
	s.t.Helper()
	ln, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	if implicit {
		ln = tls.NewListener(ln, s.tls)
	}
	server := smtp.NewServer(s)
	server.Domain, server.ErrorLog = "sink.example", quiet{}
	server.ReadTimeout, server.WriteTimeout = 30*time.Second, 30*time.Second
	if !s.noTLS && !implicit {
		server.TLSConfig = s.tls
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(ln)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server, s.listener, s.ended = server, ln, ended
	return s
}

func (s *sink) stop() {
	s.mu.Lock()
	server, ln, ended := s.server, s.listener, s.ended
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		server.Close()
		ln.Close() // the server knows it only once Serve has begun
		<-ended
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func (quiet) Println(...any) {}

func (s *sink) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &sinkSession{sink: s, conn: c}, nil
}

type sinkSession struct {
	*sink
	conn     *smtp.Conn
	from, to string
	authed   bool
}

func (s *sinkSession) Reset() {}

func (s *sinkSession) Logout() error { return nil }

func (s *sinkSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *sinkSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if s.user == "" || user != s.user || password != thePassword {
			return smtp.ErrAuthFailed
		}
		s.authed = true
		return nil
	}), nil
}

func (s *sinkSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.user != "" && !s.authed {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *sinkSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	if s.onRcpt != nil {
		return s.onRcpt(to)
	}
	return nil
}

func (s *sinkSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.onData != nil {
		if err := s.onData(); err != nil {
			return err
		}
	}
	_, secured := s.conn.TLSConnectionState()
	s.mu.Lock()
	s.secured = secured
	s.received = append(s.received, received{s.from, s.to, data})
	s.mu.Unlock()
	s.got <- struct{}{}
	return nil
}

func (s *sink) mails() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
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
	store, err := kv.Open(t.Context(), "memory:", kv.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r.store = store
	r.SMTP, err = NewSMTP(store, SMTPConfig{
		Server: strings.ReplaceAll(url, "ADDR", s.addr), From: "Porchlight <porchlight@control.example.net>", RootCAs: s.roots, Now: clock,
		Log: slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *queueRig) put(id string, m Message) {
	r.t.Helper()
	if err := r.store.Update(r.t.Context(), func(tx kv.Tx) error { return r.Put(tx, id, m) }); err != nil {
		r.t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *queueRig) after(d time.Duration) {
	*r.clock = r.clock.Add(d)
	r.deliverDue(r.t.Context())
}

func anInvitation(t testing.TB) Message {
	t.Helper()
	m, err := Invitation{
		To: "bob@example.com", Owner: "maya@example.com", Until: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC),
		Apps: []App{{Label: "Notizbücher 日記", Name: "notes"}}, Link: "https://control.example.net/invitation?token=" + strings.Repeat("abc_", 20),
	}.Message()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

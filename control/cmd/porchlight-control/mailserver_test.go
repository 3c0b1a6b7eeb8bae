package main

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

const mailPassword = "correct-horse-battery"

// mailServer is a real mail server that wants STARTTLS and a password, and keeps
// what it is given.
type mailServer struct {
	url  string // without the password
	cert string // file to be trusted
	addr string

	mu    sync.Mutex
	mails []receivedMail // guarded by mu
}

type receivedMail struct{ to, data string }

// startMailServer runs until the test ends. It refuses recipients that begin with
// "gone".
func startMailServer(t *testing.T) *mailServer {
	t.Helper()
	https := httptest.NewTLSServer(nil) // for its certificate of 127.0.0.1
	defer https.Close()
	m := &mailServer{cert: filepath.Join(t.TempDir(), "mail.pem")}
	if err := os.WriteFile(m.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.addr = l.Addr().String()
	m.url = "smtp://porch@" + m.addr
	s := smtp.NewServer(m)
	s.Domain, s.ErrorLog, s.TLSConfig = "sink.example", silent{}, &tls.Config{Certificates: https.TLS.Certificates}
	s.ReadTimeout, s.WriteTimeout = time.Minute, time.Minute
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }() // it ends by Close
	t.Cleanup(func() { _ = s.Close(); _ = l.Close(); <-ended })
	return m
}

type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// NewSession implements smtp.Backend.
func (m *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &mailSession{server: m, conn: c}, nil
}

type mailSession struct {
	server *mailServer
	conn   *smtp.Conn
	authed bool
	to     string
}

func (s *mailSession) Reset()                   {}
func (s *mailSession) Logout() error            { return nil }
func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if _, secured := s.conn.TLSConnectionState(); !secured || user != "porch" || password != mailPassword {
			return smtp.ErrAuthFailed
		}
		s.authed = true
		return nil
	}), nil
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error {
	if !s.authed {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "gone") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.to = to
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, receivedMail{s.to, string(data)})
	return nil
}

// to are the mails to an address, in the order of their arrival.
func (m *mailServer) to(email string) (out []receivedMail) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.mails {
		if r.to == email {
			out = append(out, r)
		}
	}
	return out
}

// Package mailserver is a real SMTP server for tests, on a free port of this
// computer: STARTTLS with a certificate of its own, then AUTH PLAIN where there is
// a user.
package mailserver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Server keeps what it is given. Its fields are set before Start.
type Server struct {
	Address        string // host:port, once it was started
	Root           []byte // PEM: the certificate to trust
	Roots          *x509.CertPool
	User, Password string // demanded, unless User is empty
	NoTLS          bool   // offers no STARTTLS
	OnRcpt         func(to string) error
	OnMail         func(Mail) error // before it is kept

	tls *tls.Config

	mu    sync.Mutex // protects what follows
	stop  func()
	mails []Mail
}

// Mail is one as it arrived.
type Mail struct {
	From    string
	To      []string
	Data    []byte
	Secured bool // it came over TLS
}

// New makes one that does not listen yet.
func New() *Server {
	cert := httptest.NewTLSServer(nil) // for its certificate of 127.0.0.1
	defer cert.Close()
	s := &Server{Address: "127.0.0.1:0", Roots: x509.NewCertPool(), tls: &tls.Config{Certificates: cert.TLS.Certificates}}
	s.Roots.AddCert(cert.Certificate())
	s.Root = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate().Raw})
	return s
}

// Start listens, again on the same port when it did before; with implicit, TLS
// begins at once.
func (s *Server) Start(implicit bool) error {
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		return err
	}
	s.Address = l.Addr().String()
	if implicit {
		l = tls.NewListener(l, s.tls)
	}
	server, ended := smtp.NewServer(s), make(chan struct{})
	server.Domain, server.ErrorLog = "sink.example", quiet{}
	server.ReadTimeout, server.WriteTimeout = time.Minute, time.Minute
	server.MaxMessageBytes = 1 << 20
	if !s.NoTLS && !implicit {
		server.TLSConfig = s.tls
	}
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = func() {
		_ = server.Close()
		_ = l.Close() // the server knows it only once Serve has begun
		<-ended
	}
	return nil
}

// Stop ends it, if it was started.
func (s *Server) Stop() {
	s.mu.Lock()
	stop := s.stop
	s.stop = nil
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Mails are those that arrived so far, in this order.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func (quiet) Println(...any) {}

// NewSession implements smtp.Backend.
func (s *Server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{Server: s, conn: c}, nil
}

type session struct {
	*Server
	conn     *smtp.Conn
	admitted bool
	mail     Mail
}

func (s *session) Reset() { s.mail = Mail{} }

func (s *session) Logout() error { return nil }

// AuthMechanisms implements smtp.AuthSession; without TLS none is offered.
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if s.User == "" || user != s.User || password != s.Password {
			return smtp.ErrAuthFailed
		}
		s.admitted = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.User != "" && !s.admitted {
		return smtp.ErrAuthRequired
	}
	s.mail.From = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.OnRcpt != nil {
		if err := s.OnRcpt(to); err != nil {
			return err
		}
	}
	s.mail.To = append(s.mail.To, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	mail := s.mail
	_, mail.Secured = s.conn.TLSConnectionState()
	var err error
	if mail.Data, err = io.ReadAll(r); err != nil {
		return err
	}
	if s.OnMail != nil {
		if err := s.OnMail(mail); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, mail)
	return nil
}

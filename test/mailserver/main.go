// Command mailserver is a real SMTP server for end-to-end tests: STARTTLS with a
// certificate of its own, then AUTH PLAIN, and nothing without both. It prints
// one JSON document that says how to reach it, and then one for each mail it
// took, parsed from the bytes that arrived.
//
//	mailserver --ca FILE --user USER --password PASSWORD
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

func main() {
	ca := flag.String("ca", "", "file that gets the certificate to trust (PEM)")
	user := flag.String("user", "porchlight", "who may send")
	password := flag.String("password", "", "with which password")
	flag.Parse()
	if err := serve(*ca, *user, *password); err != nil {
		fmt.Fprintln(os.Stderr, "mailserver:", err)
		os.Exit(1)
	}
}

func serve(caFile, user, password string) error {
	certificate, root, err := certify()
	if err != nil {
		return err
	}
	if err := os.WriteFile(caFile, root, 0o600); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b := &backend{user: user, password: password, out: json.NewEncoder(os.Stdout)}
	b.print(map[string]string{"address": l.Addr().String()})
	s := smtp.NewServer(b)
	s.Domain = "localhost"
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.ReadTimeout, s.WriteTimeout = time.Minute, time.Minute
	s.MaxMessageBytes = 1 << 20
	return s.Serve(l)
}

// certify makes a certificate for this computer, and the one to trust for it.
func certify() (certificate tls.Certificate, root []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mailserver"},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return certificate, nil, err
	}
	root = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, root, nil
}

// backend admits one user and prints what comes.
type backend struct {
	user, password string

	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

func (b *backend) print(v any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.out.Encode(v); err != nil {
		os.Exit(0) // nobody reads any more
	}
}

func (b *backend) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{backend: b, conn: c}, nil
}

type session struct {
	*backend
	conn     *smtp.Conn
	admitted bool
	to       []string
}

func (s *session) AuthMechanisms() []string {
	if _, encrypted := s.conn.TLSConnectionState(); !encrypted {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.user || password != s.password {
			return smtp.ErrAuthFailed
		}
		s.admitted = true
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if !s.admitted {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

// received is a mail as it arrived.
type received struct {
	Rcpt    []string `json:"rcpt"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	ReplyTo string   `json:"replyTo"`
	Subject string   `json:"subject"`
	Text    string   `json:"text"`
	HTML    string   `json:"html"`
}

func (s *session) Data(r io.Reader) error {
	m, err := parse(r)
	if err != nil {
		return err
	}
	m.Rcpt = s.to
	s.print(m)
	return nil
}

func (s *session) Reset()        { s.to = nil }
func (s *session) Logout() error { return nil }

// parse reads a mail of one text and one HTML part.
func parse(r io.Reader) (m received, err error) {
	reader, err := mail.CreateReader(r)
	if err != nil {
		return m, err
	}
	address := func(field string) string {
		list, listErr := reader.Header.AddressList(field)
		if err = errors.Join(err, listErr); listErr != nil || len(list) == 0 {
			return ""
		}
		return list[0].Address
	}
	m.From, m.To, m.ReplyTo = address("From"), address("To"), address("Reply-To")
	if err != nil {
		return m, err
	}
	if m.Subject, err = reader.Header.Subject(); err != nil {
		return m, err
	}
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		body, err := io.ReadAll(part.Body)
		if err != nil {
			return m, err
		}
		header, ok := part.Header.(*mail.InlineHeader)
		if !ok {
			return m, errors.New("a mail with an attachment")
		}
		switch kind, _, err := header.ContentType(); {
		case err != nil:
			return m, err
		case kind == "text/plain":
			m.Text = string(body)
		case kind == "text/html":
			m.HTML = string(body)
		default:
			return m, fmt.Errorf("a part of type %s", kind)
		}
	}
}

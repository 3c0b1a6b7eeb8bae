package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// server is a mail server as its URL describes it.
type server struct {
	host     string
	port     int
	implicit bool // TLS from the first byte (RFC 8314)
	startTLS bool // otherwise: TLS before anything else, or no delivery
	user     string
	password string
}

// parseServer reads smtp://user:password@host:port, where STARTTLS is required,
// or smtps:// with TLS from the first byte. Ports are 587 and 465 unless given.
// The parameter starttls=never, without credentials only, turns encryption off;
// it is what a host on the loopback interface has unless starttls=required says
// otherwise. The password may be given beside the URL instead of in it. No error
// holds it.
func parseServer(raw, password string) (server, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return server{}, errors.New("the address of the mail server cannot be read; write smtp://user:password@host:587, with special characters in % form")
	}
	s := server{host: strings.ToLower(u.Hostname()), user: u.User.Username()}
	if s.password, _ = u.User.Password(); password != "" {
		if s.password != "" || s.user == "" {
			return server{}, errors.New("a password is given beside the address of the mail server, which has one itself or names no user")
		}
		s.password = password
	}
	switch u.Scheme {
	case "smtp":
		s.port, s.startTLS = 587, !s.isHere() || s.user != ""
	case "smtps":
		s.port, s.implicit = 465, true
	default:
		return server{}, errors.New("the address of a mail server begins with smtp:// or smtps://, like smtp://user@mail.example:587")
	}
	if s.host == "" || strings.TrimPrefix(u.Path, "/")+u.Fragment+u.Opaque != "" {
		return server{}, errors.New("the address of the mail server needs a host and nothing after it")
	}
	if err := cmp.Or(s.setPort(u.Port()), s.apply(u.Query())); err != nil {
		return server{}, err
	}
	if s.user != "" && s.password == "" {
		return server{}, errors.New("the address of the mail server names a user and no password")
	}
	return s, nil
}

// isHere says whether the host is on the loopback interface.
func (s *server) isHere() bool {
	ip := net.ParseIP(s.host)
	return s.host == "localhost" || ip != nil && ip.IsLoopback()
}

// setPort takes the port of the address, if that has one.
func (s *server) setPort(port string) (err error) {
	if port == "" {
		return nil
	}
	if s.port, err = strconv.Atoi(port); err != nil || s.port < 1 || s.port > 65535 {
		return fmt.Errorf("%q is not a port of a mail server", port)
	}
	return nil
}

// apply takes the parameters of the address, of which there is one.
func (s *server) apply(parameters url.Values) error {
	for name, values := range parameters {
		switch {
		case name != "starttls" || s.implicit || len(values) != 1:
			return fmt.Errorf("the address of the mail server has a parameter %q that means nothing there", name)
		case values[0] == "required":
			s.startTLS = true
		case values[0] == "never" && s.user == "":
			s.startTLS = false
		case values[0] == "never":
			return errors.New("a password is not sent to a mail server without encryption; leave starttls=never out")
		default:
			return fmt.Errorf("starttls is required or never, not %q", values[0])
		}
	}
	return nil
}

// conversation bounds connecting, and each mail, in time.
const conversation = 20 * time.Second

// connection is an open, authenticated conversation with the server.
type connection struct {
	client *gomail.Client
	conn   net.Conn
	done   chan struct{}
	ended  chan struct{}
}

// connect dials, secures and authenticates. Once ctx is done, the conversation
// has grace left.
func (s server) connect(ctx context.Context, helo string, roots *x509.CertPool, grace time.Duration) (*connection, error) {
	c := &connection{done: make(chan struct{}), ended: make(chan struct{})}
	config := &tls.Config{ServerName: s.host, RootCAs: roots, MinVersion: tls.VersionTLS12}
	policy := gomail.NoTLS
	switch {
	case s.implicit:
		// The connection is TLS already, which the client then sees; it has
		// nothing to start.
		policy = gomail.TLSOpportunistic
	case s.startTLS:
		policy = gomail.TLSMandatory
	}
	options := []gomail.Option{
		gomail.WithPort(s.port), gomail.WithTimeout(conversation), gomail.WithHELO(helo),
		gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(config),
		// Dialled here, because the client forgets connections that fail later.
		gomail.WithDialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			var err error
			if s.implicit {
				c.conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
			} else {
				c.conn, err = new(net.Dialer).DialContext(ctx, network, address)
			}
			return c.conn, err
		}),
	}
	if s.user != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
			gomail.WithUsername(s.user), gomail.WithPassword(s.password))
	}
	var err error
	if c.client, err = gomail.NewClient(s.host, options...); err != nil {
		return nil, err
	}
	if err = c.client.DialWithContext(ctx); err != nil {
		if c.conn != nil {
			c.conn.Close()
		}
		return nil, err
	}
	go c.watch(ctx, grace)
	return c, nil
}

// watch cuts a conversation that outlives ctx by grace.
func (c *connection) watch(ctx context.Context, grace time.Duration) {
	defer close(c.ended)
	select {
	case <-c.done:
		return
	case <-ctx.Done():
	}
	select {
	case <-c.done:
	case <-time.After(grace):
		c.conn.Close()
	}
}

// close says goodbye, if anybody is there to hear it.
func (c *connection) close() {
	c.client.Close()
	c.conn.Close()
	close(c.done)
	<-c.ended
}

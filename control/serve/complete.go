package serve

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/provider"
	"porchlight/internal/filelimit"
)

// Complete checks the configuration and fills in what follows from the rest.
// The errors are sentences that name the flag to change.
func (c *Config) Complete() error {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	for _, part := range []func() error{
		c.checkRequired, c.completeTLS, c.completeNames, c.completeListen, c.checkAdminAddress, c.completePeers, c.completeDNS, c.checkMetrics, c.completeACME,
		func() error { return c.completeLimits(filelimit.Limit()) },
		c.completeProxies,
		func() error { return c.Mail.complete(c.AuthHost) },
		c.completeOIDC, c.checkUpdateNotice, c.completeResolvers, c.completeSecurityContact, c.checkAbuseContact, c.checkAudit, c.completeWaits,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// checkRequired asks for what has no default.
func (c *Config) checkRequired() error {
	switch {
	case c.StoreURL() == "":
		return errors.New("say where the rows are kept: --data DIR or --postgres URL")
	case c.Domain == "":
		return errors.New("say under which domain the computers are: --domain porch.example")
	case len(c.Listen) == 0:
		return errors.New("say where visitors connect: --listen :443")
	case c.PublicPort < 0 || c.PublicPort > 65535:
		return fmt.Errorf("%d is not a port (--public-port)", c.PublicPort)
	}
	return nil
}

func (c *Config) completeTLS() error {
	c.TLS = cmp.Or(c.TLS, TLSInternal)
	hasFile := c.CertFile != "" || c.KeyFile != ""
	switch c.TLS {
	case TLSInternal, TLSACME:
		if c.TLS == TLSInternal && c.DataDir == "" {
			return errors.New("an authority of its own (--tls internal) is kept in a data directory: give --data DIR too, or --tls files")
		}
		if hasFile {
			return errors.New("--cert and --key belong to --tls files")
		}
	case TLSFiles:
		if c.CertFile == "" || c.KeyFile == "" {
			return errors.New("--tls files needs --cert FILE and --key FILE")
		}
	default:
		return fmt.Errorf("--tls is internal, acme or files, not %q", c.TLS)
	}
	return nil
}

func (c *Config) completeNames() error {
	if !isDomain(c.Domain) {
		return fmt.Errorf("%q is not a domain, like porch.example (--domain)", c.Domain)
	}
	c.AuthHost = cmp.Or(c.AuthHost, "control."+c.Domain)
	if !isDomain(c.AuthHost) {
		return fmt.Errorf("%q is not the name of a host, like control.example, without scheme and port (--auth-host)", c.AuthHost)
	}
	return nil
}

func (c *Config) completeListen() error {
	for _, addr := range c.Listen {
		_, port, ok := hostPort(addr)
		if !ok {
			return fmt.Errorf("%q is not an address of the form 192.0.2.1:443 or :443 (--listen)", addr)
		}
		if c.PublicPort == 0 {
			c.PublicPort = port // still 0 where a free port is asked for
		}
	}
	if c.TunnelAddress == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(c.TunnelAddress); err != nil {
		return fmt.Errorf("%q is not an address of the form relay1.example:443 (--tunnel-address)", c.TunnelAddress)
	}
	return nil
}

func (c *Config) checkMetrics() error {
	if c.Metrics != "" && !c.MetricsExposed && !isLoopback(c.Metrics) {
		return fmt.Errorf("%q is not an address of the loopback interface, and metrics ask nobody who they are (--metrics); add --metrics-exposed if your network keeps others out", c.Metrics)
	}
	return nil
}

func (c *Config) checkUpdateNotice() error {
	if c.UpdateNotice == (controlapi.UpdateNotice{}) {
		return nil
	}
	if err := c.UpdateNotice.Check(); err != nil {
		return fmt.Errorf("%w (--update-address and --update-key)", err)
	}
	return nil
}

// noResolvers is for an operator who offers no own domains.
const noResolvers = "none"

// DefaultResolvers are two that check DNSSEC, of different operators.
var DefaultResolvers = []string{"1.1.1.1", "9.9.9.9"}

// completeResolvers asks for two at least: what one says alone proves nothing.
func (c *Config) completeResolvers() error {
	if len(c.Resolvers) == 0 {
		c.Resolvers = DefaultResolvers
	}
	if slices.Equal(c.Resolvers, []string{noResolvers}) {
		return nil
	}
	given := c.Resolvers
	c.Resolvers = nil
	for _, resolver := range given {
		at, err := netip.ParseAddrPort(resolver)
		if addr, plain := netip.ParseAddr(resolver); plain == nil {
			at, err = netip.AddrPortFrom(addr, 53), nil
		}
		at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port()) // one may be written in two ways
		if err != nil || slices.Contains(c.Resolvers, at.String()) {
			return fmt.Errorf("%q is not one more IP address of a resolver, like 9.9.9.9 or 127.0.0.1:5353 (--resolver)", resolver)
		}
		c.Resolvers = append(c.Resolvers, at.String())
	}
	if len(c.Resolvers) < 2 || len(c.Resolvers) > 4 {
		return errors.New("own domains are looked up by two to four resolvers: give --resolver as often, or --resolver none for no own domains")
	}
	return nil
}

func (c *Config) completeOIDC() error {
	c.providers = nil
	for _, file := range c.OIDC {
		p, err := provider.ReadFile(file)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(c.providers, func(other provider.Config) bool { return other.Name == p.Name }) {
			return fmt.Errorf("%s: another provider is called %s, too (--oidc)", file, p.Name)
		}
		c.providers = append(c.providers, p)
	}
	return nil
}

// completeSecurityContact has it be the address that RFC 9116, section 2.5.3, asks for.
func (c *Config) completeSecurityContact() error {
	contact, good := asContact(c.SecurityContact)
	if !good {
		return fmt.Errorf("%q is neither a mail address nor one that begins with https:// (--security-contact)", c.SecurityContact)
	}
	c.SecurityContact = contact
	return nil
}

func (c *Config) checkAudit() error {
	switch _, err := audit.Sink(c.AuditHead); {
	case c.AuditKeep < 0:
		return errors.New("the audit log cannot be kept for less than no time (--audit-keep)")
	case c.AuditHead == "":
		return nil
	case c.DataDir == "":
		return errors.New("--audit-head needs --data: the key that signs is kept there, outside of the store")
	case err != nil:
		return fmt.Errorf("%w (--audit-head)", err)
	}
	return nil
}

func (c *Config) checkAbuseContact() error {
	if _, good := asContact(c.AbuseContact); !good {
		return fmt.Errorf("%q is neither a mail address nor one that begins with https:// (--abuse-contact)", c.AbuseContact)
	}
	return nil
}

// asContact is a mail address or an https:// address as a URI, or nothing.
func asContact(contact string) (uri string, good bool) {
	if contact == "" {
		return "", true
	}
	if !strings.Contains(contact, ":") {
		contact = "mailto:" + contact
	}
	u, err := url.Parse(contact)
	good = err == nil && u.Scheme == "https" && u.Host != ""
	if err == nil && u.Scheme == "mailto" {
		to, err := mail.ParseAddress(u.Opaque)
		good = err == nil && to.Address == u.Opaque
	}
	return contact, good && !strings.ContainsFunc(contact, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (c *Config) completeWaits() error {
	if c.DrainWait < 0 {
		return errors.New("--drain-wait cannot be negative")
	}
	if c.PostgresWait < 0 {
		return errors.New("--postgres-wait cannot be negative")
	}
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	return nil
}

// hostPort reads an address to listen on. The host may be empty, and the port 0.
func hostPort(address string) (host string, port int, ok bool) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, false
	}
	port, err = strconv.Atoi(digits)
	return host, port, err == nil && port >= 0 && port <= 65535
}

// isLoopback says whether addr, host:port, can be reached from this machine only.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// domainPattern is labels of lower-case letters, digits and inner hyphens with
// dots between them; names in other scripts are written in their xn-- form.
var domainPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

func isDomain(name string) bool { return len(name) <= 200 && domainPattern.MatchString(name) }

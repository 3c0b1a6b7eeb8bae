// Package dnsupdate changes records TXT at the operator's own name server (RFC 2136), signed
// by a key that both have (TSIG, RFC 8945). What comes in is a name and all the values it is to
// have; it is done when that server says so. It asks nobody else and keeps nothing.
package dnsupdate

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/miekg/dns"
)

const (
	within  = 5 * time.Second // one update, the wait for its turn included
	atOnce  = 8
	seconds = 60  // how long resolvers may keep a record
	fudge   = 300 // seconds that the two clocks may differ (RFC 8945, section 10)
	maxFile = 4 << 10
)

// Config of an Updater.
type Config struct {
	Server string // host:port
	Zone   string // that it answers for, and every name is in
	Key    Key
}

// Key is shared with the server. Its secret is never logged.
type Key struct {
	Name      string
	Algorithm string
	secret    string // base64
}

// keyForm is how tsig-keygen writes a key.
var keyForm = regexp.MustCompile(`^\s*key\s+"?([A-Za-z0-9._-]+)"?\s*\{\s*algorithm\s+"?([A-Za-z0-9-]+)"?\s*;\s*secret\s+"?([A-Za-z0-9+/=]+)"?\s*;\s*\}\s*;?\s*$`)

var algorithms = map[string]string{
	"hmac-sha256": dns.HmacSHA256, "hmac-sha384": dns.HmacSHA384, "hmac-sha512": dns.HmacSHA512,
}

// ReadKey reads the one key of a file, as tsig-keygen writes it.
func ReadKey(path string) (Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return Key{}, fmt.Errorf("cannot read the key for the DNS server: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, fmt.Errorf("cannot read the key for the DNS server: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return Key{}, fmt.Errorf("every user of this machine may read %s, which holds the key for the DNS server: chmod 600 it", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Key{}, fmt.Errorf("cannot read the key for the DNS server: %w", err)
	}
	parts := keyForm.FindStringSubmatch(string(raw))
	if parts == nil || len(raw) > maxFile {
		return Key{}, fmt.Errorf("%s does not hold one key as tsig-keygen writes it", path)
	}
	algorithm, known := algorithms[parts[2]]
	secret, err := base64.StdEncoding.DecodeString(parts[3])
	if !known || err != nil || len(secret) < 16 {
		return Key{}, fmt.Errorf("%s does not hold a key of hmac-sha256, hmac-sha384 or hmac-sha512 with 16 bytes or more", path)
	}
	return Key{dns.CanonicalName(parts[1]), algorithm, parts[3]}, nil
}

// Updater is safe for concurrent use.
type Updater struct {
	cfg    Config
	client *dns.Client
	turns  chan struct{} // one of each that is under way
}

// New makes an Updater.
func New(cfg Config) *Updater {
	return &Updater{cfg, &dns.Client{Net: "tcp", Timeout: within, TsigSecret: map[string]string{cfg.Key.Name: cfg.Key.secret}}, make(chan struct{}, atOnce)}
}

// Set has a name have these values and no others, none for no record at all. An error is a
// sentence for the operator.
func (u *Updater) Set(ctx context.Context, name string, values []string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case u.turns <- struct{}{}:
		defer func() { <-u.turns }()
	case <-ctx.Done():
		return errors.New("the DNS server is told of too much at once")
	}
	header := dns.RR_Header{Name: dns.Fqdn(name), Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: seconds}
	m := new(dns.Msg).SetUpdate(dns.Fqdn(u.cfg.Zone))
	m.RemoveRRset([]dns.RR{&dns.TXT{Hdr: header}})
	for _, value := range values {
		m.Insert([]dns.RR{&dns.TXT{Hdr: header, Txt: []string{value}}})
	}
	m.SetTsig(u.cfg.Key.Name, u.cfg.Key.Algorithm, fudge, time.Now().Unix())
	answer, _, err := u.client.ExchangeContext(ctx, m, u.cfg.Server)
	switch {
	case err != nil:
		return u.unanswered(err)
	case answer.Rcode == dns.RcodeSuccess && answer.IsTsig() == nil: // the library takes it for good
		return u.distrusted(dns.ErrNoSig)
	}
	return u.said(answer.Rcode, name)
}

func (u *Updater) unanswered(err error) error {
	if _, away := errors.AsType[net.Error](err); away || errors.Is(err, io.EOF) {
		return fmt.Errorf("the DNS server at %s does not answer: look at its address and the firewall (--dns-update): %w", u.cfg.Server, err)
	}
	return u.distrusted(err)
}

// distrusted is of an answer that is NOTAUTH, which may be for either reason, or not signed.
func (u *Updater) distrusted(err error) error {
	return fmt.Errorf("the DNS server at %s and this one do not trust each other's key %s, or it is not the first server of the zone %s: look at both files, both clocks and the zone (--dns-update-key, --dns-zone): %w",
		u.cfg.Server, u.cfg.Key.Name, u.cfg.Zone, err)
}

// said is what an answer means (RFC 2136, section 2.2; RFC 8945, section 5.3).
func (u *Updater) said(rcode int, name string) error {
	switch rcode {
	case dns.RcodeSuccess:
		return nil
	case dns.RcodeRefused:
		return fmt.Errorf("the DNS server at %s does not let the key %s change %s TXT: allow it that", u.cfg.Server, u.cfg.Key.Name, name)
	}
	return fmt.Errorf("the DNS server at %s answers %s to a change of %s TXT", u.cfg.Server, dns.RcodeToString[rcode], name)
}

// Package localca is a certificate authority for one computer: it makes the
// certificates of local mode and of a control plane run with --tls internal.
//
// A person is asked to trust its root, so the root is made to be worth little to
// a thief. Root and intermediate may only speak for the DNS names they were made
// for (RFC 5280, 4.2.1.10, critical) and for no address at all; the root's key
// is never written down and is gone once it has signed the intermediate; the
// intermediate signs servers only, and no further authority. What is kept is
// root.pem, intermediate.pem and intermediate-key.pem in one directory that
// appears whole or not at all.
//
// Open gives the authority of a directory, Issue a certificate for one name. The
// agent and the control plane both use it.
package localca

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	// leafLife is well below the 397 days browsers and macOS allow.
	leafLife = 90 * 24 * time.Hour
	// renewBefore is when an authority counts as used up: early enough that a
	// person is asked to trust the next one before anything stops working.
	renewBefore = 180 * 24 * time.Hour
	// backdate covers clocks that are a little behind ours.
	backdate = time.Hour
)

var (
	// errNotPermitted is wrapped by Issue for a name the authority may not
	// speak for.
	errNotPermitted = errors.New("outside the names of this certificate authority")
	// errUnusable is wrapped by load when the files are there and readable but
	// no authority can be had from them: damaged, exposed, nearly expired, or
	// made for other names. Open makes a new one then.
	errUnusable = errors.New("the certificate authority cannot be used")
)

// Options of an authority.
type Options struct {
	// Names are the DNS domains it may speak for; each permits the name itself
	// and everything below it. At least one.
	Names []string
	// Organisation is what people read in certificate dialogs; empty means
	// "Porchlight".
	Organisation string
	// Now tells the time; nil means time.Now.
	Now func() time.Time
	// Log is told when an authority is made or replaced; nil means nowhere.
	Log *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if len(o.Names) == 0 {
		return o, errors.New("a certificate authority needs at least one domain")
	}
	names := make([]string, 0, len(o.Names))
	for _, n := range o.Names {
		n = normal(n)
		if !isHostname(n) {
			return o, fmt.Errorf("%q is not a domain a certificate authority can be limited to", n)
		}
		names = append(names, n)
	}
	slices.Sort(names)
	o.Names = slices.Compact(names)
	if o.Organisation == "" {
		o.Organisation = "Porchlight"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o, nil
}

// CA is an authority. It is safe for concurrent use.
type CA struct {
	opts         Options
	root         *x509.Certificate
	intermediate *x509.Certificate
	key          *ecdsa.PrivateKey // of the intermediate
}

// Open loads the authority of dir, or makes one when there is none or the one
// there cannot be used (see errUnusable; it is kept beside as dir.old). Files
// that cannot be read are an error, never a reason to replace them.
func Open(dir string, opts Options) (*CA, error) {
	ca, err := load(dir, opts)
	switch {
	case err == nil:
		return ca, nil
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, errUnusable):
		opts, optErr := opts.withDefaults()
		if optErr != nil {
			return nil, optErr
		}
		opts.Log.Warn("the local certificate authority is replaced; browsers have to trust the new one, and the old one should be removed from them", "reason", err.Error())
	default:
		return nil, err
	}
	return Create(dir, opts)
}

// newCA makes keys and certificates, and forgets the root's key.
func newCA(opts Options) (*CA, error) {
	now := opts.Now()
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the root key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the intermediate key: %w", err)
	}
	// The month tells a person two roots apart in a list of trusted authorities,
	// and the number a store that knows certificates by their subject (NSS).
	var number [4]byte
	rand.Read(number[:])
	about := fmt.Sprintf("%s %s %x", strings.Join(opts.Names, " "), now.UTC().Format("2006-01"), number)
	template := func(role string, pathLen int) *x509.Certificate {
		return &x509.Certificate{ // the serial number is chosen at random by CreateCertificate
			Subject: pkix.Name{
				Organization: []string{opts.Organisation},
				CommonName:   shorten(opts.Organisation+" "+role+" for "+about, 64),
			},
			NotBefore:             now.Add(-backdate),
			NotAfter:              now.Add(authorityLife),
			IsCA:                  true,
			BasicConstraintsValid: true,
			MaxPathLen:            pathLen,
			MaxPathLenZero:        pathLen == 0,
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
			// A DNS constraint says nothing of addresses, so those are
			// excluded whole.
			PermittedDNSDomainsCritical: true,
			PermittedDNSDomains:         opts.Names,
			ExcludedIPRanges:            everyAddress(),
		}
	}
	root, err := sign(template("root", 1), nil, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, fmt.Errorf("make the root: %w", err)
	}
	t := template("intermediate", 0)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	intermediate, err := sign(t, root, &key.PublicKey, rootKey)
	if err != nil {
		return nil, fmt.Errorf("make the intermediate: %w", err)
	}
	return &CA{opts: opts, root: root, intermediate: intermediate, key: key}, nil
}

// sign makes the certificate of template for pub; a nil parent means it signs
// itself.
func sign(template, parent *x509.Certificate, pub *ecdsa.PublicKey, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Issue makes a certificate for one DNS name, valid for 90 days, with a key of
// its own and the chain to send (leaf, intermediate). The name is lower-cased
// and loses a trailing dot. Wildcards, addresses and names outside the
// authority's are refused.
func (ca *CA) Issue(name string) (*tls.Certificate, error) {
	name = normal(name)
	if !isHostname(name) {
		return nil, fmt.Errorf("%q is not a host name a certificate can be made for", name)
	}
	if !slices.ContainsFunc(ca.opts.Names, func(d string) bool { return name == d || strings.HasSuffix(name, "."+d) }) {
		return nil, fmt.Errorf("%q is %w (%s)", name, errNotPermitted, strings.Join(ca.opts.Names, ", "))
	}
	now := ca.opts.Now()
	expires := now.Add(leafLife)
	if expires.After(ca.intermediate.NotAfter) {
		expires = ca.intermediate.NotAfter
	}
	if !expires.After(now) {
		return nil, fmt.Errorf("the certificate authority expired on %s", ca.intermediate.NotAfter.Format(time.DateOnly))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for %s: %w", name, err)
	}
	leaf, err := sign(&x509.Certificate{
		Subject:               pkix.Name{Organization: []string{ca.opts.Organisation}, CommonName: commonName(name)},
		DNSNames:              []string{name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              expires,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}, ca.intermediate, &key.PublicKey, ca.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", name, err)
	}
	return &tls.Certificate{
		Certificate: [][]byte{leaf.Raw, ca.intermediate.Raw},
		PrivateKey:  key,
		Leaf:        leaf,
	}, nil
}

// RootPEM is the certificate to be trusted, as text.
func (ca *CA) RootPEM() []byte { return encode(typeCertificate, ca.root.Raw) }

// Pool trusts this authority and no other.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.root)
	return pool
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// everyAddress is all of IPv4 and all of IPv6.
func everyAddress() []*net.IPNet {
	return []*net.IPNet{
		{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
		{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
	}
}

// normal is the form names are compared in.
func normal(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// isHostname holds for a lower-case DNS name of letters, digits and hyphens that
// cannot be taken for an address. RFC 1123 has no hyphen at either end of a
// label; the names of apps may (P9), and resolvers and browsers take them.
func isHostname(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	// A last label of digits alone is how an IPv4 address ends.
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// commonName of a leaf is shown in dialogs and checked by nobody; the field
// holds 64 characters and a cut name would be a wrong one.
func commonName(name string) string {
	if len(name) > 64 {
		return ""
	}
	return name
}

// shorten cuts s to at most n bytes at a rune's beginning.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

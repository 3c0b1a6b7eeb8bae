package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"

	"porchlight/control/controlapi"
)

// One certificate for the root host and all names one label below it, so that no app's name
// is in the authorities' public logs. Its challenges are published in the DNS (DNS-01, RFC
// 8555, section 8.4), where the control plane offers that.
//
// Names that have certificates of their own keep these until it is there. It goes on while it
// is good once no challenges are published any more, and with a third of its life left each
// name has its own again.

// PublishConfig says how challenges get into the DNS; every field is required.
type PublishConfig struct {
	// Root is the root host without a port, empty before it is known.
	Root func() string
	// Offered says whether Publish would be taken now.
	Offered func() bool
	// Publish has these challenges of the root host, and no others, be in the DNS.
	Publish func(ctx context.Context, all controlapi.Challenges) error
}

const (
	// lookAgain bounds how long it is slept until a certificate is due.
	lookAgain = time.Hour
	// cleanUpIn bounds taking challenges away.
	cleanUpIn = 10 * time.Second
)

// wildcard is a certificate of a root host and of the names below it. It is never changed.
type wildcard struct {
	root  string
	cert  *tls.Certificate // with its leaf
	renew time.Time        // when it is to be renewed
	ask   time.Time        // when the authority is asked whether that is to be sooner
}

// wildcardName is how such a certificate is called where others are called by their name.
func wildcardName(root string) string { return "*." + root }

// rootOf is the root host of wildcardName.
func rootOf(name string) (root string, is bool) { return strings.CutPrefix(name, "*.") }

// covers says whether a certificate of all names of root is good for a name.
func covers(root, name string) bool {
	label, below := strings.CutSuffix(name, "."+root)
	return root != "" && (name == root || below && label != "" && !strings.Contains(label, "."))
}

// common is the certificate of all names, where it is one of name and good now; or nil.
func (a *ACME) common(name string) *wildcard {
	w := a.wild.Load()
	if w == nil || !covers(w.root, name) || !a.cfg.Now().Before(w.cert.Leaf.NotAfter) {
		return nil
	}
	return w
}

// serving is the certificate of all names where a visitor of name is shown it: not once the name
// has a good one of its own again.
func (a *ACME) serving(name string) *wildcard {
	w := a.common(name)
	if w == nil || a.spared(name) || !slices.ContainsFunc(a.cache.AllMatchingCertificates(name), func(c certmagic.Certificate) bool {
		return c.Leaf != nil && a.cfg.Now().Before(c.Leaf.NotAfter)
	}) {
		return w
	}
	return nil
}

// offeredRoot is the root host where one certificate for all its names can be ordered, or
// empty.
func (a *ACME) offeredRoot() string {
	if a.cfg.ByDNS == nil || !a.cfg.ByDNS.Offered() {
		return ""
	}
	return normal(a.cfg.ByDNS.Root())
}

// spared says whether a name needs no certificate of its own, as there is one of all names
// that will be renewed, or has long to go.
func (a *ACME) spared(name string) bool {
	w := a.common(name)
	return w != nil && (w.root == a.offeredRoot() || a.cfg.Now().Before(w.renew))
}

// awaits is the root host where a name waits for the certificate of all names: it has none of
// its own, which would tell the name to everybody.
func (a *ACME) awaits(name string) (root string, does bool) {
	root = a.offeredRoot()
	if !covers(root, name) {
		return "", false
	}
	return root, !a.magic.Storage.Exists(a.life, certmagic.StorageKeys.SiteCert(a.magic.Issuers[0].IssuerKey(), name))
}

// obtainCommon sees to the certificate of all names, and returns how long until it is to be
// looked at again; any is false where there is nothing to wait for.
func (a *ACME) obtainCommon(ctx context.Context) (wait time.Duration, any bool) {
	a.askWhenToRenew(ctx)
	root := a.offeredRoot()
	if root == "" {
		if w := a.wild.Load(); w != nil && a.spared(w.root) {
			return a.untilDue(w), true
		}
		return 0, false
	}
	if err := a.obtainAllNames(ctx, root); err != nil {
		return a.restOf(wildcardName(root)), true
	}
	return a.untilDue(a.wild.Load()), true
}

// untilDue is how long to wait until a certificate has to be looked at.
func (a *ACME) untilDue(w *wildcard) time.Duration {
	now := a.cfg.Now()
	wait := min(w.renew.Sub(now), lookAgain)
	if w.root == normal(a.cfg.ByDNS.Root()) { // else nobody is asked
		wait = min(wait, w.ask.Sub(now))
	}
	return max(wait, time.Second)
}

// due says whether the certificate of all names of root is not there, or is to be renewed.
func (a *ACME) due(root string) bool {
	w := a.common(root)
	return w == nil || !a.cfg.Now().Before(w.renew)
}

// obtainAllNames is obtain for the certificate of all names of root.
func (a *ACME) obtainAllNames(ctx context.Context, root string) error {
	if !a.due(root) {
		return nil
	}
	return a.ordered(ctx, wildcardName(root), func(ctx context.Context) error {
		if a.load(root); !a.due(root) {
			return nil
		}
		return a.order(ctx, root)
	}, func(err error) { a.noteCommon(root, err) })
}

// load has a certificate of all names that the directory keeps serve, where it is still good.
func (a *ACME) load(root string) {
	if root == "" || a.common(root) != nil {
		return
	}
	raw, err := a.magic.Storage.Load(a.life, a.wildcardKey(root))
	if err != nil {
		return
	}
	w, err := readWildcard(root, raw)
	if err != nil {
		a.cfg.Log.Warn("the certificate of all names that is kept cannot be used; another one is ordered", "err", err)
		return
	}
	a.wild.Store(w)
	if a.public() {
		since := a.firstHad(wildcardName(root))
		a.mu.Lock()
		a.since[wildcardName(root)] = since
		a.mu.Unlock()
	}
}

// wildcardKey is where the certificate is kept, one of each authority: that of another one, as
// of an owner's own, is not to serve in its place.
func (a *ACME) wildcardKey(root string) string {
	safe := certmagic.StorageKeys.Safe
	return path.Join("wildcard", safe(a.byDNS.IssuerKey()), safe(root)+".pem")
}

// readWildcard reads a key and the chain of its certificate.
func readWildcard(root string, raw []byte) (*wildcard, error) {
	cert, err := tls.X509KeyPair(raw, raw)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{root, "any." + root} {
		if err := cert.Leaf.VerifyHostname(name); err != nil {
			return nil, err
		}
	}
	return &wildcard{root: root, cert: &cert, renew: renewAt(cert.Leaf)}, nil
}

// order has the authority certify all names of root. The key never leaves the directory.
func (a *ACME) order(ctx context.Context, root string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	names := []string{root, wildcardName(root)}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: names}, key)
	if err != nil {
		return err
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return err
	}
	if checks, ok := a.byDNS.(certmagic.PreChecker); ok {
		if err := checks.PreCheck(ctx, names, false); err != nil {
			return err
		}
	}
	issued, err := a.byDNS.Issue(ctx, csr)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	raw := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), issued.Certificate...)
	w, err := readWildcard(root, raw)
	if err != nil {
		return fmt.Errorf("the certificate of all names that was issued: %w", err)
	}
	if err := a.magic.Storage.Store(ctx, a.wildcardKey(root), raw); err != nil {
		return err
	}
	a.wild.Store(w)
	if a.due(root) { // ordered once more at once, it would be no better
		return x509.CertificateInvalidError{Cert: w.cert.Leaf, Reason: x509.Expired, Detail: "the certificate of all names is to be renewed already"}
	}
	return nil
}

// noteCommon is note for the certificate of all names. While the one before is good, a failure
// is told as that of a renewal is.
func (a *ACME) noteCommon(root string, err error) {
	name := wildcardName(root)
	a.note(name, err)
	w := a.common(root)
	a.mu.Lock()
	if err == nil {
		delete(a.unrenewed, name)
	} else if w != nil {
		r := a.refused[name]
		r.quiet = true
		a.refused[name] = r
		if ends := w.cert.Leaf.NotAfter; ends.Sub(a.cfg.Now()) < ends.Sub(w.cert.Leaf.NotBefore)/6 {
			a.unrenewed[name] = renewal{ends, err}
		}
	}
	a.mu.Unlock()
	if err != nil && w != nil {
		a.cfg.OnTrouble()
	}
}

package localca

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

func stopped(t time.Time) func() time.Time { return func() time.Time { return t } }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func local(now time.Time) Options { return Options{Names: []string{"localhost"}, Now: stopped(now)} }

func verify(ca *CA, cert *tls.Certificate, name string, when time.Time) error {
	between := x509.NewCertPool()
	for _, der := range cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		between.AddCert(c)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return err
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: ca.Pool(), Intermediates: between, CurrentTime: when})
	return err
}

func TestIssue(t *testing.T) {
	t.Parallel()
	ca := programs.Got(Open(filepath.Join(t.TempDir(), "ca"), local(noon)))(t)
	for given, want := range map[string]string{
		"localhost":                    "localhost",
		"notes.maya.localhost":         "notes.maya.localhost",
		"NOTES.Maya.Localhost.":        "notes.maya.localhost",
		"control.localhost":            "control.localhost",
		"a-1.xn--mnchen-3ya.localhost": "a-1.xn--mnchen-3ya.localhost",
	} {
		cert, err := ca.Issue(given)
		if err != nil {
			t.Errorf("Issue(%q): %v", given, err)
			continue
		}
		if err := verify(ca, cert, want, noon); err != nil {
			t.Errorf("Issue(%q): %v", given, err)
		}
		l := cert.Leaf
		if len(l.DNSNames) != 1 || l.DNSNames[0] != want || len(l.IPAddresses)+len(l.EmailAddresses)+len(l.URIs) != 0 {
			t.Errorf("Issue(%q): names %v %v", given, l.DNSNames, l.IPAddresses)
		}
		if life := l.NotAfter.Sub(l.NotBefore); life > 397*24*time.Hour || life < 30*24*time.Hour {
			t.Errorf("Issue(%q): valid for %v", given, life)
		}
		if err := verify(ca, cert, want, l.NotAfter.Add(time.Second)); err == nil {
			t.Errorf("Issue(%q): valid past its end", given)
		}
		if len(cert.Certificate) != 2 {
			t.Errorf("Issue(%q): a chain of %d, want leaf and intermediate", given, len(cert.Certificate))
		}
	}
	long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + ".localhost"
	if cert, err := ca.Issue(long); err != nil {
		t.Error(err)
	} else if err := verify(ca, cert, long, noon); err != nil {
		t.Error(err)
	}
}

func TestIssueRefuses(t *testing.T) {
	t.Parallel()
	ca := programs.Got(Open(filepath.Join(t.TempDir(), "ca"), local(noon)))(t)
	for _, name := range []string{
		"", ".", "*.localhost", "a.*.localhost", "example.com", "localhost.example.com", "notlocalhost", "evillocalhost",
		"127.0.0.1", "::1", "[::1]", "a_b.localhost", "a..localhost", ".localhost",
		"a b.localhost", "a\x00.localhost", "münchen.localhost", strings.Repeat("a", 64) + ".localhost",
		strings.Repeat("a.", 130) + "localhost", "localhost/..", "user@localhost",
	} {
		if cert, err := ca.Issue(name); err == nil {
			t.Errorf("Issue(%q) made a certificate for %v", name, cert.Leaf.DNSNames)
		}
	}
	if _, err := ca.Issue("example.com"); !errors.Is(err, errNotPermitted) {
		t.Errorf("Issue(example.com) = %v, want ErrNotPermitted", err)
	}
}

// A thief of the intermediate's key signs what Issue would never sign; the
// constraints have to stop it in the verifier.
func TestConstraintsHoldAgainstAThief(t *testing.T) {
	t.Parallel()
	ca := programs.Got(Open(filepath.Join(t.TempDir(), "ca"), local(noon)))(t)
	forge := func(change func(*x509.Certificate)) *tls.Certificate {
		t.Helper()
		template := &x509.Certificate{
			Subject:     pkix.Name{CommonName: "forged"},
			NotBefore:   noon.Add(-time.Hour),
			NotAfter:    noon.Add(time.Hour),
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		change(template)
		leaf := programs.Got(sign(template, ca.intermediate, &ca.key.PublicKey, ca.key))(t)
		return &tls.Certificate{Certificate: [][]byte{leaf.Raw, ca.intermediate.Raw}, Leaf: leaf}
	}
	honest := forge(func(c *x509.Certificate) { c.DNSNames = []string{"notes.localhost"} })
	if err := verify(ca, honest, "notes.localhost", noon); err != nil {
		t.Fatalf("the forgery must work where it is permitted, or this test shows nothing: %v", err)
	}
	foreign := forge(func(c *x509.Certificate) { c.DNSNames = []string{"bank.example"} })
	if err := verify(ca, foreign, "bank.example", noon); err == nil {
		t.Error("a foreign name was accepted")
	}
	for _, ip := range []string{"127.0.0.1", "192.0.2.1", "2001:db8::1"} {
		address := forge(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP(ip)} })
		if err := verify(ca, address, ip, noon); err == nil {
			t.Errorf("the address %s was accepted", ip)
		}
	}

	// A second authority below the intermediate.
	sub := forge(func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid = true, true
		c.KeyUsage |= x509.KeyUsageCertSign
	})
	leaf := programs.Got(sign(&x509.Certificate{
		DNSNames: []string{"notes.localhost"}, NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, sub.Leaf, &ca.key.PublicKey, ca.key))(t)
	chain := &tls.Certificate{Certificate: [][]byte{leaf.Raw, sub.Leaf.Raw, ca.intermediate.Raw}}
	if err := verify(ca, chain, "notes.localhost", noon); err == nil {
		t.Error("an authority below the intermediate was accepted")
	}
}

func TestTheShapeOfTheAuthority(t *testing.T) {
	t.Parallel()
	ca := programs.Got(Open(filepath.Join(t.TempDir(), "ca"), local(noon)))(t)
	for name, c := range map[string]*x509.Certificate{"root": ca.root, "intermediate": ca.intermediate} {
		if !c.PermittedDNSDomainsCritical || len(c.PermittedDNSDomains) != 1 || c.PermittedDNSDomains[0] != "localhost" {
			t.Errorf("%s: permitted %v, critical %v", name, c.PermittedDNSDomains, c.PermittedDNSDomainsCritical)
		}
		if got := c.NotAfter.Sub(noon); got != 10*365*24*time.Hour {
			t.Errorf("%s lives %v", name, got)
		}
	}
	if !ca.intermediate.MaxPathLenZero || ca.root.MaxPathLen != 1 {
		t.Errorf("path lengths %d and %d", ca.root.MaxPathLen, ca.intermediate.MaxPathLen)
	}
	if ca.key.PublicKey.Equal(ca.root.PublicKey) {
		t.Error("the root's key is the intermediate's: it was not thrown away")
	}
}

func TestOpenKeepsWhatItMade(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "ca")
	if _, err := load(dir, local(noon)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Load of nothing: %v", err)
	}
	first := programs.Got(Open(dir, local(noon)))(t)
	again := programs.Got(Open(dir, local(noon.Add(24*time.Hour))))(t)
	if !bytes.Equal(first.RootPEM(), again.RootPEM()) {
		t.Error("the authority was made twice")
	}
	cert := programs.Got(again.Issue("notes.localhost"))(t)
	if err := verify(first, cert, "notes.localhost", noon.Add(24*time.Hour)); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, RootFile: 0o644, IntermediateFile: 0o644, IntermediateKeyFile: 0o600} {
		info := programs.Got(os.Stat(filepath.Join(dir, name)))(t)
		if got := info.Mode().Perm(); got&^want != 0 {
			t.Errorf("%s has mode %04o, want at most %04o", name, got, want)
		}
	}
}

func TestOpenReplacesWhatCannotBeUsed(t *testing.T) {
	t.Parallel()
	write := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			programs.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	foreign := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			other := filepath.Join(t.TempDir(), "other")
			programs.Got(Open(other, local(noon)))(t)
			programs.Must(t, os.Rename(filepath.Join(other, name), filepath.Join(dir, name)))
		}
	}
	for name, c := range map[string]struct {
		harm func(t *testing.T, dir string)
		opts Options
		says string
	}{
		"empty key":            {write(IntermediateKeyFile, ""), local(noon), "intermediate-key.pem is damaged"},
		"garbled root":         {write(RootFile, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), local(noon), "root.pem is damaged"},
		"swapped kind":         {write(IntermediateFile, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), local(noon), "intermediate.pem is damaged"},
		"missing root":         {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, RootFile)) }, local(noon), "root.pem is missing"},
		"other key":            {foreign(IntermediateKeyFile), local(noon), "does not belong"},
		"other root":           {foreign(RootFile), local(noon), "not signed by"},
		"near its end":         {func(*testing.T, string) {}, local(noon.Add(authorityLife - renewBefore + time.Hour)), "expires on"},
		"expired":              {func(*testing.T, string) {}, local(noon.Add(2 * authorityLife)), "expires on"},
		"made for other names": {func(*testing.T, string) {}, Options{Names: []string{"example.net"}, Now: stopped(noon)}, "for localhost and not for example.net"},
		"readable by others": {func(t *testing.T, dir string) {
			programs.Must(t, os.Chmod(filepath.Join(dir, IntermediateKeyFile), 0o640))
		}, local(noon), "could be read by others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "readable by others" && runtime.GOOS == "windows" {
				t.Skip("Windows keeps no permission bits")
			}
			dir := filepath.Join(t.TempDir(), "ca")
			first := programs.Got(Open(dir, local(noon)))(t)
			c.harm(t, dir)
			_, err := load(dir, c.opts)
			if !errors.Is(err, errUnusable) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("load: %v, want errUnusable with %q", err, c.says)
			}
			next := programs.Got(Open(dir, c.opts))(t)
			if bytes.Equal(first.RootPEM(), next.RootPEM()) {
				t.Error("Open should have made a new authority")
			}
			if _, err := os.Stat(dir + ".old"); err != nil {
				t.Errorf("the one replaced should be kept beside: %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir+".old", IntermediateKeyFile)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("its key should be gone: %v", err)
			}
			if !bytes.Equal(next.RootPEM(), programs.Got(Open(dir, c.opts))(t).RootPEM()) {
				t.Error("the replacement is not kept")
			}
		})
	}
}

func TestOpenDoesNotReplaceForAClockThatFellBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ca")
	first := programs.Got(Open(dir, local(noon)))(t)
	if _, err := Open(dir, local(time.Unix(0, 0))); err == nil || !strings.Contains(err.Error(), "clock") {
		t.Fatalf("Open in 1970: %v", err)
	}
	if again := programs.Got(Open(dir, local(noon)))(t); !bytes.Equal(first.RootPEM(), again.RootPEM()) {
		t.Error("the authority was replaced")
	}
}

// A crash while the authority is made leaves a directory beside, never half an
// authority; the next start clears it away.
func TestLeftoversOfACrashGo(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "ca")
	half := filepath.Join(parent, ".ca.new-123")
	programs.Must(t, os.Mkdir(half, 0o700))
	programs.Must(t, os.WriteFile(filepath.Join(half, IntermediateKeyFile), []byte("x"), 0o600))
	programs.Got(Open(dir, local(noon)))(t)
	entries := programs.Got(os.ReadDir(parent))(t)
	if len(entries) != 1 || entries[0].Name() != "ca" {
		t.Errorf("left behind: %v", entries)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{nil, {""}, {"*.localhost"}, {"127.0.0.1"}, {"localhost", "a b"}} {
		if _, err := Open(filepath.Join(t.TempDir(), "ca"), Options{Names: names}); err == nil {
			t.Errorf("an authority for %q was made", names)
		}
	}
	// Order and case of the names do not matter.
	dir := filepath.Join(t.TempDir(), "ca")
	first := programs.Got(Open(dir, Options{Names: []string{"b.example", "A.example."}, Now: stopped(noon)}))(t)
	if again := programs.Got(Open(dir, Options{Names: []string{"a.example", "b.example", "b.example"}, Now: stopped(noon)}))(t); !bytes.Equal(first.RootPEM(), again.RootPEM()) {
		t.Error("the same names in another order made another authority")
	}
}

func FuzzIssue(f *testing.F) {
	for _, s := range []string{"notes.localhost", "*.localhost", "LOCALHOST.", "a.example", "127.0.0.1", "é.localhost", "\x00.localhost"} {
		f.Add(s)
	}
	ca := programs.Got(Create(filepath.Join(f.TempDir(), "ca"), local(noon)))(f)
	f.Fuzz(func(t *testing.T, name string) {
		cert, err := ca.Issue(name)
		if err != nil {
			return
		}
		if got := cert.Leaf.DNSNames; len(got) != 1 || got[0] != normal(name) || strings.Contains(got[0], "*") {
			t.Fatalf("Issue(%q) is for %v", name, got)
		}
		if err := verify(ca, cert, normal(name), noon); err != nil {
			t.Fatalf("Issue(%q): %v", name, err)
		}
	})
}

package localca

import (
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// Three verifiers that have nothing in common with Go's read the same chain:
// OpenSSL (curl, Python, Ruby), and NSS (Firefox, and Chromium's trust store on
// Linux) as certutil.

func tool(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("this test needs %s: apt-get install %s", name, pkg)
	}
	return path
}

// chain writes root, intermediate and a leaf for name as PEM files.
func chain(t *testing.T, name string) (root, intermediate, leaf string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	ca := programs.Got(Open(dir, Options{Names: []string{"localhost"}}))(t)
	cert := programs.Got(ca.Issue("notes.maya.localhost"))(t)
	der := cert.Certificate[0]
	if name != "notes.maya.localhost" {
		forged := *cert.Leaf
		forged.DNSNames, forged.SerialNumber = []string{name}, nil
		c := programs.Got(sign(&forged, ca.intermediate, &ca.key.PublicKey, ca.key))(t)
		der = c.Raw
	}
	leaf = filepath.Join(dir, "leaf.pem")
	programs.Must(t, os.WriteFile(leaf, pem.EncodeToMemory(&pem.Block{Type: typeCertificate, Bytes: der}), 0o600))
	return filepath.Join(dir, RootFile), filepath.Join(dir, IntermediateFile), leaf
}

func TestOpenSSLAgrees(t *testing.T) {
	t.Parallel()
	openssl := tool(t, "openssl", "openssl")
	verify := func(name string) (string, error) {
		root, intermediate, leaf := chain(t, name)
		out, err := exec.Command(openssl, "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", name,
			"-CAfile", root, "-untrusted", intermediate, leaf).CombinedOutput()
		return string(out), err
	}
	if out, err := verify("notes.maya.localhost"); err != nil {
		t.Errorf("openssl refuses our chain: %v\n%s", err, out)
	}
	if out, err := verify("bank.example"); err == nil || !strings.Contains(out, "permitted subtree violation") {
		t.Errorf("openssl on a name outside the constraint: %v\n%s", err, out)
	}
}

func TestNSSAgrees(t *testing.T) {
	t.Parallel()
	certutil := tool(t, "certutil", "libnss3-tools")
	verify := func(name string) (string, error) {
		root, intermediate, leaf := chain(t, name)
		db := "sql:" + t.TempDir()
		run := func(args ...string) (string, error) {
			out, err := exec.Command(certutil, append(args, "-d", db)...).CombinedOutput()
			return string(out), err
		}
		for _, args := range [][]string{
			{"-N", "--empty-password"},
			{"-A", "-n", "root", "-t", "C,,", "-i", root},
			{"-A", "-n", "intermediate", "-t", ",,", "-i", intermediate},
			{"-A", "-n", "leaf", "-t", ",,", "-i", leaf},
		} {
			if out, err := run(args...); err != nil {
				t.Fatalf("certutil %v: %v\n%s", args, err, out)
			}
		}
		return run("-V", "-n", "leaf", "-u", "V", "-e", "-b", time.Now().UTC().Format("060102150405Z"))
	}
	if out, err := verify("notes.maya.localhost"); err != nil {
		t.Errorf("NSS refuses our chain: %v\n%s", err, out)
	}
	if out, err := verify("bank.example"); err == nil {
		t.Errorf("NSS accepts a name outside the constraint:\n%s", out)
	}
}

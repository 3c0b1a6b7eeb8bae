package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

func newAuthority(t *testing.T, serial int64) *Authority {
	t.Helper()
	key := programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprint("Test authority ", serial)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw := programs.Got(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	path := filepath.Join(t.TempDir(), "root.pem")
	programs.Must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600))
	return programs.Got(Open(path))(t)
}

func check(t *testing.T, a *Authority, want bool) {
	t.Helper()
	if got, err := a.Trusted(t.Context()); err != nil || got != want {
		t.Errorf("Trusted = %v, %v; want %v", got, err, want)
	}
}

func TestTrust(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	ours, other := newAuthority(t, 1), newAuthority(t, 2)
	check(t, ours, false)
	if err := ours.Distrust(t.Context()); err != nil {
		t.Errorf("nothing to take out: %v", err)
	}
	for range 2 {
		programs.Must(t, ours.Trust(t.Context()))
		check(t, ours, true)
	}
	// A verifier of certificates agrees, and for servers only.
	db := filepath.Join(home, ".pki", "nssdb")
	if out, err := certutil(t.Context(), db, "-V", "-u", "L", "-n", ours.nick()); err != nil {
		t.Errorf("the store does not trust it for servers: %v %s", err, out)
	}

	// A second data directory's authority is another one.
	check(t, other, false)
	programs.Must(t, other.Trust(t.Context()))
	programs.Must(t, ours.Distrust(t.Context()))
	check(t, ours, false)
	check(t, other, true)

	// Firefox is started for the first time afterwards.
	profile := filepath.Join(home, ".mozilla", "firefox", "x7.default-release")
	programs.Must(t, os.MkdirAll(profile, 0o700))
	programs.Got(certutil(t.Context(), profile, "-N", "--empty-password"))(t)
	check(t, other, false)
	programs.Must(t, other.Trust(t.Context()))
	check(t, other, true)
}

// TestAnImpostorIsNotTrusted: what has our name in the store need not be ours.
func TestAnImpostorIsNotTrusted(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	impostor, ours := newAuthority(t, 7), newAuthority(t, 7)
	programs.Must(t, impostor.Trust(t.Context()))
	check(t, ours, false)
}

func TestWithoutCertutil(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PATH", bin)
	a := newAuthority(t, 1)
	missing := func(install, says string) {
		t.Helper()
		_, seen := a.Trusted(t.Context())
		for name, err := range map[string]error{"Trusted": seen, "Trust": a.Trust(t.Context()), "Distrust": a.Distrust(t.Context())} {
			e, ok := errors.AsType[*MissingError](err)
			if !ok || e.Program != "certutil" || e.Install != install || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	missing("", "install the package that has it (libnss3-tools or nss-tools)")
	programs.Must(t, os.WriteFile(filepath.Join(bin, "apt"), nil, 0o755))
	missing("sudo apt install libnss3-tools", "'sudo apt install libnss3-tools' installs it")
}

// TestAStoreThatCannotBeRead: where it is not known whether a store still trusts the
// authority, nobody is told that none does.
func TestAStoreThatCannotBeRead(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	profile := filepath.Join(home, ".mozilla", "firefox", "x7.default-release")
	programs.Must(t, os.MkdirAll(profile, 0o700))
	programs.Must(t, os.WriteFile(filepath.Join(profile, storeFile), []byte("no database"), 0o600))
	a := newAuthority(t, 1)
	check(t, a, false)
	if err := a.Distrust(t.Context()); err == nil || !strings.Contains(err.Error(), profile) {
		t.Errorf("taken out of a store that cannot be read: %v", err)
	}
}

package main

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"porchlight/internal/commandline"
	"porchlight/test/pebble"
	"porchlight/test/programs"
)

// With --tls acme the auth host has a certificate of an authority, which came to
// the relay's own listener to make sure of it; after a restart it has it still,
// without asking again, and also where the store then has it, sealed by a key.
func TestACME(t *testing.T) {
	t.Parallel()
	a := pebble.Start(t)
	trust := filepath.Join(t.TempDir(), "pebble.pem")
	programs.Must(t, os.WriteFile(trust, a.Own, 0o600))
	dir := t.TempDir()
	serve := func(more ...string) *server {
		return startWith(t, []string{"SSL_CERT_FILE=" + trust}, dir, append(more, "--tls", "acme", "--acme-directory", a.Directory)...)
	}
	s := serve()
	ready := func() (int, string) { return fetch(t, probe(t), s.Metrics+"/readyz") }
	if status, text := ready(); status != http.StatusServiceUnavailable || !strings.Contains(text, "certificate") {
		t.Errorf("without a certificate: %d %s", status, text)
	}
	_, text, _ := net.SplitHostPort(s.addr)
	port := programs.Got(strconv.Atoi(text))(t)
	if _, text := fetch(t, probe(t), s.Metrics+"/metrics"); strings.Contains(text, "porchlight_certificate_ends") {
		t.Error("a certificate that is not there has an end")
	}
	a.LookAt(port)
	certificate := func(s *server) (serial string) {
		t.Helper()
		programs.Eventually(t, "a certificate", func() bool {
			conn, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: "control.porch.test", RootCAs: a.Roots})
			if err != nil {
				return false
			}
			defer conn.Close()
			leaf := conn.ConnectionState().PeerCertificates[0]
			if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "control.porch.test" {
				t.Errorf("the certificate is for %v", leaf.DNSNames)
			}
			serial = leaf.SerialNumber.String()
			return true
		})
		return serial
	}
	first := certificate(s)
	programs.Eventually(t, "readiness", func() bool { status, _ := ready(); return status == http.StatusOK })
	for _, name := range []string{"notes.maya.porch.test", "elsewhere.test"} {
		if conn, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: name, RootCAs: a.Roots}); err == nil {
			conn.Close()
			t.Errorf("%s has a certificate here", name)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "acme")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the directory: %v %v", info, err)
	}
	s.stop()
	if code, _, err := invoke(t, nil, "ca", "--data", dir); code != commandline.ExitRefused || !strings.Contains(err, "no certificate authority") {
		t.Errorf("ca: exit %d, %s", code, err)
	}

	s = serve()
	if again := certificate(s); again != first {
		t.Error("another certificate was ordered")
	}
	s.stop()

	key := filepath.Join(t.TempDir(), "seal-key")
	ok(t, "seal-key", "make", key)
	for range 2 { // the files are taken over, and are not needed any more
		s = serve("--seal-key", key)
		if again := certificate(s); again != first || a.Orders() != 1 {
			t.Errorf("taken over into the store it is another certificate, after %d orders", a.Orders())
		}
		s.stop()
		programs.Must(t, os.RemoveAll(filepath.Join(dir, "acme")))
	}
}

package connect

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/agent/certs"
	"porchlight/test/pebble"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// TestCertificatesAreOrdered: a connected computer has a certificate issued for
// each of its live names by an authority that comes through relay and tunnel to
// see it (RFC 8737), and for no other name; after a restart it has them still.
func TestCertificatesAreOrdered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, portText, _ := net.SplitHostPort(w.control.Listens[0])
	port := programs.Got(strconv.Atoi(portText))(t)
	authority := pebble.Start(t)
	authority.LookAt(port)
	f := programs.Got(os.OpenFile(w.caFile, os.O_APPEND|os.O_WRONLY, 0))(t)
	programs.Got(f.Write(authority.Own))(t)
	f.Close()

	agent := w.startAgent("--control", w.control.AuthURL, "--ca", w.caFile, "--acme-directory", authority.Directory)
	account := w.connect("cellar")
	w.publish()
	w.porchlight("approve", "notes")
	notes := w.handshake(t, authority, "notes."+account.Host)
	w.handshake(t, authority, account.Host)
	if leaf := notes.PeerCertificates[0]; len(leaf.DNSNames) != 1 {
		t.Errorf("the certificate is for %v", leaf.DNSNames)
	}

	trusted := w.roots.Clone()
	trusted.AppendCertsFromPEM(authority.Root)
	browser := visitor.New(trusted)
	defer browser.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	page, err := browser.SignIn(ctx, "https://notes."+account.Host, owner, w.mails)
	if err != nil || page.Status != http.StatusOK || page.Body != "notes of "+owner {
		t.Fatalf("the visit ended with %+v, %v", page, err)
	}

	// Nobody who asks for a name makes this computer order a certificate.
	conn, err := tls.Dial("tcp", w.control.Listens[0], &tls.Config{ServerName: "other." + hostOnly(account.Host), RootCAs: authority.Roots})
	if err == nil {
		conn.Close()
		t.Error("a name that is no app's has a certificate")
	}
	ordered, _ := filepath.Glob(w.path("data/acme/certificates/*/*"))
	for _, dir := range ordered {
		if name := filepath.Base(dir); name != hostOnly(account.Host) && name != "notes."+hostOnly(account.Host) {
			t.Errorf("a certificate of %s was ordered", name)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	if len(ordered) != 2 {
		t.Errorf("the certificates kept are %v", ordered)
	}

	// What doctor advises to publish names the account at this very authority.
	if account := certs.AccountURL(w.path("data/acme"), authority.Directory); !strings.HasPrefix(account, authority.URL+"/") {
		t.Errorf("the account is at %q, and the authority at %s", account, authority.Directory)
	}
	if account := certs.AccountURL(w.path("data/acme"), ""); account != "" {
		t.Errorf("an account at an authority that was never asked: %q", account)
	}

	if code := agent.Stop(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
	w.startAgent("--control", w.control.AuthURL, "--ca", w.caFile)
	again := w.handshake(t, authority, "notes."+account.Host)
	if !again.PeerCertificates[0].Equal(notes.PeerCertificates[0]) {
		t.Error("the certificate was ordered anew after a restart")
	}
}

func hostOnly(host string) string {
	name, _, _ := net.SplitHostPort(host)
	return name
}

// handshake waits until a name answers with a certificate of the authority.
func (w *world) handshake(t *testing.T, a *pebble.Authority, host string) (state tls.ConnectionState) {
	t.Helper()
	programs.Eventually(t, host+" has a certificate", func() bool {
		dialer := &net.Dialer{Timeout: 30 * time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", w.control.Listens[0], &tls.Config{ServerName: hostOnly(host), RootCAs: a.Roots})
		if err != nil {
			if strings.Contains(err.Error(), "x509") {
				t.Fatalf("%s: %v", host, err)
			}
			return false
		}
		defer conn.Close()
		state = conn.ConnectionState()
		return true
	})
	return state
}

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"porchlight/control/serve"
	"porchlight/test/nameserver"
	"porchlight/test/programs"
	"porchlight/test/resolver"
)

// An operator's check goes through the delegation, UDP and TCP, and a challenge from the store
// to resolvers, and says of each that is wrong what to type. The resolvers here are the server
// itself, what passes questions on to it, and one that knows nothing.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir, "--dns", "127.0.0.1:0", "--dns-zone", "porch.test", "--public-address", "127.0.0.1")
	_, port, _ := net.SplitHostPort(s.DNS)
	args := []string{"check", "--data", dir, "--domain", "porch.test", "--dns", ":" + port, "--dns-zone", "porch.test", "--public-address", "127.0.0.1"}
	good := append(args[:len(args):len(args)], "--resolver", "127.0.0.1:"+port, "--resolver", passesOn(t, s.DNS))
	findings := okJSON[[]serve.Finding](t, good...)
	if len(findings) != 4 {
		t.Errorf("found: %+v", findings)
	}
	if out := ok(t, good...); strings.Count(out, "ok  ") != 4 || !strings.Contains(out, "Challenges are seen") {
		t.Errorf("printed:\n%s", out)
	}

	elsewhere := programs.Got(resolver.New())(t)
	t.Cleanup(elsewhere.Close)
	code, out, said := invoke(t, nil, append(args[:len(args):len(args)], "--resolver", "127.0.0.1:"+port, "--resolver", elsewhere.Addr())...)
	if code != 1 || !strings.Contains(said, "not in order") {
		t.Errorf("with a resolver that knows nothing: %d %s", code, said)
	}
	for _, line := range []string{"!!  porch.test is not delegated", "porch.test. NS ns1.porch.test.", "ns2.porch.test. A 127.0.0.1", "!!  A challenge at _acme-challenge._check.porch.test"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	s.stop()
	code, out, _ = invoke(t, nil, good...)
	if code != 1 || !strings.Contains(out, "Nobody answers UDP at 127.0.0.1:"+port) || !strings.Contains(out, "ufw allow "+port+"/tcp") {
		t.Errorf("with nobody there: %d\n%s", code, out)
	}

	key := filepath.Join(t.TempDir(), "key")
	programs.Must(t, os.WriteFile(key, []byte(`key "k" { algorithm hmac-sha256; secret "c2l4dGVlbiBieXRlcyBvciBtb3Jl"; };`), 0o600))
	code, out, _ = invoke(t, nil, "check", "--domain", "porch.test", "--dns-update", programs.FreeAddress(t), "--dns-update-key", key)
	if code != 1 || !strings.Contains(out, "does not answer") {
		t.Errorf("another server that is away: %d\n%s", code, out)
	}
	if code, out, _ = invoke(t, nil, "check", "--domain", "porch.test"); code != 1 || !strings.Contains(out, "Nothing publishes challenges") {
		t.Errorf("without any: %d\n%s", code, out)
	}
}

// With --dns-update another server, which is running, is told of a challenge, resolvers see it, and
// it is taken away again. One that resolvers do not ask is told apart from one that takes none.
func TestCheckOfAnotherServer(t *testing.T) {
	t.Parallel()
	const text = "key \"porchlight\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2l4dGVlbiBieXRlcyBvciBtb3Jl\";\n};\n"
	bind := nameserver.BIND(t, "porch.test", text)
	key := filepath.Join(t.TempDir(), "key")
	programs.Must(t, os.WriteFile(key, []byte(text), 0o600))
	args := []string{"check", "--domain", "porch.test", "--dns-update", bind, "--dns-update-key", key}
	good := append(args[:len(args):len(args)], "--resolver", bind, "--resolver", nameserver.Unbound(t, map[string][]string{"porch.test": {bind}}, ""))
	if out := ok(t, good...); strings.Count(out, "ok  ") != 2 || !strings.Contains(out, "takes challenges") || !strings.Contains(out, "Challenges are seen") {
		t.Errorf("printed:\n%s", out)
	}
	if a := programs.Got(dns.Exchange(new(dns.Msg).SetQuestion("_acme-challenge._check.porch.test.", dns.TypeTXT), bind))(t); len(a.Answer) != 0 {
		t.Errorf("it is left there: %v", a.Answer)
	}
	programs.Must(t, os.WriteFile(key, []byte(strings.Replace(text, "c2l4", "c2l5", 1)), 0o600))
	if code, out, _ := invoke(t, nil, good...); code != 1 || !strings.Contains(out, "!!  ") || !strings.Contains(out, "do not trust each other's key") {
		t.Errorf("with another key: %d\n%s", code, out)
	}
}

// passesOn is a resolver that asks one server.
func passesOn(t *testing.T, server string) (address string) {
	t.Helper()
	l := programs.Got(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	up, ended := make(chan struct{}), make(chan struct{})
	r := &dns.Server{PacketConn: l, NotifyStartedFunc: func() { close(up) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		if a, err := dns.Exchange(q, server); err == nil {
			_ = w.WriteMsg(a) // whoever asked may be gone
		}
	})}
	go func() { defer close(ended); _ = r.ActivateAndServe() }() // it ends by Shutdown
	<-up
	t.Cleanup(func() { _ = r.Shutdown(); <-ended })
	return l.LocalAddr().String()
}

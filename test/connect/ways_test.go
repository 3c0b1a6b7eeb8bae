package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"porchlight/test/nameserver"
	"porchlight/test/pebble"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// TestCertificatesByEachWay: three certificates of a computer by each way that there is. Those of
// three names come by the relay. Then a challenge in the DNS, of the control plane's own, which
// unbound asks, or of BIND, which takes changes by a key, has one of all names, and two that
// follow it when the authority says so. A WebSocket of before stays open through all of it, and
// through the way back.
func TestCertificatesByEachWay(t *testing.T) {
	t.Parallel()
	for way, begin := range map[string]func(*testing.T, *world) nameServer{"by its own DNS": ownServer, "by BIND": operatorsServer} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.app = talkative(t)
			w.certifiedBy(t, begin(t, w))
		})
	}
}

// nameServer is who answers for challenges.
type nameServer struct {
	flags   []string // of a control plane that has them answered
	told    string   // host:port of who knows them at once
	asked   string   // host:port of who the authority asks
	answers map[string]string
}

// ownServer is the control plane itself, behind a resolver.
func ownServer(t *testing.T, w *world) nameServer {
	at := "127.0.0.2:" + strconv.Itoa(programs.FreePort(t)) // see nameserver.Unbound
	return nameServer{
		flags: []string{"--dns", at, "--dns-zone", "porch.localhost", "--public-address", "127.0.0.1"},
		told:  at, asked: nameserver.Unbound(t, map[string][]string{"porch.localhost": {at}}, ""),
		answers: map[string]string{"A notes.cellar.": "127.0.0.1", "NS ": "ns1.porch.localhost. ns2.porch.localhost.", "TXT cellar.": ""},
	}
}

// operatorsServer is BIND.
func operatorsServer(t *testing.T, w *world) nameServer {
	const key = "key \"porchlight\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIGl0\";\n};\n"
	programs.Must(t, os.WriteFile(w.path("dns-key"), []byte(key), 0o600))
	at := nameserver.BIND(t, "porch.localhost", key)
	return nameServer{flags: []string{"--dns-update", at, "--dns-update-key", w.path("dns-key")}, told: at, asked: at}
}

func (w *world) certifiedBy(t *testing.T, server nameServer) {
	listen := w.control.Listens[0]
	_, portText, _ := net.SplitHostPort(listen)
	authority := pebble.Start(t)
	authority.LookAt(programs.Got(strconv.Atoi(portText))(t))
	authority.AskForTexts(server.asked)
	f := programs.Got(os.OpenFile(w.caFile, os.O_APPEND|os.O_WRONLY, 0))(t)
	programs.Got(f.Write(authority.Own))(t)
	f.Close()
	w.startAgent("--control", w.control.AuthURL, "--ca", w.caFile, "--acme-directory", authority.Directory)
	account := w.connect("cellar")
	notes, root := "notes."+account.Host, hostOnly(account.Host)
	w.publish()
	w.porchlight("publish", "wiki", "--label", "Wiki", "--port", w.app.URL[strings.LastIndexByte(w.app.URL, ':')+1:])
	w.porchlight("approve", "notes")
	w.porchlight("approve", "wiki")
	for _, host := range []string{account.Host, notes, "wiki." + account.Host} {
		if leaf := w.handshake(t, authority, host).PeerCertificates[0]; !slices.Equal(leaf.DNSNames, []string{hostOnly(host)}) {
			t.Errorf("by the relay %s has a certificate of %v", host, leaf.DNSNames)
		}
	}
	trusted := w.roots.Clone()
	trusted.AppendCertsFromPEM(authority.Root)
	browser := visitor.New(trusted)
	defer browser.Close()
	programs.Got(browser.SignIn(t.Context(), "https://"+notes+"/", owner, w.mails))(t)

	// From now on there are challenges in the DNS, and somebody comes all the time.
	authority.Live(4 * time.Minute)
	authority.Renew(2 * time.Second)
	before, said := authority.Orders(), authority.Suggested()
	release := authority.HoldChallenges()
	defer release()
	came := comes(t, listen, authority, notes)
	w.restartControl(listen, server.flags...)
	// One is for the computer's name, and the other for the names below it.
	var texts []string
	programs.Eventually(t, "both challenges are in the DNS", func() bool {
		texts, _ = lookUpTexts(t, server.told, "_acme-challenge."+root)
		return len(texts) == 2
	})
	for i := range texts {
		texts[i] = strconv.Quote(texts[i])
	}
	slices.Sort(texts)
	if seen := nameserver.Dig(t, server.asked, "TXT", "_acme-challenge."+root); !slices.Equal(seen, texts) {
		t.Errorf("of %q dig finds %q", texts, seen)
	}
	for ask, want := range server.answers {
		kind, name, _ := strings.Cut(ask, " ")
		if got := strings.Join(nameserver.Dig(t, server.asked, kind, name+"porch.localhost"), " "); got != want {
			t.Errorf("dig finds %q at %s", got, ask)
		}
	}
	shown, talk := w.talks(t, authority, browser, notes)
	if len(shown.DNSNames) != 1 {
		t.Errorf("before it is there a WebSocket has the certificate of %v", shown.DNSNames)
	}
	release()
	var last *x509.Certificate
	for i := range 3 {
		last = w.awaitCertificate(t, authority, notes, func(leaf *x509.Certificate) bool {
			return slices.Equal(slices.Sorted(slices.Values(leaf.DNSNames)), []string{"*." + root, root}) && !leaf.Equal(last)
		})
		talk(fmt.Sprintf("with the common certificate %d", i+1))
		if i == 1 { // the next one is to last until somebody has come by it
			programs.Eventually(t, "the agent asks of the second one", func() bool { return authority.Suggested() >= said+2 })
			authority.Renew(15 * time.Second)
		}
	}
	if n := authority.Orders() - before; n < 3 || n > 4 {
		t.Errorf("%d certificates were ordered", n)
	}

	// And back: whoever came by the common one stays, others have the app's own again.
	w.restartControl(listen)
	programs.Eventually(t, "the relay brings visitors again", func() bool {
		return w.handshake(t, authority, notes).PeerCertificates[0].Equal(last)
	})
	shown, talk = w.talks(t, authority, browser, notes)
	if !shown.Equal(last) {
		t.Errorf("a WebSocket has the certificate of %v", shown.DNSNames)
	}
	w.awaitCertificate(t, authority, notes, func(leaf *x509.Certificate) bool { return len(leaf.DNSNames) == 1 })
	talk("with a certificate of its own")
	if turned := came(); turned != 0 {
		t.Errorf("somebody was shown a certificate that is not good %d times", turned)
	}
}

// talks opens a WebSocket as somebody who is signed in, and says what certificate it was shown;
// talk says something, and wants to hear it.
func (w *world) talks(t *testing.T, a *pebble.Authority, browser *visitor.Visitor, host string) (shown *x509.Certificate, talk func(text string)) {
	t.Helper()
	address := "https://" + host + "/socket"
	at, _ := url.Parse(address)
	header := http.Header{"Origin": {"https://" + host}}
	for _, cookie := range browser.Cookies(at) {
		header.Add("Cookie", cookie.Name+"="+cookie.Value)
	}
	transport := &http.Transport{DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dialer := &tls.Dialer{Config: &tls.Config{ServerName: hostOnly(host), RootCAs: a.Roots, NextProtos: []string{"http/1.1"}}}
		conn, err := dialer.DialContext(ctx, "tcp", w.control.Listens[0])
		if err == nil {
			shown = conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
		}
		return conn, err
	}}
	conn, resp, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}, HTTPHeader: header})
	if err != nil {
		t.Fatalf("a WebSocket: %v, %v", resp, err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	talk = func(text string) {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, said, err := conn.Read(t.Context()); err != nil || string(said) != "you said "+text {
			t.Fatalf("%q is answered by %q, %v", text, said, err)
		}
	}
	talk("hello")
	return shown, talk
}

// Package pebble runs Pebble, an ACME authority for tests, in the process of the
// test. Every name is this computer to it, and it makes sure of one by coming to
// a port of this computer. A program that is given the directory before its port
// is known may be started at once: whoever asks the authority before LookAt
// waits.
package pebble

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/core"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"porchlight/test/programs"
)

// Authority is a running Pebble. It ends with its test, whose own goroutine calls its
// methods.
type Authority struct {
	URL       string         // of the server, no path
	Directory string         // URL of the ACME directory
	Own       []byte         // PEM: the certificate of the server itself
	Root      []byte         // PEM: of the certificates it issues
	Roots     *x509.CertPool // the same, and those of earlier issuers

	store     *db.MemoryStore
	issuer    *ca.CAImpl
	validator *va.VAImpl
	resolver  string                 // host:port of a DNS server
	texts     atomic.Pointer[string] // host:port of another one, asked for records TXT
	known     chan struct{}          // closed once front is set
	front     atomic.Pointer[http.Handler]
	orders    atomic.Int64
	renew     atomic.Int64                  // see Renew, a time.Duration
	suggested atomic.Int64                  // how often it was said
	held      atomic.Pointer[chan struct{}] // see HoldChallenges
}

// Start runs an authority. It answers nobody until LookAt is called.
func Start(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{store: db.NewMemoryStore(), known: make(chan struct{}), Roots: x509.NewCertPool()}
	a.resolver = a.everyNameIsHere(t)
	a.Live(0)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-a.known:
			a.hold(r)
			if a.suggests(w, r) {
				return
			}
			counted := &counter{ResponseWriter: w, path: r.URL.Path, orders: &a.orders}
			(*a.front.Load()).ServeHTTP(counted, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	a.URL = server.URL
	a.Directory = server.URL + wfe.DirectoryPath
	a.Own = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return a
}

// LookAt tells it, once, the port of this computer where the names it is asked
// about are served.
func (a *Authority) LookAt(port int) {
	os.Setenv("PEBBLE_VA_NOSLEEP", "1") // or each name takes it some seconds
	os.Setenv("PEBBLE_AUTHZREUSE", "0") // or half of the names, by chance, need no challenge again
	a.validator = va.New(quiet(), 1, port, true, a.resolver, a.store)
	a.serve()
	close(a.known)
}

// AskForTexts has it look for challenges in the DNS (DNS-01) at a server.
func (a *Authority) AskForTexts(server string) { a.texts.Store(&server) }

// Live has certificates issued from now on that live so long; zero for 90 days. They
// are of another root.
func (a *Authority) Live(life time.Duration) {
	profile := ca.Profile{Description: "the only one", ValidityPeriod: uint64(life / time.Second)}
	a.issuer = ca.New(quiet(), a.store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": profile})
	a.Root = a.issuer.GetRootCert(0).PEM()
	a.Roots.AppendCertsFromPEM(a.Root)
	if a.validator != nil {
		a.serve()
	}
}

// Orders is how many orders it has taken.
func (a *Authority) Orders() int { return int(a.orders.Load()) }

// Renew has it say of each certificate, to whoever asks (RFC 9773), that it is to be renewed so
// long after they asked, and some seconds more; zero for what Pebble says.
func (a *Authority) Renew(after time.Duration) { a.renew.Store(int64(after)) }

// Suggested is how often it has said so.
func (a *Authority) Suggested() int { return int(a.suggested.Load()) }

// suggests answers such a question.
func (a *Authority) suggests(w http.ResponseWriter, r *http.Request) bool {
	after := time.Duration(a.renew.Load())
	if after == 0 || !strings.Contains(r.URL.Path, "/renewalInfo/") {
		return false
	}
	a.suggested.Add(1)
	start := time.Now().Add(after)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(core.RenewalInfo{SuggestedWindow: core.SuggestedWindow{Start: start, End: start.Add(3 * time.Second)}})
	return true
}

// HoldChallenges has whoever says that a challenge is in its place wait until release is called.
func (a *Authority) HoldChallenges() (release func()) {
	held := make(chan struct{})
	a.held.Store(&held)
	return sync.OnceFunc(func() { a.held.Store(nil); close(held) })
}

func (a *Authority) hold(r *http.Request) {
	if held := a.held.Load(); held != nil && strings.HasPrefix(r.URL.Path, "/chalZ/") {
		select {
		case <-*held:
		case <-r.Context().Done():
		}
	}
}

func (a *Authority) serve() {
	front := wfe.New(quiet(), a.store, a.validator, a.issuer, []string{"pebble.test"}, true, false, 1, 1)
	handler := front.Handler()
	a.front.Store(&handler)
}

// counter counts orders that were taken.
type counter struct {
	http.ResponseWriter
	path   string
	orders *atomic.Int64
}

func (c *counter) WriteHeader(status int) {
	if c.path == "/order-plz" && status == http.StatusCreated {
		c.orders.Add(1)
	}
	c.ResponseWriter.WriteHeader(status)
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// everyNameIsHere runs a DNS server for which every name is 127.0.0.1, and which asks another
// one for records TXT.
func (a *Authority) everyNameIsHere(t testing.TB) (addr string) {
	t.Helper()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	started := make(chan struct{})
	server := &dns.Server{Listener: l, NotifyStartedFunc: func() { close(started) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if at := a.texts.Load(); at != nil && q.Question[0].Qtype == dns.TypeTXT {
			if said, err := dns.Exchange(q, *at); err == nil {
				m = said
			}
		}
		for _, question := range q.Question {
			if question.Qtype == dns.TypeA {
				m.Answer = append(m.Answer, &dns.A{
					Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(127, 0, 0, 1),
				})
			}
		}
		_ = w.WriteMsg(m) // whoever asked may be gone
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.ActivateAndServe() }() // it ends by Shutdown
	<-started
	t.Cleanup(func() { _ = server.Shutdown(); l.Close(); <-ended })
	return l.Addr().String()
}

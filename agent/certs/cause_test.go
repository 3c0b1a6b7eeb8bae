package certs

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mholt/acmez/v3/acme"
)

// TestCauseOfNoCertificate: what kept a name from its certificate is a sentence with what
// helps, in the words of people.
func TestCauseOfNoCertificate(t *testing.T) {
	t.Parallel()
	const name = "notes.maya.porch.example"
	problem := func(kind, detail string) error {
		return fmt.Errorf("[%s] Obtain: %w", name, acme.Problem{Type: acme.ProblemTypeNamespace + kind, Status: 400, Detail: detail})
	}
	away := &url.Error{Op: "Get", URL: "https://acme-v02.api.letsencrypt.org/directory", Err: fmt.Errorf("no route to host")}
	const own = "notes.maya.net" // its DNS is the owner's
	for _, c := range []struct {
		directory, name string
		err             error
		says            string
	}{
		{"https://ca.home.example:9000/acme/dir", own, problem("dns", "NXDOMAIN"), "ca.home.example:9000 says that it finds no address of notes.maya.net. Look at its records where the domain is registered."},
		{"", own, problem("unauthorized", "Incorrect validation certificate"), "does not lead to this computer. Look at its records where the domain is registered."},
		{"https://ca.home.example:9000/acme/dir", own, problem("caa", "CAA record prevents issuance"), "The DNS of notes.maya.net does not let ca.home.example:9000 give certificates (CAA). Allow it where the domain is registered."},
		{"", own, problem("rateLimited", "too many certificates"), "gives no more certificates here for now"},
		{"", name, problem("dns", "NXDOMAIN looking up A for "+name), "Let's Encrypt says that it finds no address of " + name + ". That is set in the DNS: ask whoever runs your server."},
		{"", name, problem("connection", "refused"), "does not lead to this computer"},
		{"", name, problem("unauthorized", "Incorrect validation certificate"), "does not lead to this computer"},
		{"", name, problem("caa", "CAA record prevents issuance"), "does not let Let's Encrypt give certificates (CAA)"},
		{"", name, problem("rateLimited", "too many certificates"), "gives no more certificates here for now"},
		{"", name, problem("serverInternal", "oops"), "has a fault of its own"},
		{"", name, acme.Problem{Status: 503}, "has a fault of its own"},
		{"", name, problem("rejectedIdentifier", "Policy forbids\x1b issuing."), "Let's Encrypt says: “Policy forbids issuing”."},
		{"", name, problem("rejectedIdentifier", strings.Repeat("é", maxDetail)), "é…”."},
		{"", name, acme.Problem{Type: acme.ProblemTypeCompound, Subproblems: []acme.Subproblem{{Problem: acme.Problem{Type: acme.ProblemTypeDNS}}}}, "finds no address"},
		{"", name, fmt.Errorf("get: %w", away), "Let's Encrypt cannot be reached from here. Look whether this computer is online."},
		{"", name, fmt.Errorf("get: %w", &url.Error{Err: x509.CertificateInvalidError{Reason: x509.Expired}}), "Set the clock right."},
		{"", name, context.DeadlineExceeded, "did not answer in time"},
		{"", "notes.maya.localhost", fmt.Errorf("subject does not qualify"), "names of the internet alone"},
		{"https://ca.home.example:9000/acme/dir", name, away, "ca.home.example:9000 cannot be reached"},
		{"", name, fmt.Errorf("anything"), "Porchlight's log says more."},
	} {
		a := NewACME(ACMEConfig{Directory: c.directory, Own: Names{Root: func() string { return "maya.porch.example" }}.OwnersDNS})
		if said := a.cause(c.name, c.err).String(); !strings.Contains(said, c.says) {
			t.Errorf("of %v the owner is told %q, not %q", c.err, said, c.says)
		}
	}
}

// TestOwnerTriesAgain: who presses Try now does not wait out a rest of an hour, nor has an
// authority asked each second, nor one that counts. Names refused for one reason are one
// sentence.
func TestOwnerTriesAgain(t *testing.T) {
	t.Parallel()
	kind := atomic.Value{}
	kind.Store(acme.ProblemTypeDNS)
	directory := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(acme.Problem{Type: kind.Load().(string), Status: http.StatusForbidden})
	}))
	defer directory.Close()
	roots := x509.NewCertPool()
	roots.AddCert(directory.Certificate())
	now := time.Now()
	told := make(chan struct{}, 8)
	a := NewACME(ACMEConfig{
		Dir: t.TempDir(), Directory: directory.URL, RootCAs: roots, Now: func() time.Time { return now },
		Allowed:   func(string) bool { return true },
		OnTrouble: func() { told <- struct{}{} },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, func() []string { return nil }, nil) }()
	defer func() { cancel(); <-ended }()
	tried := func(name string) bool {
		if err := shake(t, a, name); err == nil {
			t.Fatal("there is a certificate nobody issued")
		}
		select {
		case <-told:
			return true
		default:
			return false
		}
	}

	if !tried("notes.maya.test") || !tried("wiki.maya.test") {
		t.Fatal("a name was not tried")
	}
	said := a.Trouble().String()
	if !strings.Contains(said, "notes.maya.test and wiki.maya.test: ") || strings.Count(said, "finds no address") != 1 {
		t.Errorf("of two names with one reason the owner is told %q", said)
	}
	if s, _ := a.State("wiki.maya.test"); !strings.Contains(s.Problem.String(), "no address of wiki.maya.test") {
		t.Errorf("of one of them alone %q", s.Problem)
	}
	a.Again()
	if tried("notes.maya.test") {
		t.Error("within the minute it was tried again")
	}
	now = now.Add(firstRest)
	if !tried("notes.maya.test") { // rests twice as long
		t.Error("after its rest it was not tried")
	}
	now = now.Add(firstRest)
	if tried("notes.maya.test") {
		t.Error("in its second minute it was tried by itself")
	}
	a.Again()
	kind.Store(acme.ProblemTypeRateLimited)
	if !tried("notes.maya.test") {
		t.Error("the owner's wish was not heard")
	}
	now = now.Add(firstRest)
	a.Again()
	if tried("notes.maya.test") {
		t.Error("an authority that counts was asked")
	}
}

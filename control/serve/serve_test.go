package serve

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/control"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/internal/localca"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Stopping(m)) }

func TestComplete(t *testing.T) {
	t.Parallel()
	base := func() Config {
		return Config{DataDir: "d", Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:8443", ":9443"}}
	}
	c := base()
	programs.Must(t, c.Complete())
	if c.AuthHost != "control.porch.test" || c.PublicPort != 8443 || c.TLS != TLSInternal || c.Grace != DefaultGrace || c.Log == nil {
		t.Errorf("%+v", c)
	}
	for what, change := range map[string]func(*Config){
		"no store":                      func(c *Config) { c.DataDir = "" },
		"no domain":                     func(c *Config) { c.Domain = "" },
		"no address":                    func(c *Config) { c.Listen = nil },
		"an address without port":       func(c *Config) { c.Listen = []string{"127.0.0.1"} },
		"a port that is a word":         func(c *Config) { c.Listen = []string{":https"} },
		"a port too high":               func(c *Config) { c.PublicPort = 65536 },
		"a mode unknown":                func(c *Config) { c.TLS = "acme2" },
		"an authority that cannot":      func(c *Config) { c.TLS, c.PublicPort = TLSACME, 8443 },
		"a key that seals nothing":      func(c *Config) { c.SealKey = "k" },
		"a directory for nobody":        func(c *Config) { c.ACMEDirectory = "https://acme.example" },
		"acme and files":                func(c *Config) { c.TLS, c.PublicPort, c.CertFile = TLSACME, 443, "c" },
		"files without files":           func(c *Config) { c.TLS = TLSFiles },
		"files without a key":           func(c *Config) { c.TLS, c.CertFile = TLSFiles, "c" },
		"files, but internal":           func(c *Config) { c.CertFile = "c" },
		"an authority nowhere":          func(c *Config) { c.DataDir, c.Postgres = "", "postgres:///x" },
		"a tunnel address of sort":      func(c *Config) { c.TunnelAddress = "relay.example" },
		"metrics for everybody":         func(c *Config) { c.Metrics = ":9100" },
		"metrics for a network":         func(c *Config) { c.Metrics = "192.0.2.1:9100" },
		"metrics on some host":          func(c *Config) { c.Metrics = "metrics.example:9100" },
		"two ways for mails":            func(c *Config) { c.Mail = MailConfig{SMTP: "smtp://mail.example", OutboxDir: "d"} },
		"a sender and no server":        func(c *Config) { c.Mail.MailFrom = "a@b.example" },
		"a password for nobody":         func(c *Config) { c.Mail.SMTPPassword = "x" },
		"an admin address without port": func(c *Config) { c.AdminAddress = "10.0.0.1" },
		"a negative wait":               func(c *Config) { c.DrainWait = -time.Second },
	} {
		c := base()
		change(&c)
		if err := c.Complete(); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

func TestCompleteTakes(t *testing.T) {
	t.Parallel()
	base := Config{DataDir: "d", Naming: control.Naming{Domain: "porch.test"}, Listen: []string{":443"}}
	for _, metrics := range []string{"127.0.0.1:9100", "localhost:9100", "[::1]:9100"} {
		c := base
		c.Metrics = metrics
		if err := c.Complete(); err != nil {
			t.Errorf("--metrics %s: %v", metrics, err)
		}
	}
	c := base
	c.Metrics, c.MetricsExposed = "10.0.0.1:9100", true
	if err := c.Complete(); err != nil {
		t.Error(err)
	}
	c = base
	c.Mail.SMTP = "smtp://mail.example"
	if err := c.Complete(); err != nil || c.Mail.MailFrom != `"Porchlight" <porchlight@control.porch.test>` {
		t.Errorf("%q %v", c.Mail.MailFrom, err)
	}
}

// What Open opened before it failed is given back.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	taken := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	dir := t.TempDir()
	cfg := Config{DataDir: dir, Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}, Metrics: taken.Addr().String()}
	if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "choose another address (--metrics)") {
		t.Fatalf("Open on a port that is taken: %v", err)
	}
	cfg.Metrics = ""
	n := programs.Got(Open(t.Context(), cfg))(t)
	if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Open of a directory in use: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// writePair has a new certificate for host in the files.
func writePair(t *testing.T, ca *localca.CA, host, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	pair := programs.Got(ca.Issue(host))(t)
	key := programs.Got(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		programs.Must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return pair.Leaf
}

// TestPortTaken leaves a new directory empty; and of one that another server
// holds, that is what the operator reads.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	programs.Must(t, err)
	defer taken.Close()
	cfg := Config{DataDir: t.TempDir(), Naming: control.Naming{Domain: "porch.test"}, Listen: []string{taken.Addr().String()}}
	refused := func(want string) {
		t.Helper()
		n, err := Open(t.Context(), cfg)
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with its port taken: %v, want %q", err, want)
		}
	}
	refused("another program does")
	if left, err := os.ReadDir(cfg.DataDir); err != nil || len(left) > 0 {
		t.Errorf("%d files were left behind, %v", len(left), err)
	}
	store := programs.Got(kv.Open(t.Context(), filepath.Join(cfg.DataDir, StoreFile), kv.Options{}))(t)
	refused("in use by another process")
	// As a program of before left it: with no number of its format.
	format := kv.FormatKeys()[0]
	programs.Must(t, store.Update(t.Context(), func(tx kv.Tx) error { return tx.Delete(format) }))
	programs.Must(t, store.Close())
	refused("another program does")
	err = kv.Look(t.Context(), filepath.Join(cfg.DataDir, StoreFile), kv.Options{}, func(tx kv.Tx) error {
		_, err := tx.Get(format)
		return err
	})
	if !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a program that could not start has changed the rows: %v", err)
	}
}

// Renewed files are served without being told; broken ones never are.
func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	const host = "control.porch.test"
	ca := programs.Got(localca.Open(filepath.Join(t.TempDir(), "ca"), localca.Options{Names: []string{"porch.test"}}))(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	log := slog.New(slog.DiscardHandler)
	if _, err := fromFiles(certFile, keyFile, host, log); err == nil {
		t.Error("files that are not there were taken")
	}
	writePair(t, ca, "other.porch.test", certFile, keyFile)
	if _, err := fromFiles(certFile, keyFile, host, log); err == nil || !strings.Contains(err.Error(), "not for the host") {
		t.Errorf("another host's certificate: %v", err)
	}
	lastYear := func() time.Time { return time.Now().AddDate(-1, 0, 0) }
	old, err := localca.Open(filepath.Join(t.TempDir(), "old"), localca.Options{Names: []string{"porch.test"}, Now: lastYear})
	programs.Must(t, err)
	writePair(t, old, host, certFile, keyFile)
	if _, err := fromFiles(certFile, keyFile, host, log); err == nil || !strings.Contains(err.Error(), "expired on") {
		t.Errorf("a certificate of last year: %v", err)
	}
	first := writePair(t, ca, host, certFile, keyFile)
	c := programs.Got(fromFiles(certFile, keyFile, host, log))(t)
	now := time.Now()
	c.now = func() time.Time { return now }
	served := func() *x509.Certificate {
		t.Helper()
		cert := programs.Got(c.get(nil))(t)
		return cert.Leaf
	}
	second := writePair(t, ca, host, certFile, keyFile)
	if !served().Equal(first) {
		t.Error("the files are read at every handshake")
	}
	now = now.Add(lookEvery)
	if !served().Equal(second) {
		t.Error("a renewed certificate is not served")
	}
	programs.Must(t, os.WriteFile(keyFile, []byte("half"), 0o600))
	now = now.Add(lookEvery)
	if !served().Equal(second) {
		t.Error("the old certificate does not outlive a broken file")
	}
	third := writePair(t, ca, host, certFile, keyFile)
	now = now.Add(lookEvery)
	if !served().Equal(third) {
		t.Error("a mended certificate is not served")
	}
}

func TestCertificateOfAuthority(t *testing.T) {
	t.Parallel()
	const host = "control.porch.test"
	now := time.Now()
	clock := func() time.Time { return now }
	ca := programs.Got(localca.Open(filepath.Join(t.TempDir(), "ca"), localca.Options{Names: []string{host}, Now: clock}))(t)
	c := programs.Got(fromAuthority(ca, host, slog.New(slog.DiscardHandler)))(t)
	c.now = clock
	first := programs.Got(c.get(nil))(t)
	for _, step := range []struct {
		ahead time.Duration
		same  bool
	}{{24 * time.Hour, true}, {45 * 24 * time.Hour, true}, {70 * 24 * time.Hour, false}} {
		now = first.Leaf.NotBefore.Add(step.ahead)
		got := programs.Got(c.get(nil))(t)
		if same := got == first; same != step.same {
			t.Errorf("after %v: the same certificate: %t", step.ahead, same)
		}
	}
}

// Each mail becomes one file, once, over restarts, even when it was removed.
func TestOutboxFiles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := programs.Got(kv.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), kv.Options{}))(t)
	defer store.Close()
	now := time.Now()
	outbox := mail.NewOutbox(store, func() time.Time { return now })
	put := func(id, text string) {
		t.Helper()
		now = now.Add(time.Hour)
		programs.Must(t, store.Update(ctx, func(tx kv.Tx) error {
			return outbox.Put(tx, id, mail.Message{To: "anna@example.net", Subject: "Hello", Text: text})
		}))
	}
	dir := filepath.Join(t.TempDir(), "mails")
	log := slog.New(slog.DiscardHandler)
	names := func() []string {
		t.Helper()
		return programs.Got(filepath.Glob(filepath.Join(dir, "*")))(t)
	}
	open := func() *outboxFiles {
		t.Helper()
		o := programs.Got(newOutboxFiles(dir, outbox, log))(t)
		programs.Must(t, o.look(ctx))
		return o
	}
	put("1", "one")
	put("2", "two")
	o := open()
	if got := names(); len(got) != 2 {
		t.Fatalf("files: %v", got)
	}
	text, err := os.ReadFile(names()[0])
	if err != nil || !strings.HasPrefix(string(text), "To: anna@example.net\nSubject: Hello\nDate: ") || !strings.HasSuffix(string(text), "\n\none") {
		t.Errorf("%q %v", text, err)
	}
	if info, err := os.Stat(names()[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	programs.Must(t, os.Remove(names()[0]))
	programs.Must(t, o.look(ctx))
	open()
	if got := names(); len(got) != 1 {
		t.Errorf("a removed mail came back: %v", got)
	}
	put("3", "three")
	open()
	if got := names(); len(got) != 2 {
		t.Errorf("after a third: %v", got)
	}
	// Run writes what is there when it is told to end.
	put("4", "four")
	o = &outboxFiles{dir: dir, outbox: outbox, log: log, written: map[string]bool{}, since: now}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := o.run(over); err != nil {
		t.Error(err)
	}
	if got := names(); len(got) != 3 {
		t.Errorf("after the end: %v", got)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	store := programs.Got(kv.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), kv.Options{}))(t)
	defer store.Close()
	h := &health{store: store}
	tell := func(handle http.HandlerFunc, want int, sentence string) {
		t.Helper()
		w := httptest.NewRecorder()
		handle(w, httptest.NewRequest(http.MethodGet, "/", nil))
		body, err := io.ReadAll(w.Result().Body)
		if err != nil || w.Code != want || !strings.Contains(string(body), sentence) {
			t.Errorf("%d %s %v, want %d", w.Code, body, err, want)
		}
	}
	ask := func(want int, sentence string) { t.Helper(); tell(h.ready, want, sentence) }
	live := func(want int, sentence string) { t.Helper(); tell(h.live, want, sentence) }
	ask(200, "It serves.")
	certified := false
	h.certified = func() bool { return certified }
	ask(503, "has not issued a certificate yet")
	live(503, "has not issued a certificate yet")
	certified = true
	ask(200, "It serves.")
	programs.Must(t, store.Close())
	ask(503, "The store does not answer.")
	live(200, "It serves visitors.")
	nobody := true
	h.nobody = func() bool { return nobody }
	live(503, "Neither the database nor any other node answers, and no computer is connected here.")
	nobody = false
	live(200, "It serves visitors.")
	h.draining.Store(true)
	ask(503, "It is shutting down.")
	live(503, "It is shutting down.")
}

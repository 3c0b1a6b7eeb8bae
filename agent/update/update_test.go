package update_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/update"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

var epoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// here is where the address listens.
var here = netip.MustParseAddr("127.0.0.1")

// world is an address that says something, and a computer that asks it.
type world struct {
	t       *testing.T
	server  *httptest.Server
	key     ed25519.PrivateKey
	checker *update.Checker
	changes *broadcast.Signal
	asked   chan *http.Request
	// allowed is update.Config.Allowed, from the next open on.
	allowed func(netip.Addr) bool

	mu     sync.Mutex // protects what follows
	file   []byte
	answer http.HandlerFunc // in place of file
	now    time.Time
	looked chan struct{} // gets one for each look at who is chosen; nil for none
	kept   update.Kept
	chosen controlapi.UpdateNotice  // by the owner
	theirs *controlapi.UpdateNotice // by the operator
}

func newWorld(t *testing.T) *world {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	programs.Must(t, err)
	w := &world{t: t, key: private, changes: &broadcast.Signal{}, asked: make(chan *http.Request, 20), now: epoch,
		allowed: func(at netip.Addr) bool { return at == here }}
	w.server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		file, answer := w.file, w.answer
		w.mu.Unlock()
		if answer != nil && r.URL.Path == "/update.json" {
			answer(rw, r)
		} else {
			rw.Write(file)
		}
		w.asked <- r
	}))
	t.Cleanup(w.server.Close)
	w.chosen = controlapi.UpdateNotice{Address: w.server.URL + "/update.json", Key: base64.StdEncoding.EncodeToString(public)}
	w.file = w.sign("1.3.0", epoch, epoch.AddDate(0, 0, 90))
	w.open()
	return w
}

// open makes a checker of what was kept, as after a start.
func (w *world) open() {
	w.t.Helper()
	c := programs.Got(update.New(update.Config{
		Chosen:    w.choose,
		Load:      func() (update.Kept, error) { return w.kept, nil },
		Save:      func(k update.Kept) error { w.mu.Lock(); defer w.mu.Unlock(); w.kept = k; return nil },
		Version:   "1.2.3",
		Changes:   w.changes,
		Transport: w.server.Client().Transport.(*http.Transport),
		Allowed:   w.allowed,
		Now:       func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now },
		Log:       slog.New(slog.DiscardHandler),
	}))(w.t)
	w.checker = c
}

func (w *world) choose() update.Choice {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looked != nil {
		select {
		case w.looked <- struct{}{}:
		default:
		}
	}
	return update.Choose(w.chosen, w.theirs)
}

// rests runs the checker until it has looked three times at who is to be asked, and fails if
// anybody was. To ask takes two looks, and the third comes when it has asked.
func (w *world) rests(what string) {
	w.t.Helper()
	looked := make(chan struct{}, 1)
	w.set(func() { w.looked = looked })
	defer w.set(func() { w.looked = nil })
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.checker.Run(ctx) }()
	for range 3 {
		select {
		case <-looked:
		case <-time.After(programs.Patience):
			w.t.Error("nobody looked")
		}
		w.changes.Raise()
	}
	cancel()
	<-done
	if len(w.asked) > 0 {
		w.t.Fatal(what)
	}
}

func (w *world) sign(version string, date, expires time.Time) []byte {
	w.t.Helper()
	return programs.Got(update.Sign(update.Manifest{Version: version, Date: date, Expires: expires}, w.key))(w.t)
}

func (w *world) set(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
}

// ask runs the checker until it asked once, and returns what it tells then.
func (w *world) ask() agentapi.Update {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	changed, stop := w.changes.Subscribe()
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.checker.Run(ctx) }()
	select {
	case <-changed:
	case <-time.After(programs.Patience):
		w.t.Error("nobody asked")
	}
	cancel()
	<-done
	got := *w.checker.Update()
	german := words.German.TellAll(got.Words)
	if got.Words.String() != got.Problem || got.Problem != "" && (!strings.HasPrefix(german, "Ob es ") || strings.Contains(german, "manifest ")) {
		w.t.Errorf("%q is %q in words, and %q in German", got.Problem, got.Words, german)
	}
	return got
}

func TestTellsOfANewerVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.ask(); got.Version != "1.3.0" || got.Problem != "" || !got.Date.Equal(epoch) {
		t.Fatalf("told %+v", got)
	}
	r := <-w.asked
	if r.UserAgent() != "Porchlight" || len(r.Cookies()) > 0 || r.URL.RawQuery != "" || r.Referer() != "" {
		t.Errorf("the request says more than it must: %v", r.Header)
	}
	w.open() // after a start it is known, and asked for no sooner
	if got := w.checker.Update(); got.Version != "1.3.0" {
		t.Errorf("after a start it tells %+v", got)
	}
	w.rests("it asked twice within a day")
	w.set(func() { w.now = epoch.Add(25 * time.Hour) })
	w.ask()
	<-w.asked
	w.set(func() { w.now = epoch.AddDate(0, 0, 91) })
	if got := w.checker.Update(); got.Version != "" {
		t.Errorf("it tells of a manifest that has expired: %+v", got)
	}
}

func TestAsksNobodyUntilAnAddressIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	named := w.chosen
	w.set(func() { w.chosen = controlapi.UpdateNotice{} })
	if w.checker.Update() != nil {
		t.Error("it tells something of nothing")
	}
	w.rests("it asked an address that nobody named")
	w.set(func() { w.chosen = named })
	if got := w.ask(); got.Version != "1.3.0" {
		t.Errorf("told %+v", got)
	}
}

// What an address answers never makes the sentence about it long, or more than a line.
func TestAProblemIsShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answer = func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", "https://"+strings.Repeat("%", 5000)+"/")
		rw.WriteHeader(http.StatusFound)
	}
	if got := w.ask(); got.Problem == "" || len([]rune(got.Problem)) > 400 || strings.ContainsAny(got.Problem, "\r\n") {
		t.Errorf("told %d characters: %.500q", len(got.Problem), got.Problem)
	}
}

func TestIgnoresWhatIsNotFit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say  func(w *world)
		told string
	}{
		"signed by another key": {func(w *world) {
			_, other, _ := ed25519.GenerateKey(nil)
			w.file, _ = update.Sign(update.Manifest{Version: "9.0.0", Date: epoch, Expires: epoch.AddDate(0, 1, 0)}, other)
		}, "not signed by the key"},
		"changed after it was signed": {func(w *world) {
			var s struct{ Manifest, Signature []byte }
			json.Unmarshal(w.file, &s)
			s.Manifest = []byte(strings.Replace(string(s.Manifest), "1.3.0", "1.9.0", 1))
			w.file, _ = json.Marshal(map[string][]byte{"manifest": s.Manifest, "signature": s.Signature})
		}, "not signed by the key"},
		"signed without its prefix": {func(w *world) {
			raw := []byte(`{"product":"porchlight","version":"9.0.0","date":"2026-11-22T12:00:00Z","expires":"2026-12-22T12:00:00Z"}`)
			w.file, _ = json.Marshal(map[string][]byte{"manifest": raw, "signature": ed25519.Sign(w.key, raw)})
		}, "not signed by the key"},
		"expired":          {func(w *world) { w.file = w.sign("1.3.0", epoch.AddDate(0, -2, 0), epoch) }, "expired"},
		"dated next month": {func(w *world) { w.file = w.sign("1.3.0", epoch.AddDate(0, 1, 0), epoch.AddDate(0, 2, 0)) }, "dated in the future"},
		"huge":             {func(w *world) { w.file = []byte(strings.Repeat(" ", 1<<20)) }, "too large"},
		"a page":           {func(w *world) { w.file = []byte("<!doctype html>") }, "no signed manifest"},
		"not there":        {func(w *world) { w.answer = http.NotFound }, "status 404"},
		"led to one in clear": {func(w *world) {
			w.answer = func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "http://"+r.Host+"/", http.StatusFound)
			}
		}, "without https"},
		"led on for ever": {func(w *world) {
			w.answer = func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/update.json", http.StatusFound) }
		}, "too often"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.say(w)
			if got := w.ask(); got.Version != "" || !strings.Contains(got.Problem, c.told) {
				t.Errorf("told %+v, want a problem with %q", got, c.told)
			}
		})
	}
}

func TestFollowsARedirectOverHTTPS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answer = func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "/elsewhere.json", http.StatusFound)
	}
	if got := w.ask(); got.Version != "1.3.0" {
		t.Errorf("told %+v", got)
	}
}

func TestKeepsTheNewestManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file = w.sign("1.4.0", epoch.Add(time.Hour), epoch.AddDate(0, 3, 0))
	w.ask()
	// An older one, still good, is played back: it takes nothing away.
	w.set(func() {
		w.now = epoch.Add(25 * time.Hour)
		w.file = w.sign("1.2.4", epoch, epoch.AddDate(0, 3, 0))
	})
	if got := w.ask(); got.Version != "1.4.0" || !strings.Contains(got.Problem, "older") {
		t.Errorf("told %+v", got)
	}
	// A later one may take a version back.
	w.set(func() {
		w.now = epoch.Add(50 * time.Hour)
		w.file = w.sign("1.2.3", epoch.Add(49*time.Hour), epoch.AddDate(0, 3, 0))
	})
	if got := w.ask(); got.Version != "" || got.Problem != "" {
		t.Errorf("told %+v", got)
	}
	// Another key begins anew.
	_, other, _ := ed25519.GenerateKey(nil)
	w.set(func() {
		w.key = other
		w.chosen.Key = base64.StdEncoding.EncodeToString(other.Public().(ed25519.PublicKey))
		w.file = w.sign("1.3.0", epoch, epoch.AddDate(0, 3, 0))
	})
	if got := w.ask(); got.Version != "1.3.0" {
		t.Errorf("told %+v", got)
	}
}

func TestAVersionThatRunsAlreadyIsNoNews(t *testing.T) {
	t.Parallel()
	for version, news := range map[string]bool{"1.2.3": false, "1.2.2": false, "1.2.10": true, "1.2.3-rc.1": false, "2.0.0": true} {
		w := newWorld(t)
		w.file = w.sign(version, epoch, epoch.AddDate(0, 3, 0))
		if got := w.ask(); (got.Version != "") != news || got.Problem != "" {
			t.Errorf("%s: told %+v", version, got)
		}
	}
}

func TestAsksAgainWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(func() { w.now = epoch.AddDate(1, 0, 0) })
	w.file = w.sign("1.3.0", w.now, w.now.AddDate(0, 3, 0))
	w.ask()
	w.set(func() { w.now = epoch })
	if got := w.checker.Update(); got.Version != "" {
		t.Errorf("it tells of a manifest from next year: %+v", got)
	}
	if got := w.ask(); !strings.Contains(got.Problem, "future") {
		t.Errorf("told %+v", got)
	}
	w.set(func() {
		w.now = epoch.Add(25 * time.Hour)
		w.file = w.sign("1.3.0", epoch, epoch.AddDate(0, 3, 0))
	})
	if got := w.ask(); got.Version != "1.3.0" || got.Problem != "" {
		t.Errorf("one from next year keeps out those of now: %+v", got)
	}
}

func TestWhatCanBeSigned(t *testing.T) {
	t.Parallel()
	_, key, _ := ed25519.GenerateKey(nil)
	good := update.Manifest{Version: "1.0.0", Date: epoch, Expires: epoch.AddDate(0, 1, 0)}
	for name, change := range map[string]func(*update.Manifest){
		"no version":     func(m *update.Manifest) { m.Version = "" },
		"words":          func(m *update.Manifest) { m.Version = "latest" },
		"a long version": func(m *update.Manifest) { m.Version = "1.0.0-" + strings.Repeat("a", 50) },
		"no date":        func(m *update.Manifest) { m.Date = time.Time{} },
		"over at once":   func(m *update.Manifest) { m.Expires = m.Date },
		"for ever":       func(m *update.Manifest) { m.Expires = m.Date.AddDate(10, 0, 0) },
	} {
		m := good
		change(&m)
		if _, err := update.Sign(m, key); err == nil {
			t.Errorf("%s was signed", name)
		}
	}
	if _, err := update.Sign(good, key); err != nil {
		t.Error(err)
	}
}

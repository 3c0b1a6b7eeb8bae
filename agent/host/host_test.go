package host

import (
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

const secret = "a test's owner secret"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashVariable); dir != "" {
		os.Exit(beCrashed(dir))
	}
	dir, err := os.MkdirTemp("", "porchlight-host-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	os.Setenv("XDG_RUNTIME_DIR", "")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func config(dir string) Config {
	return Config{
		DataDir: dir, API: "127.0.0.1:0", HTTPS: "127.0.0.1:0", Local: true,
		Mode: agentapi.ModeHeadless, OwnerSecretHash: ownersecret.Hash(secret),
		Log: slog.New(slog.DiscardHandler),
	}
}

// running is a Host that serves.
type running struct {
	*Host
	ended chan struct{} // closed when it serves no more
	stop  func()
}

func start(t *testing.T, cfg Config) *running {
	t.Helper()
	// A port is given back while this computer is connected, and between two runs: one
	// that was drawn may be another program's then.
	cfg.HTTPS = programs.FreeAddress(t)
	h := programs.Got(New(t.Context(), cfg))(t)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Host: h, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		if err := h.Run(ctx); err != nil {
			t.Errorf("it ended with %v", err)
		}
	}()
	r.stop = func() { cancel(); <-r.ended }
	t.Cleanup(r.stop)
	select {
	case <-h.Ready():
		// One to which nobody comes soon may have left by now.
		if _, err := agentapi.ReadRunning(cfg.DataDir); err != nil && (cfg.first == 0 || cfg.first > time.Minute) {
			t.Errorf("it is ready, and commands do not find it: %v", err)
		}
	case <-r.ended:
	}
	return r
}

// TestS1_TruthfulWhileConnecting: while one agent replaces the other, every call
// of the loopback API is answered, truthfully, and what was approved stays.
func TestS1_TruthfulWhileConnecting(t *testing.T) {
	t.Parallel()
	control := newControl(t)
	h := start(t, config(t.TempDir()))
	open, owner := agentapi.New(h.API()), agentapi.NewOwner(h.OwnerSocket(), secret)
	programs.Got(open.Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 1}))(t)
	programs.Got(owner.Approve(t.Context(), "notes"))(t)
	before, err := open.Status(t.Context())
	if err != nil || !before.Connected {
		t.Fatal(before, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	calls.Go(func() {
		for ctx.Err() == nil {
			now, err := open.Status(ctx)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				t.Errorf("a call was not answered: %v", err)
			case now.Connected && now.Host != before.Host && now.Host != "cellar.porch.test":
				t.Errorf("it says it is %+v", now)
			case !now.Connected && now.Host == before.Host:
				t.Errorf("it is nobody and says it is %+v", now)
			}
		}
	})

	connecting := programs.Got(owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url, CA: control.pem}))(t)
	if connecting.State != agentapi.ConnectWaiting || connecting.UserCode != "BCDF-GHJK" || connecting.Note == "" {
		t.Errorf("it answered %+v", connecting)
	}
	state, err := owner.State(t.Context())
	if err != nil || state.Connecting == nil || state.Connecting.UserCode != "BCDF-GHJK" {
		t.Fatalf("the owner's state has %+v, %v", state.Connecting, err)
	}
	control.confirm()
	programs.Eventually(t, "it is connected", func() bool {
		a, err := owner.Account(t.Context())
		return err == nil && a.Connected && a.AuthURL == control.url
	})
	state, err = owner.State(t.Context())
	if err != nil || len(state.Apps) != 1 || state.Apps[0].Status != agentapi.StatusLive || state.Connecting != nil {
		t.Errorf("connected, the state is %+v, %v", state, err)
	}
	raw, err := os.ReadFile(filepath.Join(h.cfg.DataDir, connectionName))
	if err != nil || strings.Contains(string(raw), control.credential) {
		t.Errorf("the connection is kept as %s, %v", raw, err)
	}

	if _, err := owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("connecting twice says %v", err)
	}
	control.forgetComputer()
	programs.Eventually(t, "it says that it is not known any more", func() bool {
		s, err := owner.State(t.Context())
		return err == nil && strings.HasPrefix(s.Trouble, "The server does not know this computer any more") && len(s.Apps) == 1
	})
	programs.Must(t, owner.Disconnect(t.Context()))
	programs.Eventually(t, "it is on its own", func() bool {
		a, err := owner.Account(t.Context())
		return err == nil && a.Connected && a.Local
	})
	if err := owner.Disconnect(t.Context()); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("disconnecting twice says %v", err)
	}
}

// TestNameOfAnApp: this computer cannot wish for the name of one of its apps, and
// a control plane that gives it one is refused, and is told so.
func TestNameOfAnApp(t *testing.T) {
	t.Parallel()
	control := newControl(t)
	control.rename("notes")
	h := start(t, config(t.TempDir()))
	open, owner := agentapi.New(h.API()), agentapi.NewOwner(h.OwnerSocket(), secret)
	programs.Got(open.Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 1}))(t)
	programs.Got(owner.Approve(t.Context(), "notes"))(t)
	wish := agentapi.ConnectRequest{URL: control.url, CA: control.pem, Name: "notes"}
	if _, err := owner.Connect(t.Context(), wish); agentapi.CodeOf(err) != agentapi.CodeConflict || h.Connecting() != nil {
		t.Errorf("wishing for it: %v", err)
	}
	programs.Got(owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url, CA: control.pem}))(t)
	control.confirm()
	programs.Eventually(t, "it was refused", func() bool {
		c := h.Connecting()
		return c != nil && c.State == agentapi.ConnectFailed && strings.Contains(c.Problem, `called "notes"`)
	})
	if control.known() {
		t.Error("the control plane was left with a computer that does not come")
	}
	if a := h.Account(); !a.Local {
		t.Errorf("it is %+v", a)
	}
	if err := owner.CancelConnect(t.Context()); err != nil || h.Connecting() != nil {
		t.Error("a failure cannot be put out of sight", err)
	}
}

// TestGivenUpTooLate: what the owner confirmed goes to its end, and giving it up says so.
func TestGivenUpTooLate(t *testing.T) {
	t.Parallel()
	control := newControl(t)
	cfg := config(t.TempDir())
	confirmed, goOn := make(chan struct{}), make(chan struct{})
	cfg.step = func(step string) {
		if step == "confirmed" {
			close(confirmed)
			<-goOn
		}
	}
	h := start(t, cfg)
	owner := agentapi.NewOwner(h.OwnerSocket(), secret)
	programs.Got(owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url, CA: control.pem}))(t)
	control.confirm()
	<-confirmed
	given := make(chan error, 1)
	go func() { given <- owner.CancelConnect(t.Context()) }()
	close(goOn)
	if err := <-given; agentapi.CodeOf(err) != agentapi.CodeConflict || !strings.Contains(err.Error(), control.url) {
		t.Errorf("giving up says %v", err)
	}
	programs.Eventually(t, "it is connected", func() bool {
		a, err := owner.Account(t.Context())
		return err == nil && a.Connected && a.AuthURL == control.url
	})
}

func TestE7_StopsAfterTheLastOneLeft(t *testing.T) {
	t.Parallel()
	cfg := config(t.TempDir())
	cfg.Mode, cfg.FirstPartyApp, cfg.OnDemand = agentapi.ModeBundled, "com.example.wiki", true
	cfg.grace, cfg.first = 50*time.Millisecond, time.Hour
	h := start(t, cfg)
	c := agentapi.New(h.API())
	info, err := c.Attach(t.Context())
	if err != nil || info.Mode != agentapi.ModeBundled || info.FirstPartyApp != "com.example.wiki" {
		t.Fatalf("%+v, %v", info, err)
	}
	found, err := Find(t.Context(), cfg.DataDir, "")
	if err != nil || found == nil || found.PID != os.Getpid() || found.OwnerSocket != h.OwnerSocket() {
		t.Errorf("found %+v, %v", found, err)
	}
	programs.Got(c.Register(t.Context(), agentapi.RegisterRequest{AppID: "com.example.wiki", PID: os.Getpid()}))(t)
	resp, err := http.Post("http://"+h.API()+"/engine/deregister", "application/json", strings.NewReader(`{"appId":"com.example.wiki"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	<-h.ended
	if found, err := Find(t.Context(), cfg.DataDir, ""); found != nil || err != nil {
		t.Errorf("after its end there is %+v, %v", found, err)
	}
}

func TestStopsWhenNobodyEverCame(t *testing.T) {
	t.Parallel()
	cfg := config(t.TempDir())
	cfg.OnDemand, cfg.first = true, 50*time.Millisecond
	<-start(t, cfg).ended
}

func TestFindsByAddress(t *testing.T) {
	t.Parallel()
	h := start(t, config(t.TempDir()))
	elsewhere := t.TempDir()
	found, err := Find(t.Context(), elsewhere, h.API())
	if err != nil || found == nil || found.API != h.API() || found.OwnerSocket != "" {
		t.Errorf("found %+v, %v", found, err)
	}
	// The word of an agent that was killed, and whose port another one has now.
	programs.Must(t, agentapi.WriteRunning(elsewhere, agentapi.Running{API: h.API(), PID: os.Getpid() + 1, Protocol: agentapi.Protocol, OwnerSocket: "/gone"}))
	if found, err := Find(t.Context(), elsewhere, ""); found != nil || err != nil {
		t.Errorf("by the word of one that is gone: %+v, %v", found, err)
	}
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	other := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"protocol":7,"pid":1,"mode":"desktop"}`))
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); other.Serve(l) }()
	defer func() { other.Close(); <-ended }()
	if found, err := Find(t.Context(), elsewhere, l.Addr().String()); agentapi.CodeOf(err) != agentapi.CodeConflict || found != nil {
		t.Errorf("of another protocol: %+v, %v", found, err)
	}
	if found, err := Find(t.Context(), elsewhere, "127.0.0.1:1"); found != nil || err != nil {
		t.Errorf("where nothing is: %+v, %v", found, err)
	}
}

func TestUnconnectedAgentSaysWhatToType(t *testing.T) {
	t.Parallel()
	cfg := config(t.TempDir())
	cfg.Local, cfg.ControlURL = false, "https://Control.Example.net:443/"
	h := start(t, cfg)
	owner := agentapi.NewOwner(h.OwnerSocket(), secret)
	state, err := owner.State(t.Context())
	if err != nil || state.Account.Connected || !strings.Contains(state.Trouble, "porchlight connect https://control.example.net") {
		t.Errorf("it says %q, %+v, %v", state.Trouble, state.Account, err)
	}
	for url, want := range map[string]agentapi.Code{
		"https://other.example":            agentapi.CodeConflict,
		"http://control.example.net":       agentapi.CodeInvalid,
		"https://control.example.net/path": agentapi.CodeInvalid,
		"":                                 agentapi.CodeInvalid,
		"https://maya:hunter2@control.net": agentapi.CodeInvalid,
		"https://maya:hunter2%zz@control":  agentapi.CodeInvalid, // is no address at all
	} {
		if _, err := owner.Connect(t.Context(), agentapi.ConnectRequest{URL: url}); agentapi.CodeOf(err) != want || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("connecting to %q says %v", url, err)
		}
	}
}

// TestNewConnectionIsNotEnded: ending credentials at earlier control planes, which goes
// on all the while, spares the connection that is being taken on.
func TestNewConnectionIsNotEnded(t *testing.T) {
	t.Parallel()
	control := newControl(t)
	control.confirm()
	cfg := config(t.TempDir())
	started, looked := make(chan *running, 1), make(chan bool, 1)
	cfg.step = func(step string) {
		if step == "credential kept" {
			looked <- (<-started).endAll(context.Background())
		}
	}
	h := start(t, cfg)
	started <- h
	owner := agentapi.NewOwner(h.OwnerSocket(), secret)
	programs.Got(owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url, CA: control.pem}))(t)
	programs.Eventually(t, "it is connected", func() bool {
		a, err := owner.Account(t.Context())
		return err == nil && a.Connected && a.AuthURL == control.url
	})
	if done := <-looked; !done || !control.known() {
		t.Errorf("done %v, and the control plane knows this computer: %v", done, control.known())
	}
}

// TestWrongAddressesAreExplained: who mistypes the address reads what is there
// instead of a control plane.
func TestWrongAddressesAreExplained(t *testing.T) {
	t.Parallel()
	cfg := config(t.TempDir())
	cfg.Local = false
	h := start(t, cfg)
	owner := agentapi.NewOwner(h.OwnerSocket(), secret)
	state, err := owner.State(t.Context())
	if err != nil || !strings.Contains(state.Trouble, "porchlight connect URL") || !strings.Contains(state.Trouble, "porchlight agent --local") {
		t.Errorf("it says %q, %v", state.Trouble, err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	control := newControl(t)
	named := httptest.NewTLSServer(http.NotFoundHandler()) // 127.0.0.1 and example.com
	t.Cleanup(named.Close)
	its := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: named.Certificate().Raw}))
	for what, tt := range map[string]struct{ url, ca, want string }{
		"plain HTTP":    {strings.Replace(plain.URL, "http:", "https:", 1), "", "speaks plain HTTP"},
		"nothing there": {"https://127.0.0.1:1", "", "Nothing listens at https://127.0.0.1:1."},
		"own authority": {control.url, "", "is not one this computer trusts"},
		"another name":  {strings.Replace(named.URL, "127.0.0.1", "localhost", 1), its, "is for another name"},
	} {
		_, err := owner.Connect(t.Context(), agentapi.ConnectRequest{URL: tt.url, CA: tt.ca})
		if agentapi.CodeOf(err) != agentapi.CodeUnavailable || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Made here: not every machine that runs tests can ask for names.
	unknown := &controlapi.Client{BaseURL: "https://no-such-host.invalid", HTTP: &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "no-such-host.invalid", IsNotFound: true}}
		},
	}}}
	_, err = unknown.Enrol(t.Context(), controlapi.EnrolRequest{})
	if err = refusalOf(unknown.BaseURL, err); !strings.Contains(err.Error(), "The name no-such-host.invalid leads nowhere.") {
		t.Errorf("no such name: %v", err)
	}
	// What answers is no control plane: said with its words, for a screen in German.
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	_, err = (&controlapi.Client{BaseURL: other.URL, HTTP: other.Client()}).Enrol(t.Context(), controlapi.EnrolRequest{})
	refused, ok := errors.AsType[*agentapi.Error](refusalOf(other.URL, err))
	want := "Was " + strings.TrimPrefix(other.URL, "http://") + " geantwortet hat, kommt von keinem Porchlight-Server (Status 404)."
	if !ok || words.German.Or(refused.Words, refused.Message) != want {
		t.Errorf("no control plane: %v, want %q", refused, want)
	}
}

func TestDamagedConnectionIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programs.Must(t, os.WriteFile(filepath.Join(dir, connectionName), []byte(`{"current":{}}`), 0o600))
	if _, err := New(t.Context(), config(dir)); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("err = %v", err)
	}
	if !Connected(dir) {
		t.Error("a damaged connection counts as none")
	}
}

func TestEndingIsBounded(t *testing.T) {
	t.Parallel()
	f := programs.Got(openConnection(filepath.Join(t.TempDir(), connectionName)))(t)
	for range 2 * maxEnding {
		one := connection{ID: newConnectionID(), AuthURL: "https://control.example.net", Store: storeFile}
		programs.Must(t, f.update(func(k *connections) { k.end(one, time.Now()) }))
	}
	again, err := openConnection(f.path)
	if err != nil || len(again.get().Ending) != maxEnding {
		t.Errorf("%d are kept, %v", len(again.get().Ending), err)
	}
	info, err := os.Stat(f.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

func FuzzConnection(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"current":{"id":"00","authUrl":"https://c.example","computerId":"a","host":"m.example","store":"file"}}`))
	f.Add([]byte(`{"leaving":[{"id":"zz"}],"forgetLocal":true}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := parseConnections(raw)
		if err != nil {
			return
		}
		for _, one := range append(c.Ending, list(c.Current)...) {
			if strings.ContainsAny(one.ID, "/.\\") || !strings.HasPrefix(one.AuthURL, "https://") {
				t.Errorf("took %+v", one)
			}
		}
	})
}

func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"control.example.net", "https://control.example.net:8443/", "https://a@b", "ftp://x", "https://[::1]:1", strings.Repeat("\xff", 290)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		origin, err := originOf(text)
		if err != nil {
			if _, ok := errors.AsType[*agentapi.Error](err); !ok {
				t.Errorf("%q: %v is no sentence", text, err)
			}
			return
		}
		if again, err := originOf(origin); err != nil || again != origin {
			t.Errorf("%q became %q, and that %q, %v", text, origin, again, err)
		}
	})
}

// Whoever disconnects and connects again types nothing anew: the server, its authority and
// this computer's name are those of before, and a look asks the server for nothing.
func TestLastServerIsSuggested(t *testing.T) {
	t.Parallel()
	control := newControl(t)
	h := start(t, config(t.TempDir()))
	owner := agentapi.NewOwner(h.OwnerSocket(), secret)
	look := func(url string) agentapi.Server {
		t.Helper()
		return programs.Got(owner.LookServer(t.Context(), agentapi.ServerLook{URL: url}))(t)
	}
	if first := look(""); first != (agentapi.Server{}) {
		t.Errorf("before any it suggests %+v", first)
	}
	if _, err := owner.LookServer(t.Context(), agentapi.ServerLook{URL: control.url}); err == nil || !strings.Contains(err.Error(), "is not one this computer trusts") {
		t.Errorf("without its authority: %v", err)
	}
	if it := programs.Got(owner.LookServer(t.Context(), agentapi.ServerLook{URL: control.url, CA: control.pem}))(t); it.URL != control.url || it.Name != "" {
		t.Errorf("it is %+v", it)
	}
	control.confirm()
	programs.Got(owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url, CA: control.pem}))(t)
	programs.Eventually(t, "it is connected", func() bool {
		a, err := owner.Account(t.Context())
		return err == nil && a.Host == "cellar.porch.test"
	})
	programs.Must(t, owner.Disconnect(t.Context()))
	for _, url := range []string{"", control.url} {
		if it := look(url); it.URL != control.url || it.Name != "cellar" || time.Since(it.EndedAt) > time.Hour {
			t.Errorf("looking at %q: %+v", url, it)
		}
	}
	programs.Eventually(t, "it is on its own", func() bool {
		a, err := owner.Account(t.Context())
		return err == nil && a.Local
	})
	programs.Got(owner.Connect(t.Context(), agentapi.ConnectRequest{URL: control.url}))(t)
	control.mu.Lock()
	defer control.mu.Unlock()
	if control.wished != "cellar" {
		t.Errorf("it wished to be called %q", control.wished)
	}
}

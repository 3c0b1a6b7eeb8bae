package people_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/localapi"
	"porchlight/agent/ownersecret"
	"porchlight/agent/store"
	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/provider"
	"porchlight/control/relay"
	"porchlight/control/web"
	"porchlight/test/authhost"
	"porchlight/test/issuer"
	"porchlight/test/programs"
)

const (
	secret    = "a test's owner secret"
	ownerMail = "maya@example.com"
	bobMail   = "bob@example.com"
)

func TestMain(m *testing.M) {
	// The sockets of all tests, in a place that leaves nothing behind.
	dir, err := os.MkdirTemp("", "people-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_RUNTIME_DIR", dir)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// rig is a real agent and a real control plane, with an auth host between them that can
// be cut off. Nobody visits.
type rig struct {
	service *control.Service
	store   kv.Store // of the service
	outbox  *mail.Outbox
	device  controlapi.Enrolled
	server  *authhost.Host
	gate    *gate
	club    *issuer.Issuer // an OpenID provider, which tells of groups

	cut bool // the auth host is

	dir   string
	agent *agent.Agent
	owner *agentapi.Client
	app   *agentapi.Client // of a registered program, which is this process
	api   string           // base URL of the loopback API
	end   func()           // ends the agent and waits for it; idempotent
}

// gate is what stands between the agent and its control plane.
type gate struct {
	next http.Handler
	// on is called before each request is passed on; nil for nothing.
	on atomic.Pointer[func(*http.Request)]
	// syncs is held for writing while snapshots are held up.
	syncs sync.RWMutex
	off   atomic.Int64 // by how much the control plane's clock shows more, time.Duration
	// late holds up the answer to the next request of a path; nil for none.
	late atomic.Pointer[lateAnswer]
}

// lateAnswer is one answer that is made at once and sent when it is let go.
type lateAnswer struct {
	path     string
	made, on chan struct{} // closed: it is made; it may be sent
}

func (g *gate) holdAnswer(path string) *lateAnswer {
	l := &lateAnswer{path: path, made: make(chan struct{}), on: make(chan struct{})}
	g.late.Store(l)
	return l
}

func (l *lateAnswer) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	close(l.made)
	select {
	case <-l.on:
	case <-r.Context().Done():
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// holdSyncs keeps every snapshot on its way until arrive is called.
func (g *gate) holdSyncs() (arrive func()) {
	g.syncs.Lock()
	return sync.OnceFunc(g.syncs.Unlock)
}

// sync is relay.Config.Sync of a service.
func (g *gate) sync(service *control.Service) func(string, netip.Addr, string, func([]byte) error, func(error)) func() {
	return func(credential string, client netip.Addr, version string, tell func([]byte) error, over func(error)) func() {
		return service.Feed.Tell(credential, client, version, func(s controlapi.Snapshot) error {
			g.syncs.RLock()
			defer g.syncs.RUnlock()
			if s.Unchanged {
				return tell(nil)
			}
			told, err := json.Marshal(s)
			return errors.Join(err, tell(told))
		}, over)
	}
}

func (g *gate) now() time.Time { return time.Now().Add(time.Duration(g.off.Load())) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if on := g.on.Load(); on != nil {
		(*on)(r)
	}
	if l := g.late.Load(); l != nil && l.path == r.URL.Path && g.late.CompareAndSwap(l, nil) {
		l.serve(w, r, g.next)
		return
	}
	g.next.ServeHTTP(w, r)
}

// start has the apps live that have these labels.
func start(t *testing.T, apps ...string) *rig {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"), kv.Options{}))(t)
	t.Cleanup(func() { store.Close() })
	r := &rig{store: store, outbox: mail.NewOutbox(store, nil), dir: t.TempDir(), club: issuer.Start()}
	t.Cleanup(r.club.Close)
	club := r.club.Config("club", "Club", "example.com")
	club.Groups = "groups"
	quiet := slog.New(slog.DiscardHandler)
	r.service = programs.Got(control.New(control.Config{
		Store: store, Naming: control.Naming{Domain: "localhost", AuthHost: "control.localhost", PublicPort: 8443}, Mail: r.outbox, Log: quiet,
		Providers: []*provider.Provider{provider.New(club, nil, nil)},
	}))(t)
	r.device = programs.Got(r.service.Computers.Ensure(t.Context(), ownerMail, "maya"))(t)
	programs.Run(t, r.service.Run)
	r.gate = &gate{}
	r.gate.next = web.New(r.service, web.Config{Now: r.gate.now, Log: quiet})
	r.server = authhost.Start(t, relay.Config{
		Handler: r.gate, Authenticate: r.service.Agents.Authenticate, Sync: r.gate.sync(r.service), Date: r.gate.now, Node: "one", Log: quiet,
	})
	r.serve(t)
	t.Cleanup(func() { r.end() })
	for _, label := range apps {
		r.publish(t, strings.ToLower(label), label)
	}
	return r
}

// serve starts the agent on the rig's data directory, again after r.end.
func (r *rig) serve(t *testing.T) {
	t.Helper()
	server := localapi.NewServer(localapi.ServerConfig{
		DataDir: r.dir, Address: "127.0.0.1:0", OwnerSecretHash: ownersecret.Hash(secret),
	})
	r.agent = programs.Got(agent.New(agent.Config{
		DataDir: r.dir, Server: server, Mode: agentapi.ModeHeadless,
		ComputerID: r.device.Computer.ID, ControlPlane: &agent.ControlPlane{AuthURL: r.server.URL, Credential: r.device.Credential, RootCAs: r.server.Roots, Local: true},
		Log: slog.New(slog.DiscardHandler),
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { return server.Run(ctx) })
	g.Go(func() error { return r.agent.Run(ctx) })
	r.end = sync.OnceFunc(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	r.owner = agentapi.NewOwner(server.OwnerSocket(), secret)
	r.app = agentapi.New(server.Addr())
	r.api = "http://" + server.Addr()
	programs.Got(r.app.Register(t.Context(), agentapi.RegisterRequest{AppID: "com.example.wiki", PID: os.Getpid()}))(t)
	if !r.cut {
		r.await(t, func() bool { return r.agent.Account().Connected })
	}
}

// down cuts the control plane off, requests under way included; up ends that.
func (r *rig) down() { r.cut = true; r.server.End() }
func (r *rig) up()   { r.cut = false; r.server.Begin() }

// serveAndSync is serve, and waits until a sync of that agent was answered.
func (r *rig) serveAndSync(t *testing.T) {
	t.Helper()
	r.serve(t)
	r.await(t, func() bool {
		state, err := r.owner.State(t.Context())
		return err == nil && state.Reachable
	})
}

// kill leaves the data directory as kill -9 does. The agent ends in order, for
// which its control plane is put out of reach, and the file is put back.
func (r *rig) kill(t *testing.T) {
	t.Helper()
	path := filepath.Join(r.dir, store.FileName)
	killed := programs.Got(os.ReadFile(path))(t)
	r.down()
	r.end()
	programs.Must(t, os.WriteFile(path, killed, 0o600))
}

// await polls for what has no event to wait for here.
func (r *rig) await(t *testing.T, done func() bool) {
	t.Helper()
	programs.Eventually(t, "what this test waits for", done)
}

// publish has an app live.
func (r *rig) publish(t *testing.T, name, label string) {
	t.Helper()
	programs.Got(r.app.Publish(t.Context(), agentapi.PublishRequest{Name: name, Label: label, LocalPort: 8000}))(t)
	programs.Got(r.owner.Approve(t.Context(), name))(t)
}

// answer is one answer of the loopback API, as any program sees it.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

// call sends a request of the capability tier; nil for no capability.
func (r *rig) call(t *testing.T, method, path, body string, capability ...string) answer {
	t.Helper()
	req := programs.Got(http.NewRequestWithContext(t.Context(), method, r.api+path, strings.NewReader(body)))(t)
	req.Close = true
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header["X-Engine-Capability"] = capability
	resp := programs.Got(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	raw := programs.Got(io.ReadAll(resp.Body))(t)
	out := answer{status: resp.StatusCode, header: resp.Header}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&out.body); err != nil {
		t.Fatalf("%s %s answered %s", method, path, raw)
	}
	return out
}

// refused wants a status and a sentence.
func (a answer) refused(t *testing.T, status int, says string) {
	t.Helper()
	sentence, _ := a.body["error"].(string)
	if a.status != status || !strings.HasSuffix(sentence, ".") || !strings.Contains(sentence, says) || len(a.body) != 1 {
		t.Errorf("HTTP %d %v, want %d with a sentence that says %q", a.status, a.body, status, says)
	}
}

// refuses wants each body to be refused with a sentence that says something.
func (r *rig) refuses(t *testing.T, path string, bodies map[string]string) {
	t.Helper()
	for body, says := range bodies {
		r.call(t, "POST", path, body, r.capability(t)).refused(t, http.StatusBadRequest, says)
	}
}

// capability registers once more, as a program may before each request.
func (r *rig) capability(t *testing.T) string {
	t.Helper()
	got := r.call(t, "POST", "/engine/register", `{"appId":"com.example.wiki","pid":`+pid()+`}`)
	capability, _ := got.body["capability"].(string)
	if got.status != http.StatusOK || capability == "" {
		t.Fatalf("registering: HTTP %d %v", got.status, got.body)
	}
	return capability
}

// member is a person's row in the control plane.
func (r *rig) member(t *testing.T, email string) (row agentapi.Person) {
	t.Helper()
	people := programs.Got(r.service.People.List(t.Context(), r.device.Computer.ID))(t)
	for _, p := range people {
		if p.Email == email {
			return agentapi.Person{Email: p.Email, AccountID: p.AccountID, Role: string(p.Role), Status: string(p.Status), Apps: p.Apps}
		}
	}
	return row
}

// listed is a person as GET /people shows them.
func (r *rig) listed(t *testing.T, email string) agentapi.Person {
	t.Helper()
	people := programs.Got(r.app.People(t.Context()))(t)
	i := slices.IndexFunc(people.Members, func(p agentapi.Person) bool { return p.Email == email })
	if i < 0 {
		return agentapi.Person{}
	}
	return people.Members[i]
}

// accepted takes the newest invitation for bob.
func (r *rig) accepted(t *testing.T) {
	t.Helper()
	mails, err := r.outbox.List(t.Context(), 1)
	if err != nil || len(mails) == 0 {
		t.Fatalf("no mail: %v", err)
	}
	_, token, _ := strings.Cut(mails[0].Links[0], "token=")
	programs.Got(r.service.People.AcceptInvitation(t.Context(), token, "", netip.Addr{}))(t)
}

// invited invites bob, accepts for him when active, and returns his account.
func (r *rig) invited(t *testing.T, active bool, apps ...string) string {
	t.Helper()
	programs.Got(r.owner.Invite(t.Context(), agentapi.InviteRequest{Email: bobMail, Apps: apps}))(t)
	id := r.member(t, bobMail).AccountID
	if active {
		r.accepted(t)
	}
	r.await(t, func() bool { // until the agent's snapshot has him
		state, err := r.owner.State(t.Context())
		told := slices.ContainsFunc(state.Notices, func(n agentapi.Notice) bool { return n.Kind == agentapi.NoticeAccepted })
		return err == nil && state.PeopleCount == 1 && (told || !active)
	})
	return id
}

// startWithBob is start, and lets bob in to all of the apps.
func startWithBob(t *testing.T, apps ...string) (r *rig, id string) {
	t.Helper()
	r = start(t, apps...)
	return r, r.invited(t, true, apps...)
}

func (r *rig) mails(t *testing.T) int {
	t.Helper()
	mails := programs.Got(r.outbox.List(t.Context(), 100))(t)
	return len(mails)
}

// mailsAnew has every address get mails as if none had been asked for.
func (r *rig) mailsAnew(t *testing.T) {
	t.Helper()
	err := r.store.Update(t.Context(), func(tx kv.Tx) error {
		spent, err := tx.Scan("budget/", "", kv.MaxKeys)
		for _, row := range spent {
			err = errors.Join(err, tx.Delete(row.Key))
		}
		return err
	})
	programs.Must(t, err)
}

package localapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/devices"
	"porchlight/agent/engine"
	"porchlight/agent/health"
	"porchlight/agent/listening"
	"porchlight/agent/ownersecret"
	"porchlight/agent/people"
	"porchlight/agent/requests"
	"porchlight/agent/senders"
	"porchlight/agent/settings"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// beOther makes this process a program of another user, and ends it, where it was
// started as one; nil where the system has no such tests.
var beOther func()

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirVariable); dir != "" {
		os.Exit(beCrashed(dir))
	}
	if beOther != nil {
		beOther()
	}
	// The sockets of all tests, in a place that leaves nothing behind.
	dir, err := os.MkdirTemp("", "localapi-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_RUNTIME_DIR", dir)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// rig is the API with a real engine on a real store; only what is beyond the
// engine (account, proxy, outbox) is played by outside.
type rig struct {
	dir         string
	secret      string
	hash        []byte
	apps        *engine.Apps
	reg         *engine.Registry
	regCfg      engine.RegistryConfig
	control     people.Control                     // nil: not connected
	connector   Connector                          // nil: cannot connect
	certificate func(string) *agentapi.Certificate // nil: tells nothing
	people      *people.People
	access      *access.Access
	activity    *activity.Log
	requests    *requests.Log
	settings    *settings.Settings
	users       *engine.Users
	server      *Server
	api         *API
	outside     *outside
	arrived     chan struct{} // gets one for each request; nil for nobody
	log         io.Writer     // nil for the test's own
	ownPorts    []int         // Porchlight's, besides the API's
	headerIn    time.Duration // what the server waits for a head; 0 for as long as always

	addr   string
	socket string
	leave  func() // ends the agent's Run and waits for it; idempotent
	end    func() // ends the server's too; idempotent
}

// outside plays the rest of the agent.
type outside struct {
	mu         sync.Mutex
	connection Connection
	mails      []agentapi.Mail
	changes    *broadcast.Signal // the server's
}

func (o *outside) set(change func(*outside)) {
	o.mu.Lock()
	change(o)
	o.mu.Unlock()
	o.changes.Raise()
}

func (o *outside) standing() Connection {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.connection
}

func (o *outside) outbox(context.Context) ([]agentapi.Mail, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mails, nil
}

func (o *outside) makeLink(name string) (string, time.Time, error) {
	return "https://" + name + "." + o.standing().Account.Host + "/once", time.Unix(1, 0).UTC(), nil
}

// info is what the rig's engine says of itself.
var info = agentapi.EngineInfo{
	EngineVersion: "1.2.3", Protocol: agentapi.Protocol, PID: os.Getpid(), Mode: agentapi.ModeHeadless,
	Billing: agentapi.Billing{Plan: "self-hosted", Standing: "good"},
}

// connected is what outside says once there is an account.
var connected = agentapi.Account{
	Connected: true, Email: "maya@example.net", AccountID: "a1", Name: "maya",
	Host: "maya.localhost:8443", URL: "https://maya.localhost:8443", AuthURL: "https://control.localhost:8443", Local: true,
}

func start(t testing.TB) *rig {
	t.Helper()
	return startWith(t, func(*rig) {})
}

// startWith has the rig changed before it serves.
func startWith(t testing.TB, change func(*rig)) *rig {
	t.Helper()
	secret := ownersecret.New()
	r := &rig{
		dir:     t.TempDir(),
		secret:  secret,
		hash:    ownersecret.Hash(secret),
		outside: &outside{connection: Connection{Account: connected, Reachable: true}},
	}
	change(r)
	r.serve(t)
	return r
}

// serve starts the API on the rig's data directory, again after r.end.
func (r *rig) serve(t testing.TB) {
	t.Helper()
	kept, err := store.Open(r.dir)
	programs.Must(t, err)
	if r.log == nil {
		r.log = t.Output()
	}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	r.server = NewServer(ServerConfig{
		// Where nobody else listens once it has ended, nor at another address.
		DataDir: r.dir, Address: programs.FreeAddress(t), Registry: r.regCfg, Connector: r.connector,
		OwnerSecretHash: r.hash, DeskSecretHash: ownersecret.Hash(deskSecret), Log: log,
	})
	if r.headerIn > 0 {
		r.server.headerIn = r.headerIn
	}
	r.reg, r.outside.changes = r.server.Registry(), r.server.Changes()
	r.server.outermost = func(h http.Handler) http.Handler {
		h = described(t)(h)
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if r.arrived != nil {
				r.arrived <- struct{}{}
			}
			h.ServeHTTP(w, q)
		})
	}
	programs.Must(t, r.server.Listen())
	r.addr, r.socket = r.server.Addr(), r.server.OwnerSocket()
	own := r.server.open.Addr().(*net.TCPAddr).Port
	r.activity = activity.New(activity.Config{Store: kept, Changes: r.outside.changes})
	r.apps = programs.Got(engine.NewApps(engine.AppsConfig{
		Store: kept,
		Root: func() engine.Root {
			a := r.outside.standing().Account
			return engine.Root{Name: a.Name, Host: a.Host}
		},
		OwnPorts: append([]int{own}, r.ownPorts...),
		Listener: func(upstream.Target, int) agentapi.Listener {
			return agentapi.Listener{Program: "notesd", User: "maya", UserID: "1000"}
		},
		OnGone:   func(string) agentapi.Closed { return agentapi.Closed{OK: true, Closed: 2} },
		Happened: r.activity.Add,
		Changes:  r.outside.changes,
	}))(t)
	if r.users, err = engine.NewUsers(kept, r.apps, r.reg); err != nil {
		t.Fatal(err)
	}
	if r.settings, err = settings.New(kept, r.outside.changes, nil); err != nil {
		t.Fatal(err)
	}
	r.requests = requests.New(func() bool { return r.settings.Get().Requests }, r.apps.Has)
	r.access, err = access.New(access.Config{Store: kept, Settings: r.settings, Changes: r.outside.changes, Activity: r.activity})
	programs.Must(t, err)
	r.people = programs.Got(people.New(people.Config{
		Control: r.control, Apps: r.apps, Access: r.access, Activity: r.activity, Store: kept, Changes: r.outside.changes,
		Devices: devices.New(r.access, kept, nil),
	}))(t)
	named := programs.Got(senders.New(senders.Config{
		Store: kept, Access: r.access, Activity: r.activity, Apps: r.apps, Note: r.apps.Note, Changes: r.outside.changes,
	}))(t)
	r.api = New(Config{
		Senders:  named,
		Apps:     r.apps,
		Server:   r.server,
		Users:    r.users,
		Settings: r.settings,
		Access:   r.access,
		Activity: r.activity,
		Requests: r.requests,
		Listening: listening.New(listening.Config{
			App: func(port int) (agentapi.AppSummary, bool) {
				app, ok := r.apps.OnPort(port, func(string) int { return 0 })
				return agentapi.AppSummary{Name: app.Name, Label: app.Label, Status: app.Status}, ok
			},
			Seen: r.apps.PortSeen, Suggest: r.apps.Suggest, OwnPorts: []int{own}, Titles: func() bool { return true },
		}),
		Health: health.New(health.Config{
			Find: r.apps.ByID, Root: func() engine.Root { return engine.Root{} }, On: func() bool { return false }, Changes: r.outside.changes,
		}),
		Broken:      func() int { return 0 },
		Containers:  func() *agentapi.ContainersTrouble { return nil },
		Crowded:     func() time.Time { return time.Time{} },
		Update:      func() *agentapi.Update { return nil },
		Info:        info,
		Connection:  r.outside.standing,
		Certificate: r.certificate,
		MakeLink:    r.outside.makeLink,
		Outbox:      r.outside.outbox,
		People:      r.people,
		Log:         log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.server.Run(ctx) }()
	r.answer()
	r.end = sync.OnceFunc(func() {
		cancel()
		r.leave()
		if err := <-served; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.end)
}

// answer has r.api answer until r.leave.
func (r *rig) answer() {
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() { defer close(left); r.api.Run(ctx) }()
	r.leave = func() { cancel(); <-left }
}

func (r *rig) open() *agentapi.Client  { return agentapi.New(r.addr) }
func (r *rig) owner() *agentapi.Client { return agentapi.NewOwner(r.socket, r.secret) }

// approved publishes and approves an app.
func (r *rig) approved(t testing.TB, name, label string) {
	t.Helper()
	programs.Got(r.open().Publish(t.Context(), agentapi.PublishRequest{Name: name, Label: label, LocalPort: 8000}))(t)
	programs.Got(r.owner().Approve(t.Context(), name))(t)
}

// deskSecret is that of the menu bar in the agent's process.
const deskSecret = "the menu bar's own"

// request is one HTTP request as any program could send it.
type request struct {
	method, path string
	body         string
	header       http.Header
	host         string // Host; the listener's own when empty
	socket       bool   // by the owner's socket
	secret       string
}

type response struct {
	status int
	header http.Header
	body   string
}

// sentence ends as one, or with a command, which is copied and so has no full stop.
var sentence = regexp.MustCompile(`[.?]$|: porchlight [a-z ]+$`)

// sentence is the error of a refusal.
func (r response) sentence(t testing.TB) string {
	t.Helper()
	var body agentapi.ErrorBody
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Fatalf("a refusal is %q and not JSON: %s", got, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || !sentence.MatchString(body.Error) {
		t.Fatalf("a refusal without a sentence: %s", r.body)
	}
	return body.Error
}

// byOwner is a request of the owner's, on their socket and with their secret.
func (r *rig) byOwner(method, path, body string) request {
	return request{method: method, path: path, body: body, socket: true, secret: r.secret}
}

// wants sends a request and holds the answer to a status and to what its body, or the
// sentence of a refusal, says.
func (r *rig) wants(t testing.TB, q request, status int, says string) response {
	t.Helper()
	got := r.send(t, q)
	said := got.body
	if got.status >= 400 {
		said = got.sentence(t)
	}
	if got.status != status || !strings.Contains(said, says) {
		t.Errorf("%s %s %.80s: %d %s, want %d with %s", q.method, q.path, q.body, got.status, got.body, status, says)
	}
	return got
}

func (r *rig) send(t testing.TB, q request) response {
	t.Helper()
	host, network, addr := r.addr, "tcp", r.addr
	if q.socket {
		host, network, addr = "localhost", "unix", r.socket
	}
	// What hangs fails soon, and not with the whole package's time.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req := programs.Got(http.NewRequestWithContext(ctx, q.method, "http://"+host+q.path, strings.NewReader(q.body)))(t)
	if q.host != "" {
		req.Host = q.host
	}
	if q.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	if q.secret != "" {
		req.Header.Set(agentapi.HeaderOwnerSecret, q.secret)
	}
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" { // has no end
		return response{resp.StatusCode, resp.Header, ""}
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	return response{resp.StatusCode, resp.Header, string(bytes.TrimSpace(raw))}
}

// poster returns a function that publishes notes over c.
func poster(c net.Conn, host string) func(label string) error {
	answers := bufio.NewReader(c)
	return func(label string) error {
		body := fmt.Sprintf(`{"name":"notes","label":%q,"localPort":8000}`, label)
		if _, err := fmt.Fprintf(c, "POST /publish HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body); err != nil {
			return err
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("publish answered %s", resp.Status)
		}
		return nil
	}
}

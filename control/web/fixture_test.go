package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/kvtest"
	"porchlight/control/kv/pgtest"
	"porchlight/control/mail"
	"porchlight/test/golden"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(pgtest.Stopping(m))
}

// patience is how long tests wait for what has to come, on however busy a machine.
const patience = 2 * time.Minute

const (
	authURL  = "https://control.localhost:8443"
	callback = "https://notes.maya.localhost:8443/.porchlight/callback"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)

// rig is a control plane behind a real TLS listener.
type rig struct {
	t      testing.TB
	svc    *control.Service
	outbox *mail.Outbox
	store  *kvtest.Telling
	server *httptest.Server
	logs   *lockedBuffer
	letIn  atomic.Int64 // requests of somebody known
	owner  controlapi.Enrolled
	stop   func() // ends Run and waits for it
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t testing.TB, change ...func(*control.Config)) *rig {
	t.Helper()
	return newRigOn(t, openStore(t, "memory:"), change...)
}

// openStore opens a store for as long as the test runs. Every call with the same
// PostgreSQL database is another node's.
func openStore(t testing.TB, url string) kv.Store {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), url, kv.Options{}))(t)
	t.Cleanup(func() { store.Close() })
	return store
}

// stores are the stores a control plane can be on.
var stores = map[string]func(testing.TB) *rig{
	"bolt":     func(t testing.TB) *rig { return newRigOn(t, openStore(t, filepath.Join(t.TempDir(), "control.db"))) },
	"postgres": func(t testing.TB) *rig { return newRigOn(t, openStore(t, pgtest.Database(t))) },
}

func newRigOn(t testing.TB, store kv.Store, change ...func(*control.Config)) *rig {
	t.Helper()
	r := &rig{t: t, store: kvtest.Tell(store), logs: &lockedBuffer{}}
	r.outbox = mail.NewOutbox(r.store, nil)
	log := slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg := control.Config{
		Store: r.store, Naming: control.Naming{Domain: "localhost", AuthHost: "control.localhost", PublicPort: 8443},
		Mail: r.outbox, Log: log, Challenges: true,
	}
	for _, f := range change {
		f(&cfg)
	}
	r.svc = programs.Got(control.New(cfg))(t)
	r.owner = programs.Got(r.svc.Computers.Ensure(t.Context(), "maya@example.com", "maya"))(t)
	r.putApps(controlapi.App{ID: "app1", Name: "notes", Label: "Secret Diary", Live: true})

	r.stop = programs.Run(t, func(ctx context.Context) error { return r.svc.Run(kv.First(ctx)) })
	r.server = httptest.NewUnstartedServer(described(t, New(r.svc, Config{KeptMail: "porchlight outbox", Log: log, SecurityContact: "mailto:security@porch.example", AdminURL: r.svc.AuthURL(), LetIn: func(*http.Request) { r.letIn.Add(1) }})))
	r.server.Config.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	r.server.StartTLS()
	t.Cleanup(func() {
		r.stop() // answers waiting syncs, for which Close would wait
		r.server.Close()
	})
	return r
}

func (r *rig) putApps(apps ...controlapi.App) {
	r.t.Helper()
	programs.Must(r.t, r.svc.Agents.PutApps(r.t.Context(), r.owner.Computer.ID, controlapi.Apps{Apps: apps}))
}

// member makes an active member who may open the apps and has no session.
func (r *rig) member(email string, apps ...string) controlapi.Person {
	r.t.Helper()
	return r.memberOf(r.owner.Computer.ID, email, apps...)
}

func (r *rig) memberOf(computerID, email string, apps ...string) controlapi.Person {
	r.t.Helper()
	p := must(r.svc.People.Invite(r.t.Context(), computerID, controlapi.Invite{Email: email, Apps: apps}))
	link := tokenOf(r.t, r.mailsNamed("", email, 1))
	in := must(r.svc.People.AcceptInvitation(r.t.Context(), link, "", netip.Addr{}))
	programs.Must(r.t, r.svc.Sessions.SignOut(r.t.Context(), in.Token))
	return p
}

// transport reaches the rig's listener whatever the host.
func (r *rig) transport() *http.Transport {
	tr := controlapi.NewTransport(nil)
	tr.Proxy = nil
	tr.TLSHandshakeTimeout, tr.ResponseHeaderTimeout = patience, patience
	tr.TLSClientConfig.RootCAs = r.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	tr.TLSClientConfig.ServerName = "example.com" // what httptest's certificate is for
	tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, r.server.Listener.Addr().String())
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func (r *rig) client() *controlapi.Client {
	return &controlapi.Client{BaseURL: authURL, Credential: r.owner.Credential, HTTP: &http.Client{Transport: r.transport()}}
}

// synced is what an agent is told, or why it is told no more.
type synced struct {
	controlapi.Snapshot
	err error
}

// tells tells the agent with a credential until the test is over.
func tells(t testing.TB, svc *control.Service, credential string) <-chan synced {
	told := make(chan synced, 100)
	stop := svc.Feed.Tell(credential, netip.Addr{}, "", func(s controlapi.Snapshot) error {
		told <- synced{s, nil}
		return nil
	}, func(err error) { told <- synced{err: err} })
	t.Cleanup(stop)
	return told
}

// waitForNext takes the snapshot of the moment, and waits for the next one.
func (r *rig) waitForNext() (has controlapi.Snapshot, next <-chan synced) {
	r.t.Helper()
	next = tells(r.t, r.svc, r.owner.Credential)
	return r.first(next), next
}

// first is the first snapshot that is told.
func (r *rig) first(told <-chan synced) controlapi.Snapshot {
	r.t.Helper()
	first := <-told
	programs.Must(r.t, first.err)
	return first.Snapshot
}

// snapshot is that of the moment.
func (r *rig) snapshot() controlapi.Snapshot {
	r.t.Helper()
	return r.first(tells(r.t, r.svc, r.owner.Credential))
}

// publicKey asks for the key that verifies access tokens, as anybody may.
func (r *rig) publicKey() string {
	r.t.Helper()
	var key controlapi.PublicKey
	programs.Must(r.t, json.Unmarshal([]byte(r.browser().get(controlapi.PathPublicKey).body), &key))
	return key.PublicKey
}

// browser keeps cookies, follows nothing by itself, and sends what browsers
// send with forms.
type browser struct {
	*rig
	http  *http.Client
	agent string // what it says it is; "" for nothing
}

func (r *rig) browser() *browser {
	jar := programs.Got(cookiejar.New(nil))(r.t)
	return &browser{rig: r, http: &http.Client{
		Transport: r.transport(), Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is a response with its body read.
type answer struct {
	*http.Response
	body string
}

func (b *browser) do(req *http.Request) answer {
	b.t.Helper()
	resp := programs.Got(b.http.Do(req))(b.t)
	defer resp.Body.Close()
	body := programs.Got(io.ReadAll(resp.Body))(b.t)
	return answer{resp, string(body)}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	return b.do(b.request(http.MethodGet, path, nil))
}

func (b *browser) post(path string, fields ...string) answer {
	b.t.Helper()
	f := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		f.Add(fields[i], fields[i+1])
	}
	req := b.request(http.MethodPost, path, strings.NewReader(f.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Origin", authURL)
	return b.do(req)
}

func (b *browser) request(method, path string, body io.Reader) *http.Request {
	b.t.Helper()
	if !strings.HasPrefix(path, "https://") {
		path = authURL + path
	}
	req := programs.Got(http.NewRequestWithContext(b.t.Context(), method, path, body))(b.t)
	if b.agent != "" {
		req.Header.Set("User-Agent", b.agent)
	}
	return req
}

func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, a.body)
	}
	return a
}

// to is where a redirect leads.
func (a answer) to(t testing.TB) string {
	t.Helper()
	a.want(t, http.StatusSeeOther)
	return a.Header.Get("Location")
}

// mails waits for the nth sign-in mail to an address and returns the newest.
func (r *rig) mails(email string, nth int) mail.Entry {
	r.t.Helper()
	return r.mailsNamed("Your link to sign in", email, nth)
}

// invitations waits for the nth invitation to an address and returns the newest.
func (r *rig) invitations(email string, nth int) mail.Entry {
	r.t.Helper()
	return r.mailsNamed("maya@example.com shares ", email, nth)
}

func (r *rig) mailsNamed(subject, email string, nth int) mail.Entry {
	r.t.Helper()
	late := time.After(programs.Patience)
	for {
		list := programs.Got(r.outbox.List(r.t.Context(), mail.OutboxSize))(r.t)
		var to []mail.Entry
		for _, m := range list {
			if m.To == email && strings.HasPrefix(m.Subject, subject) {
				to = append(to, m)
			}
		}
		if len(to) >= nth {
			return to[0]
		}
		select {
		case <-r.store.Done:
		case <-late:
			r.t.Fatalf("waited in vain for mail %d to %s", nth, email)
		}
	}
}

var codeLine = regexp.MustCompile(`Your code: (\d{3} \d{3})`)

func tokenOf(t testing.TB, m mail.Entry) string {
	t.Helper()
	u := programs.Got(url.Parse(m.Links[0]))(t)
	return u.Query().Get("token")
}

// signIn signs the browser in by link and returns where it is led.
func (b *browser) signIn(email, returnTo string) string {
	b.t.Helper()
	b.post("/signin", "email", email, "return", returnTo).want(b.t, http.StatusSeeOther)
	link := b.mails(email, 1).Links[0]
	b.get(link).want(b.t, http.StatusOK)
	return b.post("/signin/link", "token", tokenOf(b.t, b.mails(email, 1))).to(b.t)
}

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func visitPath(change ...string) string {
	q := url.Values{
		"computer": {"maya"}, "app": {"app1"}, "redirect_uri": {callback}, "state": {"the-state"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(change); i += 2 {
		q.Set(change[i], change[i+1])
	}
	return "/visit?" + q.Encode()
}

// goldenPage compares a page with testdata, its asset digests, times and tokens
// taken out.
func goldenPage(t *testing.T, name, body string) {
	t.Helper()
	for pattern, with := range map[string]string{
		`(/assets/[a-z]+)-[0-9a-f]{12}`:              "$1-DIGEST",
		`since \d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC`: "since TIME",
		`(until|on) \d+ [A-Z][a-z]+`:                 "$1 DAY",
		`/i/[a-z2-7-]{19}`:                           "/i/NAME",
		`last used \d+ [A-Z][a-z]+ \d{4}`:            "last used DAY",
		`name="session" value="[a-z0-9]{26}"`:        `name="session" value="SESSION"`,
		`name="code" value="[A-Z]{4}-[A-Z]{4}"`:      `name="code" value="CODE"`,
		`the code <b>[A-Z]{4}-[A-Z]{4}`:              "the code <b>CODE",
		`name="token" value="[^"]{43}"`:              `name="token" value="TOKEN"`,
		`name="account" value="[a-z0-9]{26}"`:        `name="account" value="ACCOUNT"`,
		`name="form" value="[a-z0-9]{26}"`:           `name="form" value="FORM"`,
		`name="password" value="[a-z0-9]{26}"`:       `name="password" value="ID"`,
		`plp_[a-z2-7]{32}`:                           "PASSWORD",
		`since \d+ [A-Z][a-z]+ \d{4}</span>`:         "since DAY</span>",
		`client_id=[a-z0-9]{26}`:                     "client_id=CLIENT",
	} {
		body = regexp.MustCompile(pattern).ReplaceAllString(body, with)
	}
	golden.Check(t, filepath.Join("testdata", name+".golden.html"), body)
}

func unescaped(s string) string { return html.UnescapeString(s) }

// farRig is a control plane away from localhost.
func farRig(t testing.TB) *rig {
	return newRig(t, func(c *control.Config) {
		c.Domain, c.AuthHost, c.PublicPort = "porch.example", "control.example.net", 443
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

package proxy_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/devices"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/requests"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/localca"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	rootHost = "maya.porch.test"
	authURL  = "https://control.porch.test"
	instance = "0a1b2c3d"
	cookie   = "__Host-porchlight-" + instance
	sni      = "notes." + rootHost
	origin   = "https://" + sni
	ownerID  = "acc-owner"
	bobID    = "acc-bob"
)

// authority vouches for the hosts of all rigs.
var authority = sync.OnceValues(func() (*localca.CA, error) {
	dir, err := os.MkdirTemp("", "porchlight")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // it is in memory
	return localca.Open(dir, localca.Options{Names: []string{"porch.test", "localhost"}})
})

var certificates sync.Map // *tls.Certificate, by host

// servings are by our own way in, and by net/http's server alone.
var servings = map[string]func(*proxy.Proxy, context.Context, net.Listener) error{"own": (*proxy.Proxy).Serve, "net/http": proxy.ServeByLibrary}

func certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if made, ok := certificates.Load(hello.ServerName); ok {
		return made.(*tls.Certificate), nil
	}
	ca, err := authority()
	if err != nil {
		return nil, err
	}
	made, err := ca.Issue(hello.ServerName)
	if err == nil {
		certificates.Store(hello.ServerName, made)
	}
	return made, err
}

// rig is a proxy on a real TLS listener, with a real store behind it, a control
// plane that signs in whoever is asked for, and the app notes, which says hello
// until a test has another in its place.
type rig struct {
	t        testing.TB
	store    *store.Store
	access   *access.Access
	activity *activity.Log
	devices  *devices.Devices
	proxy    *proxy.Proxy
	addr     string
	roots    *x509.CertPool

	redeems atomic.Int64 // calls to the control plane
	stop    func()
	faults  int // how often our own way in is to have failed in the end

	mu        sync.Mutex
	clock     time.Duration // ahead of the real clock
	apps      map[string]engine.App
	codes     map[string]visit // issued and not redeemed
	redeemErr error
	proof     controlapi.Proof // of whoever signs in
	people    []controlapi.Person
	revoked   []controlapi.RevokedGrant
	grantApps map[string][]string
	keys      []string // PEM
	passwords []controlapi.AppPassword
	domains   []controlapi.Domain
	onLookup  func() // called before each, while nothing is locked; nil for not
}

type visit struct {
	visitor              controlapi.Visitor
	challenge, returnURI string
}

func newRig(t testing.TB, options ...func(*proxy.Config)) *rig {
	t.Helper()
	return newRigBy(t, "own", options...)
}

func newRigBy(t testing.TB, way string, options ...func(*proxy.Config)) *rig {
	t.Helper()
	ca := programs.Got(authority())(t)
	r := &rig{t: t, roots: ca.Pool(), apps: map[string]engine.App{}, codes: map[string]visit{}}
	db := programs.Got(store.Open(t.TempDir()))(t)
	r.store = db
	r.activity = activity.New(activity.Config{Store: db, Now: r.now})
	r.access = programs.Got(access.New(access.Config{Store: db, Activity: r.activity, Now: r.now}))(t)
	r.devices = devices.New(r.access, db, r.now)
	r.setPeople(
		controlapi.Person{AccountID: ownerID, Email: "maya@example.com", Role: controlapi.RoleOwner, Status: controlapi.PersonActive, Epoch: 1},
		controlapi.Person{AccountID: bobID, Email: "bob@example.com", Role: controlapi.RoleMember, Status: controlapi.PersonActive, Apps: []string{"id-notes"}, Epoch: 1},
	)
	c := proxy.Config{
		Apps: r, Access: r.access, Activity: r.activity, Now: r.now,
		Root:     func() engine.Root { return engine.Root{Name: "maya", Host: rootHost} },
		AuthURL:  func() string { return authURL },
		ByID:     r.byID,
		Redeem:   r.redeem,
		TLS:      &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
		Instance: instance,
		Key:      bytes.Repeat([]byte{7}, 32),
		Requests: requests.New(func() bool { return false }, nil),

		DeviceAuthority: r.devices.Authority,
	}
	for _, o := range options {
		o(&c)
	}
	r.proxy = programs.Got(proxy.New(c))(t)
	r.app("notes", hello)
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served, ran := make(chan error, 1), make(chan error, 1)
	go func() { served <- servings[way](r.proxy, ctx, ln) }()
	go func() { ran <- r.access.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-served, <-ran, db.Close()); err != nil {
			t.Errorf("stopping: %v", err)
		}
		if broken := r.proxy.Broken(); broken != r.faults {
			t.Errorf("our own way in failed %d times, want %d", broken, r.faults)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.clock)
}

func (r *rig) advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock += d
}

func (r *rig) Lookup(name string) (engine.App, bool) {
	r.mu.Lock()
	on := r.onLookup
	r.mu.Unlock()
	if on != nil {
		on()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	app, ok := r.apps[name]
	return app, ok
}

func (r *rig) byID(id string) (engine.App, bool) { return r.Lookup(strings.TrimPrefix(id, "id-")) }

// publish makes an app live at a port; the name becomes "id-name" and the label
// its title.
func (r *rig) publish(name string, port int) engine.App {
	app := engine.App{ID: "id-" + name, Name: name, Label: strings.ToUpper(name[:1]) + name[1:], Port: port, Live: true}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apps[name] = app
	return app
}

func (r *rig) change(name string, fn func(*engine.App)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	app := r.apps[name]
	fn(&app)
	r.apps[name] = app
}

// app starts a real backend and publishes it.
func (r *rig) app(name string, h http.HandlerFunc) *httptest.Server {
	srv := httptest.NewServer(h)
	r.t.Cleanup(srv.Close)
	r.publish(name, srv.Listener.Addr().(*net.TCPAddr).Port)
	return srv
}

func (r *rig) setPeople(people ...controlapi.Person) (closed int) {
	r.mu.Lock()
	r.people = people
	r.mu.Unlock()
	return r.sync()
}

// sync hands the agent a new snapshot.
func (r *rig) sync() (closed int) {
	r.mu.Lock()
	s := controlapi.Snapshot{
		Version: rand.Text(), Computer: controlapi.Computer{ID: "computer", Name: "maya", Host: rootHost},
		People: r.people, RevokedGrants: r.revoked, GrantApps: r.grantApps, PublicKeys: r.keys, Passwords: r.passwords, Domains: r.domains,
	}
	r.mu.Unlock()
	return r.access.SetSnapshot(s)
}

// person returns the people with one of them changed; for nil, removed.
func (r *rig) person(id string, fn func(*controlapi.Person)) []controlapi.Person {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []controlapi.Person
	for _, p := range r.people {
		if p.AccountID != id {
			out = append(out, p)
		} else if fn != nil {
			fn(&p)
			out = append(out, p)
		}
	}
	return out
}

// redeem is the control plane's side of POST /v1/visits.
func (r *rig) redeem(_ context.Context, in controlapi.Redeem) (controlapi.Visitor, error) {
	r.redeems.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.redeemErr != nil {
		return controlapi.Visitor{}, r.redeemErr
	}
	v, ok := r.codes[in.Code]
	delete(r.codes, in.Code)
	sum := sha256.Sum256([]byte(in.CodeVerifier))
	if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != v.challenge || in.RedirectURI != v.returnURI {
		return controlapi.Visitor{}, &controlapi.Error{Code: controlapi.CodeInvalidGrant, Message: "This code is not valid."}
	}
	return v.visitor, nil
}

// issue is the control plane's side of GET /visit: it signs the account in and
// returns where the browser is sent back to.
func (r *rig) issue(location, accountID string) string {
	r.t.Helper()
	u, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, authURL+controlapi.PathVisit+"?") {
		r.t.Fatalf("not a way to sign in: %q (%v)", location, err)
	}
	q := u.Query()
	if q.Get(controlapi.ParamCodeChallengeMethod) != "S256" || q.Get(controlapi.ParamComputer) != "maya" {
		r.t.Fatalf("visit without method or computer: %q", location)
	}
	code := rand.Text()
	epoch := int64(1)
	r.mu.Lock()
	for _, p := range r.people {
		if p.AccountID == accountID {
			epoch = p.Epoch
		}
	}
	r.codes[code] = visit{
		visitor:   controlapi.Visitor{AccountID: accountID, AppID: q.Get(controlapi.ParamApp), Epoch: epoch, Proof: r.proof},
		challenge: q.Get(controlapi.ParamCodeChallenge), returnURI: q.Get(controlapi.ParamRedirectURI),
	}
	r.mu.Unlock()
	back := url.Values{controlapi.ParamCode: {code}, controlapi.ParamState: {q.Get(controlapi.ParamState)}}
	return q.Get(controlapi.ParamRedirectURI) + "?" + back.Encode()
}

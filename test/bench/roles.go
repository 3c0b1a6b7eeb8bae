package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sync/errgroup"
	"software.sslmate.com/src/go-pkcs12"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/certs"
	"porchlight/agent/devices"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/requests"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// roleVariable names what this process is: app, authoriser or proxy; empty for
// the one that measures.
const roleVariable = "PORCHLIGHT_BENCH_ROLE"

// scaleVariable is how many apps, people and sessions the proxy knows, of each; one
// where there is none.
const scaleVariable = "PORCHLIGHT_BENCH_SCALE"

// ready is the one line a role writes to its standard output when it listens.
type ready struct {
	Addr   string
	Cookie string // of a session, for the proxy: name=value
	Token  string // an access token, for the proxy
	// Password is an app password as visitors send it by Basic, and Key the same alone, for
	// the proxy.
	Password, Key string
	// Device is the file of a device's certificate, and Code opens it, for the proxy.
	Device []byte
	Code   string
	// Owner is where the owner's click arrives, for the proxy.
	Owner string
	// Tokens are refresh tokens, one a client of the control plane's, and ClientID and
	// Secret what those name themselves with.
	Tokens           []string
	ClientID, Secret string
}

// withDevice is the role of a proxy whose app has a device.
const withDevice = "proxy with a device"

// certificate is the one in Device.
func (r ready) certificate() ([]tls.Certificate, error) {
	key, leaf, err := pkcs12.Decode(r.Device, r.Code)
	if err != nil {
		return nil, fmt.Errorf("read a device's certificate: %w", err)
	}
	return []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}}, nil
}

func play(ctx context.Context, role string, args []string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	switch role {
	case "app":
		return serve(ctx, ln, http.HandlerFunc(serveApp))
	case "authoriser":
		return serve(ctx, ln, http.HandlerFunc(authorise))
	case "relay":
		return playRelay(ctx, args)
	case "behind":
		return playBehind(ctx, ln, args)
	case "control":
		return playControl(ctx, ln, args)
	case "operator":
		return playOperator(ctx, ln, args)
	case "computer":
		return playComputer(ctx, args)
	case "proxy", withDevice:
		return playProxy(ctx, ln, role, args)
	default:
		return fmt.Errorf("no such role: %s", role)
	}
}

func announce(r ready) error { return json.NewEncoder(os.Stdout).Encode(r) }

func serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	if err := announce(ready{Addr: ln.Addr().String()}); err != nil {
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

var (
	small = []byte(strings.Repeat("x", 100))
	chunk = make([]byte, 256<<10)
)

// served is how many requests the app has answered.
var served atomic.Int64

// serveApp takes in whatever is sent, and answers with as many bytes as the path
// says.
func serveApp(w http.ResponseWriter, r *http.Request) {
	size := int64(len(small))
	switch {
	case r.URL.Path == "/count":
		fmt.Fprint(w, served.Load())
		return
	case r.URL.Path == "/page", strings.HasPrefix(r.URL.Path, "/r/"):
		servePage(w, r)
		return
	case r.URL.Path == "/ws":
		echoMessages(w, r)
		return
	case r.URL.Path == "/16k":
		size = 16 << 10
	case r.URL.Path == "/1m":
		size = 1 << 20
	case strings.HasPrefix(r.URL.Path, "/bulk/"):
		size, _ = strconv.ParseInt(r.URL.Path[len("/bulk/"):], 10, 64)
	}
	if r.ContentLength != 0 {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
	}
	w.Header()["Content-Type"] = []string{"application/octet-stream"}
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	for left := size; left > 0; left -= int64(len(chunk)) {
		if _, err := w.Write(chunk[:min(left, int64(len(chunk)))]); err != nil {
			return
		}
	}
	served.Add(1)
}

func echoMessages(w http.ResponseWriter, r *http.Request) {
	talk, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer talk.CloseNow()
	for {
		kind, message, err := talk.Read(r.Context())
		if err != nil || talk.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}

// authorise is the least an authoriser behind forward_auth can do.
func authorise(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Cookie"), "session=") {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	w.Header()["X-Service-User"] = []string{"acc-maya"}
	w.Header()["X-Service-Email"] = []string{"maya@example.com"}
}

// oneCertificate serves a single name, as certs.Keeper does, from a file.
type oneCertificate struct{ cert *tls.Certificate }

func (c oneCertificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.cert, nil
}
func (c oneCertificate) Serves(name string) bool { return name == host }

// manyApps are published at one port, by their names.
type manyApps map[string]engine.App

func (apps manyApps) Lookup(name string) (engine.App, bool) {
	app, ok := apps[name]
	return app, ok
}

// scale makes so many apps and people, each of whom may open the first ten. The first
// of each are those that visitors of the benchmark ask for, and are.
func scale(n, port int) (apps manyApps, people []controlapi.Person) {
	apps = manyApps{appName: {ID: "app", Name: appName, Label: "Notes", Port: port, Live: true}}
	ids := []string{"app"}
	for i := 1; i < n; i++ {
		id := fmt.Sprint("app-", i)
		apps[id] = engine.App{ID: id, Name: id, Label: id, Port: port, Live: true}
		ids = append(ids, id)
	}
	for i := range n {
		people = append(people, controlapi.Person{
			AccountID: accountOf(i), Email: fmt.Sprintf("maya%d@example.com", i), Role: controlapi.RoleMember,
			Status: controlapi.PersonActive, Apps: ids[:min(n, 10)], Epoch: 1,
		})
	}
	return apps, people
}

func accountOf(i int) string { return fmt.Sprint("acc-maya", i) }

// startProfile writes a CPU profile to a file until stop is called; an empty name is
// for none.
func startProfile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}

// ownersClick does what the owner's click does, below the loopback API: the last person's
// access withdrawn and given back, everything dark and light again.
func ownersClick(acc *access.Access, account string) http.Handler {
	var id uint64
	change := func() store.PendingChange {
		return store.PendingChange{ID: id, AccountID: account, AppID: "app", At: time.Now()}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		switch r.URL.Path {
		case "/withdraw":
			id++
			_, err = acc.TakeAway(change())
		case "/give":
			err = acc.GiveBack(change())
		case "/dark":
			_, err = acc.GoDark()
		case "/light":
			err = acc.LightUp()
		default:
			err = errors.New("there is no such click")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// playProxy is the agent's proxy whole, without the relay before it. Arguments:
// directory (with cert.pem and key.pem), the app's port, a profile to write or
// "", and the addresses of relays whose visitors it takes instead.
func playProxy(ctx context.Context, ln net.Listener, role string, args []string) error {
	if len(args) < 3 {
		return errors.New("want a directory, a port, a profile and perhaps relays")
	}
	dir := args[0]
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(dir+"/cert.pem", dir+"/key.pem")
	if err != nil {
		return err
	}
	db, err := store.Open(dir + "/data")
	if err != nil {
		return err
	}
	defer db.Close()
	acc, err := access.New(access.Config{Store: db})
	if err != nil {
		return err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(cmp.Or(os.Getenv(scaleVariable), "1"))
	if err != nil {
		return err
	}
	apps, people := scale(n, port)
	people[0].Since = time.Unix(1e9, 0)
	const instance = "0a1b2c3d"
	account := accountOf(0)
	const password = controlapi.PasswordPrefix + "only-for-the-benchmark"
	hash := sha256.Sum256([]byte(password))
	acc.SetSnapshot(controlapi.Snapshot{
		Version: "1", Computer: controlapi.Computer{ID: "computer", Name: "maya", Host: rootHost},
		People:     people,
		Passwords:  []controlapi.AppPassword{{ID: "password", AccountID: account, AppID: "app", Hash: base64.RawURLEncoding.EncodeToString(hash[:])}},
		PublicKeys: []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))},
	})
	var cookies []string // the first person's first
	for i := range n {
		session, err := acc.NewSession("app", accountOf(i), 1, controlapi.ProofMail)
		if err != nil {
			return err
		}
		cookies = append(cookies, "__Host-porchlight-"+instance+"="+session)
	}
	now := time.Now()
	// It outlives a round; every round has a proxy of its own.
	token, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, controlapi.AccessClaims{
		Issuer: controlapi.TokenIssuer, Subject: account, Email: people[0].Email, Audience: rootHost,
		ClientID: "bench", Grant: "grant", Scope: controlapi.TokenScope, ID: rand.Text(),
		IssuedAt: now.Unix(), Expires: now.Add(controlapi.TokenLife).Unix(),
	}).SignedString(private)
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	rand.Read(key)
	known := devices.New(acc, db, nil)
	var device devices.Made
	if role == withDevice {
		if device, err = known.Make(people[0], devices.Wanted{Name: "bench", Apps: []string{"app"}}); err != nil {
			return err
		}
	}
	p, err := proxy.New(proxy.Config{
		DeviceAuthority: known.Authority,
		Apps:            apps, Access: acc, Activity: activity.New(activity.Config{Store: db}),
		Root:    func() engine.Root { return engine.Root{Name: "maya", Host: rootHost} },
		AuthURL: func() string { return "https://control.porch.test" },
		Redeem: func(context.Context, controlapi.Redeem) (controlapi.Visitor, error) {
			return controlapi.Visitor{}, io.EOF
		},
		TLS:      certs.TLSConfig(oneCertificate{&pair}),
		Instance: instance, Key: key,
		Bearer:   access.NewBearer(acc),
		Requests: requests.New(func() bool { return false }, nil),
	})
	if err != nil {
		return err
	}
	stop, err := startProfile(args[2])
	if err != nil {
		return err
	}
	defer stop()
	basic := base64.StdEncoding.EncodeToString([]byte(people[0].Email + ":" + password))
	g, ctx := errgroup.WithContext(ctx)
	if len(args) > 3 {
		t, err := tunnelTo(dir, args[3:]...)
		if err != nil {
			return err
		}
		g.Go(func() error { return t.Run(ctx) })
		if err := awaitConnected(ctx, t); err != nil {
			return err
		}
		ln = t.Listener()
	}
	owner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer owner.Close() // ends what serves it
	g.Go(func() error {
		_ = http.Serve(owner, ownersClick(acc, accountOf(n-1))) // it ends with us
		return nil
	})
	context.AfterFunc(ctx, func() { owner.Close() })
	// Requests are for the host without a port, whatever port is listened at.
	if err := announce(ready{Addr: ln.Addr().String(), Cookie: strings.Join(cookies, " "), Token: token, Password: "Basic " + basic, Key: password, Owner: owner.Addr().String(), Device: device.File, Code: device.Code}); err != nil {
		return err
	}
	g.Go(func() error { return acc.Run(ctx) })
	g.Go(func() error { return p.Serve(ctx, ln) })
	return g.Wait()
}

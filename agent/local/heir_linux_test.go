package local

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// heirVariable has the test binary be a program that listens at the address or the
// path the variable holds, and says what each connection brought.
const heirVariable = "PORCHLIGHT_TEST_HEIR"

// nobody is the user it runs as.
const nobody = 65534

func init() {
	if at := os.Getenv(heirVariable); at != "" {
		os.Exit(beHeir(at))
	}
}

// beHeir ends with its input. A line goes out for its port, and one for every
// connection: the request that came, or how many bytes that were none.
func beHeir(at string) int {
	network := "tcp"
	if strings.HasPrefix(at, "/") {
		network = "unix"
	}
	ln, err := net.Listen(network, at)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	port := 0
	if tcp, ok := ln.Addr().(*net.TCPAddr); ok {
		port = tcp.Port
	}
	say("%d", port)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var heard bytes.Buffer
				req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &heard)))
				if err != nil {
					say("%d bytes", heard.Len())
					return
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nheir")
				say("%s %s of %s", req.Method, req.URL, req.Header.Get("X-Service-Role"))
			}()
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// heir is a program of the user nobody that listens on a port.
type heir struct {
	t    *testing.T
	port int
	out  *bufio.Scanner
	end  func()
}

// newHeir listens on a free port for 0.
func newHeir(t *testing.T, port int) *heir {
	t.Helper()
	return newHeirAt(t, "127.0.0.1:"+strconv.Itoa(port))
}

// newHeirAt listens at an address, or at the path of a socket.
func newHeirAt(t *testing.T, at string) *heir {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{heirVariable + "=" + at}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	programs.Must(t, err)
	out := programs.Got(cmd.StdoutPipe())(t)
	programs.Must(t, cmd.Start())
	h := &heir{t: t, out: bufio.NewScanner(out), end: sync.OnceFunc(func() { in.Close(); _ = cmd.Wait() })}
	t.Cleanup(h.end)
	if h.port, err = strconv.Atoi(h.next()); err != nil {
		t.Fatalf("nobody's program: %v", err)
	}
	return h
}

// next waits for a line of its.
func (h *heir) next() string {
	h.t.Helper()
	if !h.out.Scan() {
		h.t.Fatal("nobody's program said no more")
	}
	return h.out.Text()
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program as another user; run this test as root")
	}
}

// says listens at an address or a path for an app that answers everything with a text,
// once it is started.
func says(t *testing.T, network, at, text string) *httptest.Server {
	t.Helper()
	ln := programs.Got(net.Listen(network, at))(t)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }))
	srv.Listener.Close()
	srv.Listener = ln
	return srv
}

// asks has notes published on a port, and checks how it stands then.
func (h *house) asks(t *testing.T, port int, want agentapi.Status) {
	t.Helper()
	pub, err := h.open.Publish(t.Context(), agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: port})
	if err != nil || pub.Status != want {
		t.Fatalf("POST /publish: %+v, %v, want %s", pub, err, want)
	}
}

// mortal replaces the house's app by one that can end and start again on its port.
func (h *house) mortal(t *testing.T) (end, start func()) {
	t.Helper()
	return h.mortalOn(t, "127.0.0.1")
}

// mortalOn is mortal on an address of this computer.
func (h *house) mortalOn(t *testing.T, address string) (end, start func()) {
	t.Helper()
	var app *httptest.Server
	start = func() {
		app = says(t, "tcp", net.JoinHostPort(address, strconv.Itoa(h.port)), "the app")
		app.Start()
		h.port = portOf(t, app.Listener.Addr().String())
	}
	end = func() { app.Close() }
	h.port = programs.FreePort(t)
	start()
	t.Cleanup(func() { end() })
	return end, start
}

// theOwner is a browser that is signed in at notes as the owner.
func (h *house) theOwner(t *testing.T, address string) (get func(want int, body string)) {
	t.Helper()
	browser, account := h.browser(t), h.account()
	if page, err := browser.SignIn(t.Context(), address, account.Email, h.mails); err != nil || page.Body != "the app" {
		t.Fatalf("%+v, %v", page, err)
	}
	return func(want int, body string) {
		t.Helper()
		page, err := browser.Open(t.Context(), address+"/secret")
		if err != nil || page.Status != want || !strings.Contains(page.Body, body) {
			t.Fatalf("HTTP %d, %v, want %d with %q:\n%.300s", page.Status, err, want, body, page.Body)
		}
	}
}

// standing is how notes stands, for itself and for the owner.
func (h *house) standing(t *testing.T, want agentapi.Status) agentapi.OwnerApp {
	t.Helper()
	pub, err := h.open.Publication(t.Context(), "notes")
	if err != nil || pub.Status != want {
		t.Fatalf("GET /publish: %+v, %v, want %s", pub, err, want)
	}
	state, err := h.owner.State(t.Context())
	if err != nil || len(state.Apps) != 1 || state.Apps[0].Status != want {
		t.Fatalf("the owner sees %+v, %v", state.Apps, err)
	}
	return state.Apps[0]
}

const nothingHere = "Nothing is published here"

// Weakness S2: the port of an app that died is anybody's.
// Attack: a program of the user nobody listens on it, and publishes nothing.
// Checked: the owner's visit gets our page, the program not a byte; the app waits,
// and the owner sees whose it was and whose it is. Their yes is for that user
// alone; theirs again is asked for when their own program is back.
func TestS2DeadPortOfAnotherUser(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	h := startHouse(t)
	end, start := h.mortal(t)
	get := h.theOwner(t, h.publish(t))
	end()
	get(http.StatusBadGateway, "answering")
	h.standing(t, agentapi.StatusLive)

	other := newHeir(t, h.port)
	get(http.StatusNotFound, nothingHere)
	if heard := other.next(); heard != "0 bytes" {
		t.Fatalf("nobody's program was sent %q", heard)
	}
	app := h.standing(t, agentapi.StatusPending)
	if app.Listener.UserID != "65534" || app.ApprovedListener == nil || app.ApprovedListener.UserID != "0" {
		t.Errorf("the owner sees %+v, approved %+v", app.Listener, app.ApprovedListener)
	}
	h.await(t, func() bool { return h.standing(t, agentapi.StatusPending).Listener.Program != "" }) // looked for afterwards
	app = h.standing(t, agentapi.StatusPending)
	want := fmt.Sprintf("Notes was approved for %s; now %s, run by %s, listens on port %d.", app.ApprovedListener.User, app.Listener.Program, app.Listener.User, h.port)
	if got := app.ListenerChange(strings.Clone); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	get(http.StatusNotFound, nothingHere)

	programs.Got(h.owner.Approve(t.Context(), "notes"))(t)
	get(http.StatusOK, "heir")
	if heard := other.next(); heard != "GET /secret of owner" {
		t.Fatalf("the approved program was sent %q", heard)
	}
	if app := h.standing(t, agentapi.StatusLive); app.ApprovedListener != nil || app.OpenToCount != 0 {
		t.Errorf("%+v", app)
	}

	other.end()
	start()
	get(http.StatusNotFound, nothingHere)
	h.standing(t, agentapi.StatusPending)
	programs.Got(h.owner.Approve(t.Context(), "notes"))(t)
	get(http.StatusOK, "the app")
}

// Weakness S1: whoever publishes an approved name is live at once.
// Attack: the name is published with the port of a program of the user nobody, by
// a caller who may.
// Checked: 202, the visits get our page and the program not a byte, and the app
// itself is live again at once when it publishes its own.
func TestS1PublishedPortOfAnotherUser(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	h := startHouse(t)
	h.mortal(t)
	get := h.theOwner(t, h.publish(t))
	other := newHeir(t, 0)
	h.asks(t, other.port, agentapi.StatusPending)
	get(http.StatusNotFound, nothingHere)
	app := h.standing(t, agentapi.StatusPending)
	if app.LocalPort != other.port || app.Listener.UserID != "65534" || app.ApprovedListener == nil || app.ApprovedListener.UserID != "0" {
		t.Errorf("the owner sees %+v, approved %+v", app, app.ApprovedListener)
	}
	h.asks(t, h.port, agentapi.StatusLive)
	get(http.StatusOK, "the app")
	h.asks(t, other.port, agentapi.StatusPending)
	programs.Got(h.owner.Deny(t.Context(), "notes"))(t)
	if app := h.standing(t, agentapi.StatusStopped); app.LocalPort != h.port || app.ApprovedListener != nil {
		t.Errorf("denied: %+v", app)
	}
	h.asks(t, h.port, agentapi.StatusLive)
	get(http.StatusOK, "the app")
	// Nobody else connected before: its first visitor is the first it tells of.
	if conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(other.port)); err == nil {
		io.WriteString(conn, "x")
		conn.Close()
	}
	if heard := other.next(); heard != "1 bytes" {
		t.Errorf("nobody's program was sent %q", heard)
	}
}

// Weakness: with everybody on the computer trusted, another user's program that
// published an approved name had to wait all the same.
// Checked: it is live at once (P4) and gets the visits; once the
// owner trusts everybody no more, it gets none.
func TestEverybodyTrustedTakesAddressesOver(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	h := startHouse(t)
	h.mortal(t)
	get := h.theOwner(t, h.publish(t))
	other := newHeir(t, 0)
	trust := func(on bool) {
		t.Helper()
		programs.Got(h.owner.ChangeSettings(t.Context(), map[string]any{"trustEverybody": on}))(t)
	}
	trust(true)
	h.asks(t, other.port, agentapi.StatusLive)
	get(http.StatusOK, "heir")
	if heard := other.next(); heard != "GET /secret of owner" {
		t.Errorf("the trusted program was sent %q", heard)
	}
	trust(false)
	get(http.StatusNotFound, nothingHere)
	h.standing(t, agentapi.StatusPending)
}

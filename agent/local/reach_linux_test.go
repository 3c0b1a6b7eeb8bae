package local

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/internal/localca"
	"porchlight/test/programs"
)

// Where and how an app is reached, with real programs, also of another user.

// notices are what the owner was told, a line each.
func (h *house) notices(t *testing.T) string {
	t.Helper()
	state := programs.Got(h.owner.State(t.Context()))(t)
	var all []string
	for _, n := range state.Notices {
		all = append(all, n.Text)
	}
	return strings.Join(all, "\n")
}

// An app that listens on [::1] alone, as dev servers do, is published like any other;
// when it comes back on the other address, its visitors go there, and the owner is told.
func TestAppOfEachAddress(t *testing.T) {
	t.Parallel()
	for first, second := range map[string]string{"::1": "127.0.0.1", "127.0.0.1": "::1"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			h := startHouse(t)
			end, start := h.mortalOn(t, first)
			get := h.theOwner(t, h.publish(t))
			if app := h.standing(t, agentapi.StatusLive); app.ListensOn != first || app.Listener.UserID == "" || app.Ailment != "" {
				t.Errorf("the owner sees it on %s: %+v", app.ListensOn, app)
			}
			end()
			get(http.StatusBadGateway, "")
			other := says(t, "tcp", net.JoinHostPort(second, strconv.Itoa(h.port)), "moved")
			other.Start()
			t.Cleanup(other.Close)
			get(http.StatusOK, "moved")
			want := fmt.Sprintf("Notes now answers on port %d of %s. Before, it was %s.", h.port, second, first)
			if app := h.standing(t, agentapi.StatusLive); app.ListensOn != second || !strings.Contains(h.notices(t), want) {
				t.Errorf("on %s; told:\n%s\nwant %s", app.ListensOn, h.notices(t), want)
			}
			start() // both listen: the one of now is dialled
			get(http.StatusOK, "moved")
		})
	}
}

// Weakness: a port is two, one of each address, and another user can take the one that
// the app has not.
// Attack: a program of the user nobody listens on the other address of an approved app,
// while that lives and after it died.
// Checked: it gets not a byte; while the app lives it gets no visit either, and once that
// is dead the app waits for its owner.
func TestStolenTwinOfTheOtherAddress(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	for own, stolen := range map[string]string{"::1": "127.0.0.1", "127.0.0.1": "::1"} {
		t.Run(own, func(t *testing.T) {
			t.Parallel()
			h := startHouse(t)
			end, start := h.mortalOn(t, own)
			get := h.theOwner(t, h.publish(t))
			twin := newHeirAt(t, net.JoinHostPort(stolen, strconv.Itoa(h.port)))
			get(http.StatusOK, "the app")
			if app := h.standing(t, agentapi.StatusLive); app.ListensOn != own {
				t.Errorf("on %s", app.ListensOn)
			}
			end()
			get(http.StatusNotFound, nothingHere)
			app := h.standing(t, agentapi.StatusPending)
			if app.ListensOn != stolen || app.Listener.UserID != "65534" || app.ApprovedListener == nil || app.ApprovedListener.UserID != "0" {
				t.Errorf("the owner sees %+v on %s, approved %+v", app.Listener, app.ListensOn, app.ApprovedListener)
			}
			start()
			h.asks(t, h.port, agentapi.StatusLive) // itself is back
			get(http.StatusOK, "the app")
			if app := h.standing(t, agentapi.StatusLive); app.ListensOn != own {
				t.Errorf("back on %s", app.ListensOn)
			}
			if conn, err := net.Dial("tcp", net.JoinHostPort(stolen, strconv.Itoa(h.port))); err == nil {
				io.WriteString(conn, "x")
				conn.Close()
			}
			if heard := twin.next(); heard != "1 bytes" {
				t.Errorf("nobody's program was sent %q", heard)
			}
		})
	}
}

// options sets options of notes.
func (h *house) options(t *testing.T, change map[string]any) error {
	t.Helper()
	_, err := h.owner.ChangeOptions(t.Context(), "notes", change)
	return err
}

// Weakness: who owns a path decides who is behind it.
// Attack: the app's socket is a program's of the user nobody.
// Checked: it gets not a byte, the app waits, and the owner sees whose it is; a yes is for
// that user, and one of the owner's own needs none.
func TestSocketOfAnotherUser(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	h := startHouse(t)
	h.mortal(t)
	get := h.theOwner(t, h.publish(t))
	dir := programs.Got(os.MkdirTemp("", "sock"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	programs.Must(t, os.Chmod(dir, 0o755))
	theirs := filepath.Join(dir, "theirs")
	programs.Must(t, os.Mkdir(theirs, 0o755))
	programs.Must(t, os.Chown(theirs, nobody, nobody))
	at := filepath.Join(theirs, "app.sock")
	other := newHeirAt(t, at)
	programs.Must(t, h.options(t, map[string]any{"upstream": "unix:" + at}))
	get(http.StatusNotFound, nothingHere)
	app := h.standing(t, agentapi.StatusPending)
	said := app.ListenerChange(strings.Clone)
	if app.Listener.UserID != "65534" || app.ApprovedListener == nil || !strings.Contains(said, at) {
		t.Errorf("the owner sees %+v: %s", app, said)
	}
	programs.Got(h.owner.Approve(t.Context(), "notes"))(t)
	if heard := other.next(); heard != "0 bytes" {
		t.Fatalf("before it was approved, nobody's program was sent %q", heard)
	}
	get(http.StatusOK, "heir")
	if heard := other.next(); heard != "GET /secret of owner" {
		t.Fatalf("the approved program was sent %q", heard)
	}
	// A file of nobody's does not make a socket of ours theirs, nor the other way round.
	own := filepath.Join(dir, "app.sock")
	srv := says(t, "unix", own, "own")
	srv.Start()
	t.Cleanup(srv.Close)
	programs.Must(t, h.options(t, map[string]any{"upstream": "unix:" + own}))
	get(http.StatusOK, "own")
	h.standing(t, agentapi.StatusLive)
	programs.Must(t, os.Chown(own, 65533, 65533))
	programs.Must(t, h.options(t, map[string]any{"upstream": "unix:" + at, "forwarded": true}))
	get(http.StatusOK, "heir")
	programs.Must(t, h.options(t, map[string]any{"upstream": "unix:" + own, "hostHeader": "x"}))
	get(http.StatusNotFound, nothingHere)
	if app := h.standing(t, agentapi.StatusPending); app.Listener.UserID != "65533" {
		t.Errorf("the owner sees %+v", app.Listener)
	}
}

// Weakness: whoever takes an app's port as the same user shows another key.
// Checked: with the key pinned nothing is served until the owner said yes, publishing
// again opens nothing, and the yes is for the new key.
func TestPinnedKeyThatChanges(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	ca := programs.Got(localca.Open(t.TempDir(), localca.Options{Names: []string{"localhost"}}))(t)
	var srv *httptest.Server
	start := func(body string, key int) {
		made := programs.Got(ca.Issue(fmt.Sprintf("key-%d.localhost", key)))(t)
		srv = says(t, "tcp", "127.0.0.1:"+strconv.Itoa(h.port), body)
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{*made}}
		srv.StartTLS()
		h.port = portOf(t, srv.Listener.Addr().String())
	}
	h.port = programs.FreePort(t)
	start("the app", 1)
	t.Cleanup(func() { srv.Close() })
	address := h.publish(t)
	if err := h.options(t, map[string]any{"pin": true}); agentapi.CodeOf(err) != agentapi.CodeInvalid {
		t.Errorf("pinned without HTTPS: %v", err)
	}
	programs.Must(t, h.options(t, map[string]any{"upstream": "https", "pin": true}))
	get := h.theOwner(t, address)
	get(http.StatusOK, "the app")
	srv.Close()
	start("another", 2)
	get(http.StatusNotFound, nothingHere)
	app := h.standing(t, agentapi.StatusPending)
	if said := app.ListenerChange(strings.Clone); !app.NewKey || !strings.Contains(said, "another key") {
		t.Errorf("the owner sees %+v: %q", app, said)
	}
	h.asks(t, h.port, agentapi.StatusPending)
	get(http.StatusNotFound, nothingHere)
	programs.Got(h.owner.Approve(t.Context(), "notes"))(t)
	get(http.StatusOK, "another")
	if app := h.standing(t, agentapi.StatusLive); app.NewKey {
		t.Errorf("%+v", app)
	}
	srv.Close()
	start("the first again", 1)
	get(http.StatusNotFound, nothingHere)
	programs.Must(t, h.options(t, map[string]any{"upstream": "auto", "pin": false}))
	if app := h.standing(t, agentapi.StatusPending); app.Options.Pin || app.Options.Upstream != "" {
		t.Errorf("%+v", app.Options)
	}
}

// Before its owner said yes an app is not so much as connected to, whoever looks.
func TestNothingTouchesAnAppThatAsks(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "::1"} {
		h := startHouse(t)
		port := programs.FreePort(t) // nobody has it at the other address
		ln := programs.Got(net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))))(t)
		defer ln.Close()
		for range 3 {
			h.asks(t, port, agentapi.StatusPending)
			h.await(t, func() bool { return h.standing(t, agentapi.StatusPending).Listener.Program != "" })
		}
		if app := h.standing(t, agentapi.StatusPending); net.JoinHostPort(app.ListensOn, strconv.Itoa(port)) != ln.Addr().String() {
			t.Errorf("the owner sees it on %s", app.ListensOn)
		}
		// Its queue is in order: a connection of before would be first.
		own := programs.Got(net.Dial("tcp", ln.Addr().String()))(t)
		defer own.Close()
		first := programs.Got(ln.Accept())(t)
		first.Close()
		if first.RemoteAddr().String() != own.LocalAddr().String() {
			t.Errorf("%s connected to it before", first.RemoteAddr())
		}
	}
}

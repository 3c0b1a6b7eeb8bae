package health_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// counted is an app that counts what it is asked, and answers with the status of the
// moment.
type counted struct {
	port   int
	asked  atomic.Int64
	status atomic.Int64
	last   atomic.Pointer[http.Request]
}

func count(t *testing.T) *counted {
	c := &counted{}
	c.status.Store(http.StatusOK)
	c.port = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked.Add(1)
		c.last.Store(r)
		w.WriteHeader(int(c.status.Load()))
	}), nil)
	return c
}

// TestWhatAProbeSends: one GET / that says who asks, without a cookie, without
// anything about a visitor, and with the two headers the owner chose.
func TestWhatAProbeSends(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options agentapi.AppOptions
		host    string
		more    string
	}{
		"as visitors ask": {agentapi.AppOptions{}, host, ""},
		"as localhost":    {agentapi.AppOptions{LocalhostHost: true}, "localhost:", ""},
		"by another host": {agentapi.AppOptions{HostHeader: "intranet.example:8080"}, "intranet.example:8080", ""},
		"told":            {agentapi.AppOptions{PublicAddress: true}, host, "https " + host},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, app := build(t), count(t)
			h.set("a", app.port, c.options)
			if got := h.Probe(t.Context(), "a"); got.Health != agentapi.HealthAnswers {
				t.Fatalf("%+v", got)
			}
			r := app.last.Load()
			if app.asked.Load() != 1 || r.Method != "GET" || r.URL.String() != "/" || !strings.HasPrefix(r.Host, c.host) {
				t.Errorf("%d times: %s %s of %s", app.asked.Load(), r.Method, r.URL, r.Host)
			}
			more := strings.TrimSpace(r.Header.Get("X-Forwarded-Proto") + " " + r.Header.Get("X-Forwarded-Host"))
			if more != c.more {
				t.Errorf("forwarded %q, want %q", more, c.more)
			}
			for field := range r.Header {
				switch field {
				case "User-Agent", "Accept", "X-Forwarded-Proto", "X-Forwarded-Host", "Connection":
				default:
					t.Errorf("sent %s: %q", field, r.Header[field])
				}
			}
			if agent := r.UserAgent(); agent != "Porchlight-probe" {
				t.Errorf("asked as %q", agent)
			}
		})
	}
}

// TestFollowsItselfOnce: one redirect to the same app is followed, with nothing of the
// answer but its path, and no other program is asked anything.
func TestFollowsItselfOnce(t *testing.T) {
	t.Parallel()
	other := count(t)
	elsewhere := "localhost:" + strconv.Itoa(other.port)
	for to, want := range map[string]string{
		"/login?next=%2F#top":           "/ /login?next=%2F",
		"login":                         "/ /login",
		"//" + host + "/a":              "/ /a",
		"HTTPS://" + host + "/a":        "/ /a",
		"http://localhost:PORT/a":       "/ /a",
		"http://127.0.0.1:PORT/a":       "/ /a",
		"/":                             "/",
		"https://" + host + "/":         "/",
		"https://" + host + ".evil/a":   "/",
		"https://" + host + ":444/a":    "/",
		"http://" + elsewhere + "/a":    "/",
		"https://auth.example.net/a":    "/",
		"javascript:alert(1)":           "/",
		"http:/a":                       "/",
		"ftp://" + host + "/a":          "/",
		"/" + strings.Repeat("a", 2000): "/",
	} {
		h := build(t)
		var mu sync.Mutex
		var asked []string
		app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, r.URL.String())
			mu.Unlock()
			if len(r.Header) > 3 || r.Host != host {
				t.Errorf("%s: of %s with %v", to, r.Host, r.Header)
			}
			w.Header()["Location"] = []string{strings.Replace(to, "PORT", r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort().String()[len("127.0.0.1:"):], 1)}
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(http.StatusFound)
		}))
		h.set("a", app.Listener.Addr().(*net.TCPAddr).Port, agentapi.AppOptions{})
		h.Probe(t.Context(), "a")
		app.Close()
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("%s: asked for %s, want %s", to, got, want)
		}
	}
	if other.asked.Load() != 0 {
		t.Error("another program was asked")
	}
}

// TestOnceAMinute: whoever wants to know is told what is known within a minute of it,
// unless the app or whoever listens is another.
func TestOnceAMinute(t *testing.T) {
	t.Parallel()
	h, app := build(t), count(t)
	h.set("a", app.port, agentapi.AppOptions{})
	asked := func(want int64, when string) {
		t.Helper()
		if h.Probe(t.Context(), "a"); app.asked.Load() != want {
			t.Errorf("%s: asked %d times, want %d", when, app.asked.Load(), want)
		}
	}
	asked(1, "at first")
	asked(1, "again")
	h.later(59 * time.Second)
	asked(1, "59 s later")
	h.later(time.Second)
	asked(2, "a minute later")
	h.set("a", app.port, agentapi.AppOptions{LocalhostHost: true})
	asked(3, "with another option")
	h.change(func() { h.socket = 2 })
	asked(4, "of another program")
	h.off.Store(true)
	h.later(time.Hour)
	asked(4, "switched off")
	if got := h.Of("a"); got.Health != agentapi.HealthAnswers {
		t.Errorf("what was known is forgotten: %+v", got)
	}
}

// TestWhatHasAnAppAsked: the owner's doings at once, a program's not sooner than a
// minute after, and neither while visitors cannot open it.
func TestWhatHasAnAppAsked(t *testing.T) {
	t.Parallel()
	h, app := build(t), count(t)
	h.Ask("a") // approved a moment ago and gone already
	h.set("a", app.port, agentapi.AppOptions{})
	settle := func(want int64, when string) {
		t.Helper()
		h.Await(t.Context(), "a")
		if got := app.asked.Load(); got != want {
			t.Errorf("%s: asked %d times, want %d", when, got, want)
		}
	}
	h.Ask("a")
	settle(1, "approved")
	h.Ask("a")
	settle(2, "another option")
	h.Changed("a")
	h.Changed("a")
	settle(2, "another program")
	h.later(time.Minute)
	h.Changed("a") // has the clock looked at
	programs.Eventually(t, "the other program is asked", func() bool { return app.asked.Load() == 3 })
	h.off.Store(true)
	h.Ask("a")
	settle(3, "switched off")
}

// Weakness: a program that withdraws its app and publishes it again has it asked each time.
// Checked: it comes back as one that was asked already.
func TestComingBackIsNoNewMinute(t *testing.T) {
	t.Parallel()
	h, app := build(t), count(t)
	for range 5 {
		h.set("a", app.port, agentapi.AppOptions{})
		h.Changed("a")
		h.Await(t.Context(), "a")
		h.change(func() { delete(h.apps, "a") })
		h.Gone("a")
	}
	if got := app.asked.Load(); got != 1 {
		t.Errorf("asked %d times within a minute", got)
	}
	h.set("a", app.port, agentapi.AppOptions{})
	h.Ask("a")
	if h.Await(t.Context(), "a"); app.asked.Load() != 2 {
		t.Errorf("approved again, it was asked %d times in all", app.asked.Load())
	}
}

// Weakness: what answers without TLS in the place of an app whose key is kept would be
// reached by one click, and the key forgotten.
// Checked: once a key is kept no change is offered; before that, one is.
func TestNoClickForgetsAKeyThatIsKept(t *testing.T) {
	t.Parallel()
	for key, offered := range map[string]bool{"": true, "kept": false} {
		h, app := build(t), count(t)
		a := h.set("a", app.port, agentapi.AppOptions{Upstream: agentapi.UpstreamHTTPS, Pin: true})
		a.Key = key
		h.change(func() { h.apps["a"] = a })
		h.Ask("a")
		got := h.Await(t.Context(), "a")
		if got.Health != agentapi.HealthWrong || (got.HealthOption != nil) != offered || !offered && !strings.Contains(got.HealthDetail, "which program listens") {
			t.Errorf("key %q: %+v", key, got)
		}
	}
}

// Weakness: a control plane that gives the computer one address after another has every
// app asked each time.
// Checked: the first has it asked at once, also right after an approval, and others come
// a minute later.
func TestAddressesWithoutEnd(t *testing.T) {
	t.Parallel()
	h, app := build(t), count(t)
	rename := func(n int) {
		h.set("a", app.port, agentapi.AppOptions{})
		h.change(func() { h.root = fmt.Sprintf("maya%d.example.net", n) })
		h.Renamed("a")
		h.Await(t.Context(), "a")
	}
	h.set("a", app.port, agentapi.AppOptions{})
	h.Ask("a")
	h.Await(t.Context(), "a")
	for n := range 5 {
		rename(n)
	}
	if got := app.asked.Load(); got != 2 {
		t.Errorf("asked %d times", got)
	}
	h.later(time.Minute)
	rename(5)
	if last := app.last.Load().Host; app.asked.Load() != 3 || last != "notes.maya5.example.net" {
		t.Errorf("a minute later: asked %d times, at last as %s", app.asked.Load(), last)
	}
}

// An app that is closed while it is asked is asked nothing more.
func TestClosedBetweenTwoQuestions(t *testing.T) {
	t.Parallel()
	h := build(t)
	var asked atomic.Int64
	port := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h.pause("a")
		w.WriteHeader(http.StatusForbidden) // has it asked as localhost
	}), nil)
	h.set("a", port, agentapi.AppOptions{})
	h.Ask("a")
	if h.Await(t.Context(), "a"); asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestAnotherAppMeanwhile: what was asked before a change says nothing of what is
// there after it.
func TestAnotherAppMeanwhile(t *testing.T) {
	t.Parallel()
	h := build(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	slow := raw(t, func(c net.Conn) {
		close(began)
		<-goOn
		_, _ = io.WriteString(c, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")
	})
	h.set("a", slow, agentapi.AppOptions{})
	h.Ask("a")
	<-began
	other := count(t)
	other.status.Store(http.StatusNotFound)
	h.set("a", other.port, agentapi.AppOptions{}) // published on another port
	h.Ask("a")
	close(goOn)
	got := h.Await(t.Context(), "a")
	if !strings.Contains(got.HealthDetail, "404") {
		t.Errorf("%+v", got)
	}
}

// TestGone: what is not on any more is forgotten, also by a probe under way; what is
// paused is not.
func TestGone(t *testing.T) {
	t.Parallel()
	h, app := build(t), count(t)
	h.set("a", app.port, agentapi.AppOptions{})
	h.Probe(t.Context(), "a")
	h.pause("a")
	if h.Gone("a"); h.Of("a").Health != agentapi.HealthAnswers {
		t.Errorf("paused: %+v", h.Of("a"))
	}
	h.change(func() { delete(h.apps, "a") })
	if h.Gone("a"); h.Of("a").Health != agentapi.HealthUnknown {
		t.Errorf("revoked: %+v", h.Of("a"))
	}
	began, end := make(chan struct{}), make(chan struct{})
	h.set("b", raw(t, func(c net.Conn) { close(began); <-end }), agentapi.AppOptions{})
	h.Ask("b")
	<-began
	h.change(func() { delete(h.apps, "b") })
	h.Gone("b")
	close(end)
	if got := h.Await(t.Context(), "b"); got.Health != agentapi.HealthUnknown {
		t.Errorf("revoked while it was asked: %+v", got)
	}
}

// TestStranger: to a program of another user no byte is sent, and nothing is told of
// it: that the app waits is the engine's to tell.
func TestStranger(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.change(func() { h.peer = func(agentapi.Listener) bool { return false } })
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	got := make(chan []byte, 10)
	end := programs.ServeConns(t, l, func(conn net.Conn) {
		b, _ := io.ReadAll(conn)
		got <- b
	})
	h.set("a", portOf(t, l), agentapi.AppOptions{})
	if told := h.Probe(t.Context(), "a"); told.Health != agentapi.HealthUnknown {
		t.Errorf("%+v", told)
	}
	end()
	close(got)
	for b := range got {
		if len(b) > 0 {
			t.Errorf("a stranger got %q", b)
		}
	}
}

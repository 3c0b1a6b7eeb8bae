package gate_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/proxy/gate"
	"porchlight/agent/proxy/limits"
)

// TestTimes: what the table says of time is so, by either way.
func TestTimes(t *testing.T) {
	t.Parallel()
	const slack = 2 * time.Second
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/await" {
			gate.AwaitBody(w, r)
		}
		_, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, err == nil)
	}), func(h *house) {
		silent := h.guest()
		between(h.t, "no head", silent.gone(time.Minute), limits.HeaderTimeout, limits.HeaderTimeout+slack)

		half := h.guest()
		half.say("GET / HTTP/1.1\r\nHo")
		between(h.t, "half a head", half.gone(time.Minute), limits.HeaderTimeout-slack, limits.HeaderTimeout+slack)
		if got := half.heard(); got != "" && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			h.t.Errorf("half a head is answered: %q", got)
		}

		kept := h.guest()
		kept.say(request("GET", "/"))
		if got := kept.heard(); !strings.HasSuffix(got, "\r\n\r\ntrue") {
			h.t.Fatalf("%q", got)
		}
		time.Sleep(limits.Idle - time.Second)
		kept.stays()
		kept.say(request("GET", "/"))
		if got := kept.heard(); !strings.HasSuffix(got, "\r\n\r\ntrue") {
			h.t.Fatalf("%q", got)
		}
		between(h.t, "idle", kept.gone(time.Hour), limits.Idle-time.Second, limits.Idle+slack)

		slow := h.guest()
		slow.say(request("GET", "/"))
		time.Sleep(time.Minute)
		slow.say("GET / HTTP/1.1\r\n")
		between(h.t, "half of a second head", slow.gone(time.Hour), limits.HeaderTimeout-slack, limits.HeaderTimeout+slack)

		body := h.guest()
		body.say(request("POST", "/", "Content-Length: 5") + "hel")
		began := time.Now()
		body.gone(time.Hour)
		between(h.t, "half a body without an app", time.Since(began), limits.BodyTimeout-slack, limits.BodyTimeout+slack)
		if got := body.heard(); !strings.Contains(got, "\r\n\r\nfalse") {
			h.t.Errorf("half a body: %q", got)
		}

		app := h.guest()
		app.say(request("POST", "/await", "Content-Length: 5") + "hel")
		time.Sleep(time.Hour)
		app.stays()
		app.say("lo")
		if got := app.heard(); !strings.HasSuffix(got, "\r\n\r\ntrue") {
			h.t.Errorf("a slow body for an app: %q", got)
		}
		app.say(request("GET", "/"))
		if got := app.heard(); !strings.HasSuffix(got, "\r\n\r\ntrue") {
			h.t.Errorf("after a slow body: %q", got)
		}
	})
}

// TestHandshakesHoldNobodyUp: whoever says nothing delays nobody else's handshake, however
// many do so and whoever shook hands before.
func TestHandshakesHoldNobodyUp(t *testing.T) {
	t.Parallel()
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {}), func(h *house) {
		began := time.Now()
		asks := func() {
			g := h.guest()
			g.say(request("GET", "/"))
			if got := g.heard(); !strings.HasPrefix(got, "HTTP/1.1 200") || time.Since(began) > 0 {
				h.t.Errorf("after %v: %q", time.Since(began), got)
			}
		}
		for range 3 {
			asks()
			for range 5 {
				silent, theirs := net.Pipe()
				h.t.Cleanup(func() { silent.Close() })
				h.ln.conns <- theirs
			}
		}
		asks()
	})
}

// TestLetInTimes: who is not let in loses the connection; what is late on it is the
// last request.
func TestLetInTimes(t *testing.T) {
	t.Parallel()
	everyWay(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			time.Sleep(12 * time.Second)
		}
		io.WriteString(w, "no")
	}, func(h *house) {
		asks := h.guest()
		for range 9 {
			asks.say(request("GET", "/"))
			time.Sleep(time.Second)
		}
		if n := strings.Count(asks.heard(), "HTTP/1.1 200"); n != 9 {
			h.t.Errorf("%d answers", n)
		}
		between(h.t, "who only asks", asks.gone(time.Minute), 0, limits.Parting*4)

		long := h.guest()
		long.say(request("GET", "/long"))
		time.Sleep(limits.LetIn + time.Second)
		long.stays()
		long.gone(time.Minute)
		if got := long.heard(); !strings.HasSuffix(got, "\r\n\r\nno") {
			h.t.Errorf("what was under way: %q", got)
		}
	})
}

// TestVisitorLeaves: the app's side ends soon when a visitor goes, also after a body.
func TestVisitorLeaves(t *testing.T) {
	t.Parallel()
	ended := make(chan time.Duration, 1)
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/stream" {
			io.WriteString(w, "event")
			http.NewResponseController(w).Flush()
		}
		stop := context.AfterFunc(r.Context(), func() {})
		defer stop()
		ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		<-ctx.Done()
		ended <- time.Since(began)
	}), func(h *house) {
		for _, ask := range []string{request("GET", "/"), request("GET", "/stream"), request("POST", "/", "Content-Length: 2") + "hi"} {
			g := h.guest()
			g.say(ask)
			time.Sleep(10 * time.Minute)
			g.conn.Close()
			between(h.t, ask, <-ended, 10*time.Minute, 10*time.Minute+time.Second)
		}
	})
}

// TestPipelined: requests that came together are answered in their order, however they
// were cut, also while one takes long, and also when one of them is not plain.
func TestPipelined(t *testing.T) {
	t.Parallel()
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/slow") {
			time.Sleep(time.Second)
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "[%s %s]", r.URL.Path, body)
	}), func(h *house) {
		var all, want strings.Builder
		for i := range 40 {
			switch i % 5 {
			case 0:
				fmt.Fprint(&all, request("GET", fmt.Sprint("/", i)))
				fmt.Fprintf(&want, "[/%d ]", i)
			case 1:
				fmt.Fprint(&all, request("POST", fmt.Sprint("/", i), "Content-Length: 4"), "body")
				fmt.Fprintf(&want, "[/%d body]", i)
			case 2:
				fmt.Fprint(&all, request("GET", fmt.Sprint("/slow", i), "X: "+strings.Repeat("long", 500)))
				fmt.Fprintf(&want, "[/slow%d ]", i)
			case 3:
				if i < 30 {
					continue
				}
				fmt.Fprint(&all, request("POST", fmt.Sprint("/", i), "Transfer-Encoding: chunked"), "3\r\nodd\r\n0\r\n\r\n")
				fmt.Fprintf(&want, "[/%d odd]", i)
			case 4:
				fmt.Fprint(&all, request("DELETE", fmt.Sprint("/", i), "Connection: keep-alive"))
				fmt.Fprintf(&want, "[/%d ]", i)
			}
		}
		for _, piece := range []int{1 << 20, 16 << 10, 4096, 1000} {
			g := h.guest()
			for part := range slices.Chunk([]byte(all.String()), piece) {
				g.say(string(part))
			}
			time.Sleep(time.Minute)
			var got strings.Builder
			for _, a := range answers(h.t, g.heard()) {
				got.WriteString(a.body)
			}
			if got.String() != want.String() {
				h.t.Errorf("in pieces of %d:\n%s\nwant\n%s", piece, got.String(), want.String())
			}
			g.stays()
		}
	})
}

// TestRestOfBody: so much of a body that nobody reads is taken to keep a connection.
func TestRestOfBody(t *testing.T) {
	t.Parallel()
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "done") }), func(h *house) {
		for size, kept := range map[int]bool{1: true, limits.BodyRest - 1: true, limits.BodyRest * 2: false} {
			g := h.guest()
			head := request("POST", "/", fmt.Sprint("Content-Length: ", size))
			go io.WriteString(g.conn, head+strings.Repeat("x", size))
			time.Sleep(time.Second)
			all := answers(h.t, g.heard())
			if len(all) != 1 || all[0].body != "done" || all[0].close == kept {
				h.t.Errorf("%d: %v", size, all)
			}
			if !kept {
				g.gone(time.Minute)
				continue
			}
			g.say(request("GET", "/"))
			if all := answers(h.t, g.heard()); len(all) != 1 {
				h.t.Errorf("after %d: %v", size, all)
			}
		}
	})
}

// TestShutdown: what is under way has two seconds, and what rests goes at once.
func TestShutdown(t *testing.T) {
	t.Parallel()
	var cut bool
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/second":
			time.Sleep(time.Second)
		case "/ever":
			<-r.Context().Done()
			cut = true
		}
		io.WriteString(w, "done")
	}), func(h *house) {
		cut = false
		rests, second, ever := h.guest(), h.guest(), h.guest()
		rests.say(request("GET", "/"))
		second.say(request("GET", "/second"))
		ever.say(request("GET", "/ever"))
		rests.heard()
		began := time.Now()
		h.stop()
		between(h.t, "at rest", rests.gone(time.Minute), 0, time.Second)
		second.gone(time.Minute)
		if got := second.heard(); !strings.HasSuffix(got, "\r\n\r\ndone") || !strings.Contains(got, "Connection: close") {
			h.t.Errorf("under way: %q", got)
		}
		<-h.over
		between(h.t, "the end", time.Since(began), limits.ShutdownGrace, limits.ShutdownGrace+time.Second)
		ever.gone(time.Minute)
		if got := ever.heard(); !cut || got != "" {
			h.t.Errorf("what takes too long: cut %v, %q", cut, got)
		}
	})
}

// TestPanic: a handler that gives up costs its connection, and nobody else's.
func TestPanic(t *testing.T) {
	t.Parallel()
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
		}
		if r.URL.Path != "/" {
			panic(http.ErrAbortHandler)
		}
	}), func(h *house) {
		other := h.guest()
		for path, want := range map[string]string{"/none": "", "/half": "4\r\nhalf\r\n"} {
			g := h.guest()
			g.say(request("GET", path) + request("GET", "/"))
			g.gone(time.Second)
			if got := g.heard(); !strings.HasSuffix(got, want) || want == "" && got != "" {
				h.t.Errorf("%s: %q", path, got)
			}
		}
		other.say(request("GET", "/"))
		if got := other.heard(); !strings.HasPrefix(got, "HTTP/1.1 200") {
			h.t.Errorf("another connection: %q", got)
		}
	})
}

// answer is one that a guest got.
type answer struct {
	status int
	header http.Header
	body   string
	close  bool // it is the last one on its connection
}

// answers reads all of what a guest has heard; what does not parse is an answer with
// status 0.
func answers(t *testing.T, heard string, methods ...string) (all []answer) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader([]byte(heard)))
	for i := 0; ; {
		if _, err := r.Peek(1); err != nil {
			return all
		}
		var req *http.Request
		if i < len(methods) {
			req = &http.Request{Method: methods[i]}
		}
		res, err := http.ReadResponse(r, req)
		if err != nil {
			return append(all, answer{body: err.Error()})
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			body = append(body, "!cut"...)
		}
		for name, values := range res.Trailer {
			res.Header["Trailer: "+name] = values
		}
		res.Header.Del("Date")
		all = append(all, answer{res.StatusCode, res.Header, string(body), res.Close})
		if res.StatusCode >= 200 {
			i++
		}
	}
}

package gate_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/proxy/limits"
	"porchlight/test/programs"
)

// TestWritesAreFew: the head of an answer and its body leave in one write, with a length
// and in chunks, and so does all that fits into a record.
func TestWritesAreFew(t *testing.T) {
	t.Parallel()
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Path[1:])
		if r.URL.RawQuery == "" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		for size > 0 {
			n, _ := io.WriteString(w, long[:min(size, 1000)])
			size -= n
		}
	}), func(h *house) {
		for _, path := range []string{"/100", "/3000", "/3000?chunked", "/15000", "/15000?chunked"} {
			if strings.HasSuffix(h.t.Name(), library) && strings.HasPrefix(path, "/15000") {
				continue // the library's buffer is 4 KiB
			}
			g := h.guest()
			synctest.Wait()
			before := g.ours.writes.Load()
			for range 10 {
				g.say(request("GET", path))
			}
			if all := answers(h.t, g.heard()); len(all) != 10 || len(all[9].body) < 100 {
				h.t.Errorf("%s: %d answers", path, len(all))
			}
			if n := g.ours.writes.Load() - before; n != 10 {
				h.t.Errorf("%s: 10 answers are %d writes", path, n)
			}
		}
	})
}

// Weakness: nothing of ours ended an HTTP/1.1 answer that its visitor did not read.
// Checked: it ends by the table's time, and a WebSocket's connection too; whoever takes a
// little now and then, and who has nothing to read for long, stays.
func TestUnread(t *testing.T) {
	t.Parallel()
	var ended chan time.Time // of a bubble, or its clock stands while it is waited for
	everyWay(t, letIn(func(w http.ResponseWriter, r *http.Request) {
		var to io.Writer = w
		switch r.URL.Path {
		case "/":
			io.WriteString(w, "fine")
			return
		case "/quiet":
			for range 3 {
				io.WriteString(w, "event")
				http.NewResponseController(w).Flush()
				time.Sleep(time.Hour)
			}
			return
		case "/socket":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			to = conn
		}
		for {
			if _, err := io.WriteString(to, long); err != nil {
				ended <- time.Now()
				return
			}
		}
	}), func(h *house) {
		ended = make(chan time.Time, 1)
		// asks has an answer begun, after one that says how the connection is doing.
		asks := func(path string, lines ...string) *guest {
			g := h.arrives()
			io.WriteString(g.conn, request("GET", "/"))
			for got := ""; !strings.HasSuffix(got, "fine"); {
				buf := make([]byte, 1<<10)
				n := programs.Got(g.conn.Read(buf))(h.t)
				got += string(buf[:n])
			}
			time.Sleep(time.Minute)
			io.WriteString(g.conn, request("GET", path, lines...))
			h.t.Cleanup(func() { g.raw.Close() })
			return g
		}
		for _, path := range []string{"/long", "/socket"} {
			var lines []string
			if path == "/socket" {
				lines = []string{"Connection: Upgrade", "Upgrade: websocket"}
			}
			asks(path, lines...)
			began := time.Now()
			between(h.t, path+" that nobody reads", (<-ended).Sub(began), limits.Unread*3/4, limits.Unread)

			slow := asks(path, lines...)
			began = time.Now()
			for range 20 {
				time.Sleep(limits.Unread*3/4 - time.Second)
				if _, err := slow.raw.Read(make([]byte, 100)); err != nil {
					h.t.Fatalf("%s that is read slowly: %v after %v", path, err, time.Since(began))
				}
			}
			began = time.Now()
			between(h.t, path+" that nobody reads any more", (<-ended).Sub(began), 0, 2*limits.Unread)
		}
		quiet := h.guest()
		quiet.say(request("GET", "/quiet"))
		time.Sleep(4 * time.Hour)
		if got := quiet.heard(); strings.Count(got, "event") != 3 {
			h.t.Errorf("of an event stream: %q", got)
		}
	})
}

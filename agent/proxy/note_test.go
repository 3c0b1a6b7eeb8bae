package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/proxy"
	"porchlight/agent/requests"
	"porchlight/test/programs"
)

// noted is a rig whose owner wants to know what visitors ask.
func noted(t testing.TB) (*rig, func() []string) {
	t.Helper()
	log := requests.New(func() bool { return true }, func(string) bool { return true })
	r := newRig(t, func(c *proxy.Config) { c.Requests = log })
	return r, func() (lines []string) {
		list, _ := log.Since(0, map[string]string{"id-notes": "notes", "id-diary": "diary"})
		for _, q := range list {
			lines = append(lines, strings.TrimRight(fmt.Sprint(q.App, " ", q.Method, " ", q.Path, " ", q.Status, " ", q.Email, " ", q.Error), " "))
		}
		return lines
	}
}

// The owner is told of every request for an app, whichever way it went, with its
// path and without its query; who may not open the app is told with what they got.
func TestRequestsAreNoted(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		r, lines := noted(t)
		r.app("notes", func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/teapot" {
				w.WriteHeader(418)
			}
		})
		r.app("diary", hello)
		b := r.signedIn("notes", bobID, http2)
		b.fetch("GET", origin+"/teapot?secret=1")
		b.read(b.request("POST", origin+"/form?secret=1", strings.NewReader("secret"), "Origin", origin))
		b.fetch("GET", origin+"/.porchlight/me")
		b.fetch("POST", origin+"/forged", "Origin", "https://elsewhere.example")
		r.signedIn("diary", bobID, http2).fetch("GET", "https://diary."+rootHost+"/mine")
		want := []string{
			"notes GET / 303",
			"notes GET /teapot 418 bob@example.com",
			"notes POST /form 200 bob@example.com",
			"notes POST /forged 403 bob@example.com",
			"diary GET / 303",
			"diary GET /mine 403 bob@example.com",
		}
		within(t, "all are noted", func() bool { return len(lines()) >= len(want) })
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("http2 %v:\n%s", http2, strings.Join(got, "\n"))
		}
	}
}

// A WebSocket is told of when it is open, an app that does not answer with why, and
// an answer that was cut off with what was sent of it.
func TestRequestsThatEndOtherwise(t *testing.T) {
	t.Parallel()
	r, lines := noted(t)
	r.app("notes", func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/ws":
			echo(w, q)
		case "/half":
			w.Header().Set("Content-Length", "10")
			w.Write([]byte("12345"))
		}
	})
	b := r.signedIn("notes", bobID, false)
	c, _, err := b.dial("wss://notes."+rootHost+"/ws?token=secret", "Origin", origin)
	programs.Must(t, err)
	defer c.CloseNow()
	within(t, "the WebSocket is noted while it is open", func() bool { return len(lines()) == 2 })
	if res, err := b.client.Do(func() *http.Request { q := b.request("GET", origin+"/half", nil); b.addCookies(q); return q }()); err == nil {
		io.Copy(io.Discard, res.Body) // to its end: who leaves before is not told of
		res.Body.Close()
	}
	within(t, "half an answer is noted", func() bool { return len(lines()) == 3 })
	r.publish("notes", 1)
	b.fetch("GET", origin+"/down")
	b.fetch("POST", origin+"/down", "Origin", origin)
	within(t, "an app that is down is noted", func() bool { return len(lines()) == 5 })
	c.CloseNow()
	got := lines()
	if got[1] != "notes GET /ws 101 bob@example.com" || got[2] != "notes GET /half 200 bob@example.com It broke off in the middle of its answer." ||
		!strings.HasPrefix(got[3], "notes GET /down 502 bob@example.com ") || !strings.HasPrefix(got[4], "notes POST /down 502 bob@example.com ") || len(got) != 5 {
		t.Error(strings.Join(got, "\n"))
	}
}

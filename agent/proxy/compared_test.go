package proxy_test

import (
	"net/http"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
)

// TestWhatAnAppMayCompare: what carries the app's own address, and no more, is told with
// what the app answered, whatever the app is called and over both protocols.
func TestWhatAnAppMayCompare(t *testing.T) {
	t.Parallel()
	type told struct {
		kind   agentapi.Compared
		status int
	}
	tells := make(chan told, 10)
	r, app, _ := saying(t, func(c *proxy.Config) {
		c.OnCompared = func(_ string, kind agentapi.Compared, status int) { tells <- told{kind, status} }
	})
	app.status = http.StatusForbidden
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, o := range []agentapi.AppOptions{{}, {LocalhostHost: true}, {H2C: true}} {
		r.change("notes", func(a *engine.App) { a.Options = o })
		for _, http2 := range []bool{false, true} {
			b := r.signedIn("notes", bobID, http2)
			for _, c := range []struct {
				what, method string
				want         agentapi.Compared
				header       []string
			}{
				{"a page", "GET", "", nil},
				{"a form without Origin", "POST", "", form},
				{"a form", "POST", "form", append(form, "Origin", origin)},
				{"a form with a file", "POST", "form", []string{"Content-Type", "Multipart/Form-Data; boundary=x", "Origin", origin}},
				{"a call", "POST", "call", []string{"Content-Type", "application/json", "Origin", origin}},
				{"a call without a type", "DELETE", "call", []string{"Origin", origin}},
				{"a WebSocket", "GET", "webSocket", []string{"Connection", "Upgrade", "Upgrade", "websocket", "Origin", origin}},
				{"another upgrade", "GET", "", []string{"Connection", "Upgrade", "Upgrade", "h2c"}},
			} {
				if http2 && c.want == "webSocket" || http2 && c.what == "another upgrade" {
					continue
				}
				b.fetches(403, c.what, c.method, origin+"/", c.header...)
				got := told{}
				select {
				case got = <-tells:
				default:
				}
				if got.kind != c.want || c.want != "" && got.status != 403 {
					t.Errorf("%s, %+v, HTTP/2 %v: told %+v, want %q", c.what, o, http2, got, c.want)
				}
			}
		}
	}
}

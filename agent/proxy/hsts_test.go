package proxy_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"porchlight/agent/engine"
	"porchlight/agent/proxy"
)

// Weakness: nothing told browsers to keep to HTTPS at the hosts of a connected computer,
// so that the first request of a visit could be had in the clear (SE8).
// Checked: it is told by our own pages and by apps, where the certificate is a public
// one and the port 443, and nowhere else; of one host alone; for a day at first.
func TestKeepsToHTTPS(t *testing.T) {
	t.Parallel()
	const day, year = "max-age=86400", "max-age=31536000"
	const month = 30 * 24 * time.Hour
	for what, c := range map[string]struct {
		age            time.Duration // of the certificate's name; negative: it is not public
		local, noHSTS  bool
		root, own      string
		ours, app, any string // what our pages, the app, and the launcher say
	}{
		"new":                    {ours: day, app: day, any: day},
		"a month less a minute":  {age: month - time.Minute, ours: day, app: day, any: day},
		"a month":                {age: month, ours: year, app: year, any: year},
		"an authority of one's":  {age: -1},
		"this computer alone":    {local: true},
		"the app's own is there": {age: month, own: "max-age=0; preload", ours: year, app: "max-age=0; preload", any: year},
		"the owner said no":      {noHSTS: true, any: day},
		"no, and the app's own":  {noHSTS: true, own: "max-age=9", app: "max-age=9", any: day},
		"another port":           {root: rootHost + ":8443"},
		"localhost":              {root: "maya.localhost"},
		"localhost itself":       {root: "localhost"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			root := rootHost
			if c.root != "" {
				root = c.root
			}
			r := newRig(t, func(config *proxy.Config) {
				config.Local = c.local
				config.Root = func() engine.Root { return engine.Root{Name: "maya", Host: root} }
				config.Public = func(string) (time.Time, bool) { return config.Now().Add(-c.age), c.age >= 0 }
			})
			r.app("notes", func(w http.ResponseWriter, q *http.Request) {
				if c.own != "" {
					w.Header().Set("Strict-Transport-Security", c.own)
				}
				if q.Method == http.MethodPost {
					w.Header().Set("Trailer", "X") // the other way
				}
			})
			r.change("notes", func(a *engine.App) { a.Options.NoHSTS = c.noHSTS })
			told := func(want string, res *http.Response, _ string) {
				t.Helper()
				if got := res.Header["Strict-Transport-Security"]; !slices.Equal(got, list(want)) || res.StatusCode == http.StatusMisdirectedRequest {
					t.Errorf("%s %s says %q", res.Request.URL, res.Status, got)
				}
			}
			for _, http2 := range []bool{false, true} {
				b := r.browser(http2)
				app, launcher := "https://notes."+root, "https://"+root
				res, body := b.fetch("GET", launcher+"/", "Accept", "text/html", "Sec-Fetch-Mode", "navigate")
				told(c.any, res, body)
				res, body = b.fetch("GET", app+"/", "Accept", "text/html", "Sec-Fetch-Mode", "navigate") // to sign in
				told(c.ours, res, body)
				res, body = b.fetch("GET", app+"/.porchlight/me")
				told(c.ours, res, body)
				if root != rootHost {
					continue // the rig signs in at its own host
				}
				in := r.signedIn("notes", bobID, http2)
				for _, method := range []string{"GET", "POST"} {
					res, body = in.fetch(method, app+"/")
					told(c.app, res, body)
				}
				res, body = in.fetch("GET", app+"/", "Expect", "100-continue", "Te", "trailers") // by net/http
				told(c.app, res, body)
				r.change("notes", func(a *engine.App) { a.Paused = true })
				res, body = in.fetch("GET", app+"/")
				told(c.ours, res, body)
				r.change("notes", func(a *engine.App) { a.Paused = false })
			}
		})
	}
}

// list is a list of one, or of none for an empty string.
func list(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

package proxy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const wellKnown = "/.well-known/oauth-protected-resource"

// Whoever knows nothing but an address learns who signs people in for it (RFC 9728), and
// not which apps there are: what a name without an app answers is the same but the name.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	r.app("notes", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "of the app: "+r.URL.RequestURI()) })
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	expired := r.token(bobID, func(c *controlapi.AccessClaims) { c.IssuedAt -= 700; c.Expires -= 700 })
	const page, fetch = "navigate", "cors"
	for what, header := range map[string][]string{
		"a program":          nil,
		"a browser's page":   {"Sec-Fetch-Mode", page, "Accept", "text/html"},
		"a page of a client": {"Sec-Fetch-Mode", fetch, "Sec-Fetch-Site", "cross-site", "Origin", "https://client.example"},
		"a token that ended": bearer(expired),
		"an app's own token": bearer("opaque"),
		"a wrong password":   {"Authorization", "Basic bWF5YTp4"},
	} {
		for path, resource := range map[string]string{
			"": "", "/": "/", "/mcp": "/mcp", "/mcp?q=1": "/mcp", "/a%2Fb%22%20c": "/a%2Fb%22%20c", "//x/../y": "//x/../y", "/ü": "/%C3%BC",
			"/" + strings.Repeat("x", 1023): "/" + strings.Repeat("x", 1023),
		} {
			answers := map[string]string{}
			for _, host := range []string{"notes." + rootHost, "nobody." + rootHost, "portal." + rootHost, rootHost} {
				b := r.browser(false)
				res, body := b.fetch("GET", "https://"+host+wellKnown+path, header...)
				res.Header.Del("Date")
				var seen strings.Builder
				programs.Must(t, res.Header.Write(&seen))
				answers[host] = res.Status + strings.ReplaceAll(seen.String()+body, host, "HOST")
				var doc map[string]any
				if err := json.Unmarshal([]byte(body), &doc); err != nil || doc["resource"] != "https://"+host+resource ||
					doc["authorization_servers"].([]any)[0] != authURL || doc["scopes_supported"].([]any)[0] != "connect" ||
					doc["bearer_methods_supported"].([]any)[0] != "header" || len(doc) != 4 {
					t.Errorf("%s, %s%s: %s %v %s", what, host, path, res.Status, err, body)
				}
				if h := res.Header; h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "*" ||
					h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Set-Cookie") != "" {
					t.Errorf("%s, %s: %v", what, host, h)
				}
			}
			for host, answer := range answers {
				if want := answers["nobody."+rootHost]; withoutLength(answer) != withoutLength(want) {
					t.Errorf("%s, %s%s tells itself apart:\n%s\n%s", what, host, path, answer, want)
				}
			}
		}
	}

	// To whoever is signed in, it is a path of the app's.
	for what, answered := range map[string]func() (*http.Response, string){
		"a session": func() (*http.Response, string) {
			return r.signedIn("notes", bobID, true).fetch("GET", "https://notes."+rootHost+wellKnown+"/mcp")
		},
		"a token": func() (*http.Response, string) {
			return r.browser(true).fetch("GET", "https://notes."+rootHost+wellKnown+"/mcp", bearer(r.token(bobID))...)
		},
	} {
		if _, body := answered(); body != "of the app: "+wellKnown+"/mcp" {
			t.Errorf("%s: %s", what, body)
		}
	}
}

// withoutLength leaves out what tells names of different lengths apart.
func withoutLength(answer string) string {
	before, after, _ := strings.Cut(answer, "Content-Length: ")
	_, after, _ = strings.Cut(after, "\r\n")
	return before + after
}

// What is no request for the document goes the way of every other.
func TestDiscoveryIsOneDocument(t *testing.T) {
	t.Parallel()
	b := newBearerRig(t).browser(false)
	for target, want := range map[string]int{
		"GET https://notes." + rootHost + wellKnown + "s":                              http.StatusUnauthorized,
		"GET https://notes." + rootHost + "/x" + wellKnown:                             http.StatusUnauthorized,
		"GET https://notes." + rootHost + "/%2Ewell-known/oauth-protected-resource":    http.StatusUnauthorized,
		"POST https://notes." + rootHost + wellKnown:                                   http.StatusUnauthorized,
		"HEAD https://notes." + rootHost + wellKnown:                                   http.StatusOK,
		"GET https://notes." + rootHost + wellKnown + "/" + strings.Repeat("x", 1024):  http.StatusRequestURITooLong,
		"GET https://nobody." + rootHost + wellKnown + "/" + strings.Repeat("x", 1024): http.StatusRequestURITooLong,
		"GET https://nobody." + rootHost + wellKnown + "s":                             http.StatusNotFound,
	} {
		method, target, _ := strings.Cut(target, " ")
		if res, body := b.fetch(method, target); res.StatusCode != want {
			t.Errorf("%s %.100s: %s %s", method, target, res.Status, body)
		}
	}
	// The Host line decides nothing.
	req := b.request("GET", "https://notes."+rootHost+wellKnown, nil)
	req.Host = "evil.example"
	if res, body := b.read(req); res.StatusCode != http.StatusMisdirectedRequest || strings.Contains(body, "authorization_servers") {
		t.Errorf("at another host: %s %s", res.Status, body)
	}
}

// Each 401 of ours names the document of what was asked for; an app's own passes.
func TestChallengesNameTheDocument(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	r.app("notes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Digest realm=own")
		w.WriteHeader(http.StatusUnauthorized)
	})
	b := r.browser(false)
	for path, about := range map[string]string{"/": "", "/mcp?q=1": "/mcp", "/a%22b": "/a%22b", "/" + strings.Repeat("x", 1024): ""} {
		about = `resource_metadata="https://notes.` + rootHost + wellKnown + about + `"`
		res, _ := b.fetch("GET", "https://notes."+rootHost+path)
		if got := res.Header.Values("WWW-Authenticate"); len(got) != 1 || got[0] != "Bearer "+about {
			t.Errorf("%.100s: %q", path, got)
		}
		res, _ = b.fetch("GET", "https://notes."+rootHost+path, "Authorization", "Bearer x")
		if got := res.Header.Values("WWW-Authenticate"); len(got) != 1 || got[0] != `Bearer error="invalid_token", `+about {
			t.Errorf("%.100s with a token: %q", path, got)
		}
	}
	res, _ := r.signedIn("notes", bobID, false).fetch("GET", "https://notes."+rootHost+"/")
	if got := res.Header.Values("WWW-Authenticate"); len(got) != 1 || got[0] != "Digest realm=own" {
		t.Errorf("an app's own: %q", got)
	}
}

// A token for some apps is worth nothing at any other name of the computer, and its answer
// does not tell which of these has an app: it is the same but the name.
func TestLimitedTokensElsewhere(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	grant := controlapi.LimitedGrantID("g")
	for _, name := range []string{"notes", "photos"} {
		r.app(name, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "of the app") })
	}
	r.grantApps = map[string][]string{grant: {"id-notes"}}
	r.sync()
	token := r.token(ownerID, func(c *controlapi.AccessClaims) { c.Grant = grant })
	header := []string{"Authorization", "Bearer " + token, "Cookie", "__Host-porchlight-00000000=x"}
	b := r.browser(false)
	if _, body := b.fetch("GET", "https://notes."+rootHost+"/mcp", header...); body != "of the app" {
		t.Errorf("at its app: %s", body)
	}
	answers := map[string]string{}
	for _, host := range []string{"photos." + rootHost, "nobody." + rootHost, "portal." + rootHost, rootHost} {
		for _, path := range []string{"/mcp", "/.porchlight/me"} {
			res, body := b.fetch("GET", "https://"+host+path, header...)
			res.Header.Del("Date")
			var seen strings.Builder
			programs.Must(t, res.Header.Write(&seen))
			answers[host+path] = res.Status + strings.ReplaceAll(seen.String()+body, host, "HOST")
			if about := `resource_metadata="https://` + host + wellKnown + path + `"`; res.StatusCode != http.StatusUnauthorized ||
				res.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token", `+about {
				t.Errorf("%s%s: %s %v", host, path, res.Status, res.Header)
			}
			if want := answers["nobody."+rootHost+path]; want != "" && answers[host+path] != want {
				t.Errorf("%s%s tells itself apart:\n%s\n%s", host, path, answers[host+path], want)
			}
		}
	}
	if answers["photos."+rootHost+"/mcp"] != answers["nobody."+rootHost+"/mcp"] {
		t.Errorf("photos tells itself apart: %s", answers["photos."+rootHost+"/mcp"])
	}
	// All of them take one that is for all.
	if _, body := b.fetch("GET", "https://photos."+rootHost+"/mcp", "Authorization", "Bearer "+r.token(ownerID)); body != "of the app" {
		t.Errorf("a token for all: %s", body)
	}
}

// A remote client learns which apps its token opens; nobody learns it by a cookie.
func TestAppsOfAToken(t *testing.T) {
	t.Parallel()
	r := newBearerRig(t)
	for _, name := range []string{"notes", "photos", "wiki"} {
		r.app(name, func(http.ResponseWriter, *http.Request) {})
	}
	limited := controlapi.LimitedGrantID("g")
	r.grantApps = map[string][]string{limited: {"id-notes", "id-wiki"}}
	r.setPeople(r.person(bobID, func(p *controlapi.Person) { p.Apps = []string{"id-notes", "id-photos"} })...)
	for what, c := range map[string]struct {
		at, token, want string
	}{
		"all":         {rootHost, r.token(bobID), "notes photos"},
		"at an app":   {"photos." + rootHost, r.token(bobID), "notes photos"},
		"some":        {"notes." + rootHost, r.token(bobID, func(c *controlapi.AccessClaims) { c.Grant = limited }), "notes"},
		"the owner's": {"wiki." + rootHost, r.token(ownerID, func(c *controlapi.AccessClaims) { c.Grant = limited }), "notes wiki"},
	} {
		res, body := r.browser(false).fetch("GET", "https://"+c.at+"/.porchlight/apps", "Authorization", "Bearer "+c.token)
		var got struct {
			Apps []struct{ Name, Label, URL string }
		}
		programs.Must(t, json.Unmarshal([]byte(body), &got))
		var names []string
		for _, app := range got.Apps {
			names = append(names, app.Name)
			if app.URL != "https://"+app.Name+"."+rootHost || app.Label == "" {
				t.Errorf("%s: %+v", what, app)
			}
		}
		slices.Sort(names)
		if res.StatusCode != http.StatusOK || strings.Join(names, " ") != c.want {
			t.Errorf("%s: %s %s, want %s", what, res.Status, body, c.want)
		}
	}
	if res, body := r.signedIn("notes", bobID, false).fetch("GET", "https://notes."+rootHost+"/.porchlight/apps"); res.StatusCode != http.StatusNotFound {
		t.Errorf("by a cookie: %s %s", res.Status, body)
	}
	if res, _ := r.browser(false).fetch("GET", "https://notes."+rootHost+"/.porchlight/apps"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody: %s", res.Status)
	}
}

package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"porchlight/agent/ownersecret"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"ssh.maya.example": "ssh.maya.example", "SSH.Maya.Example:443": "ssh.maya.example", "https://ssh.maya.example:8443/": "ssh.maya.example:8443",
		"": "", "ssh": "", "ssh.maya.example/x": "", "ssh.maya.example?x": "", "user@ssh.maya.example": "", "http://ssh.maya.example": "", "127.0.0.1:22": "",
		"[::1]:22": "", "ssh.maya.example:": "", "ssh.maya.example:0": "", "ssh.maya.example:70000": "", "ssh.maya.example.": "", ".maya.example": "", "a b.example": "",
	} {
		if got, err := Host(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v, want %q", address, got, err, want)
		}
	}
}

// Weakness: whoever answers at an app's address says who signs people in for it. Attack: it names
// another app, so that the person lets it into that one, or a server speaks for another one's
// endpoints. Checked: nobody is sent anywhere then.
func TestServersSpeakForThemselves(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(own string, resource, server map[string]any){
		"as it is":              func(string, map[string]any, map[string]any) {},
		"another app":           func(_ string, resource, _ map[string]any) { resource["resource"] = "https://db.maya.example" },
		"below the app":         func(own string, resource, _ map[string]any) { resource["resource"] = own + "/x" },
		"two servers":           func(own string, resource, _ map[string]any) { resource["authorization_servers"] = []string{own, own} },
		"no server":             func(_ string, resource, _ map[string]any) { delete(resource, "authorization_servers") },
		"another issuer":        func(_ string, _, server map[string]any) { server["issuer"] = "https://auth.example" },
		"another's authorize":   func(_ string, _, server map[string]any) { server["authorization_endpoint"] = "https://auth.example/a" },
		"another's token":       func(own string, _, server map[string]any) { server["token_endpoint"] = own + ".example/t" },
		"another's revocation":  func(_ string, _, server map[string]any) { server["revocation_endpoint"] = "http://127.0.0.1/r" },
		"no address of a token": func(_ string, _, server map[string]any) { delete(server, "token_endpoint") },
	} {
		resource, described := map[string]any{}, map[string]any{}
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "oauth-protected-resource") {
				_ = json.NewEncoder(w).Encode(resource)
			} else {
				_ = json.NewEncoder(w).Encode(described)
			}
		}))
		resource["resource"], resource["authorization_servers"] = s.URL, []string{s.URL}
		described["issuer"], described["authorization_endpoint"] = s.URL, s.URL+"/a"
		described["token_endpoint"], described["revocation_endpoint"] = s.URL+"/t", s.URL+"/r"
		change(s.URL, resource, described)
		app := New(strings.TrimPrefix(s.URL, "https://"), Config{Transport: s.Client().Transport.(*http.Transport)})
		if _, err := app.authority(t.Context()); (err == nil) != (name == "as it is") {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
}

// What comes back to this computer counts only as the answer to what was asked: any page can
// send a browser there, and any program can come.
func TestOnlyTheAnswerCounts(t *testing.T) {
	t.Parallel()
	const host, state, issuer = "127.0.0.1:4711", "the-state", "https://auth.example"
	good := url.Values{"state": {state}, "iss": {issuer}, "code": {"c"}}
	with := func(name string, values ...string) string {
		q := url.Values{}
		for k, v := range good {
			q[k] = v
		}
		q[name] = values
		return q.Encode()
	}
	for name, c := range map[string]struct{ method, host, path, query string }{
		"as it is":       {"GET", host, "/", good.Encode()},
		"another state":  {"GET", host, "/", with("state", "x")},
		"no state":       {"GET", host, "/", with("state")},
		"two states":     {"GET", host, "/", with("state", state, state)},
		"another issuer": {"GET", host, "/", with("iss", "https://evil.example")},
		"no issuer":      {"GET", host, "/", with("iss")},
		"two codes":      {"GET", host, "/", with("code", "c", "d")},
		"another name":   {"GET", "evil.example", "/", good.Encode()},
		"another path":   {"GET", host, "/x", good.Encode()},
		"posted":         {"POST", host, "/", good.Encode()},
		"no query":       {"GET", host, "/", "%zz"},
	} {
		came := make(chan url.Values, 1)
		r := httptest.NewRequest(c.method, "/", nil)
		r.Host, r.URL.Path, r.URL.RawQuery = c.host, c.path, c.query
		w := httptest.NewRecorder()
		(&server{Issuer: issuer}).callback(host, state, came).ServeHTTP(w, r)
		if counts := len(came) == 1; counts != (name == "as it is") || counts != (w.Code == http.StatusOK) {
			t.Errorf("%s: counts %t, HTTP %d", name, counts, w.Code)
		}
	}
}

// A server of before has no such client: the person is told, and not sent to a page of errors.
func TestAServerOfBeforeIsSaidToBe(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_client","error_description":"The app that sent you here is not known to this service."}`)
	}))
	defer s.Close()
	app := New("db.maya.example", Config{Transport: s.Client().Transport.(*http.Transport)})
	if err := app.knows(t.Context(), &server{Issuer: s.URL}, s.URL+"/a"); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("it is said %v", err)
	}
}

// pocket keeps a sign-in.
type pocket struct{ kept string }

func (p *pocket) Get(context.Context) (string, error)        { return p.kept, nil }
func (p *pocket) Set(_ context.Context, secret string) error { p.kept = secret; return nil }
func (p *pocket) Delete(context.Context) error               { p.kept = ""; return nil }
func (p *pocket) Kind() string                               { return "file" }

// Weakness: an app's address says anew each time who signs people in for it, and may be
// another's by now. Attack: it names a server of its own, or the right one for an address that
// is no app's. Checked: no other server gets the refresh token to see, and the right one is
// told which address the access token will be sent to.
func TestARefreshTokenIsForWhoGaveIt(t *testing.T) {
	t.Parallel()
	var asked []url.Values
	s := httptest.NewUnstartedServer(nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := "https://" + r.Host
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "oauth-protected-resource"):
			fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, own, own)
		case strings.HasSuffix(r.URL.Path, "oauth-authorization-server"):
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"revocation_endpoint":%q}`, own, own+"/a", own+"/t", own+"/r")
		default:
			_ = r.ParseForm()
			asked = append(asked, r.PostForm)
			fmt.Fprint(w, `{"access_token":"a","token_type":"Bearer","expires_in":600,"refresh_token":"next"}`)
		}
	})
	s.StartTLS()
	defer s.Close()
	for kept, want := range map[string]string{
		s.URL + "#first": s.URL + "#next", "https://auth.example#first": "https://auth.example#first", s.URL + "9#first": s.URL + "9#first", "first": "first",
	} {
		asked = nil
		keep := &pocket{kept}
		app := New(strings.TrimPrefix(s.URL, "https://"), Config{Transport: s.Client().Transport.(*http.Transport), Keep: []ownersecret.Store{keep}})
		token, err := app.token(t.Context(), "")
		is := want != kept
		if keep.kept != want || is != (token == "a") || is == errors.Is(err, ErrSignIn) || is != (len(asked) == 1) {
			t.Errorf("%s: %q, %v, then is kept %s; asked %v", kept, token, err, keep.kept, asked)
		}
		if is && (asked[0].Get("refresh_token") != "first" || asked[0].Get("grant_type") != "refresh_token" || asked[0].Get("resource") != s.URL) {
			t.Errorf("asked %v", asked[0])
		}
		asked = nil
		keep.kept = kept
		if err := app.SignOut(t.Context()); err != nil || keep.kept != "" || is != (len(asked) == 1) {
			t.Errorf("%s: signed out with %v, asked %v", kept, err, asked)
		}
	}
}

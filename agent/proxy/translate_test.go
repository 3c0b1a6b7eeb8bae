package proxy_test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/test/programs"
)

// Whatever an app answers, with whatever options, that leads to its own address or
// to its public host by http, leads to its public address: localhost is another
// computer to a visitor, and http is nothing that is spoken there. Everything else is
// left as it is, byte for byte. PORT is the app's port.
var outward = []struct{ field, says, want string }{
	// The app's own address, however it is written.
	{"Location", "http://localhost:PORT/a?b=c#d", "PUBLIC/a?b=c#d"},
	{"Location", "https://localhost:PORT/a", "PUBLIC/a"},
	{"Location", "HTTP://LOCALHOST:PORT", "PUBLIC/"},
	{"Location", "http://127.0.0.1:PORT/", "PUBLIC/"},
	{"Location", "http://[::1]:PORT/a//b/../%2F;x=\\y?q=%zz&<>#\"frag", "PUBLIC/a//b/../%2F;x=\\y?q=%zz&<>#\"frag"},
	{"Location", "//localhost:PORT/%2fx", "PUBLIC/%2fx"},
	{"Location", "http://localhost:PORT?x", "PUBLIC/?x"},
	{"Location", "http://localhost:PORT#x", "PUBLIC/#x"},
	{"Location", "http://localhost:PORT//elsewhere.test/", "PUBLIC//elsewhere.test/"},
	{"Location", "http://localhost:PORT/caf\xe9/ü", "PUBLIC/caf\xe9/ü"},
	{"Content-Location", "http://127.0.0.1:PORT/upload/7", "PUBLIC/upload/7"},
	// Its public host, by http or with the app's own port.
	{"Location", "http://notes.maya.porch.test/login", "PUBLIC/login"},
	{"Location", "http://NOTES.maya.porch.test:80/login", "PUBLIC/login"},
	{"Location", "http://notes.maya.porch.test:443/login", "PUBLIC/login"},
	{"Location", "http://notes.maya.porch.test:PORT/dir/", "PUBLIC/dir/"},
	{"Location", "https://notes.maya.porch.test:PORT/dir/", "PUBLIC/dir/"},
	{"Location", "//notes.maya.porch.test:PORT/dir/", "PUBLIC/dir/"},
	// Refresh.
	{"Refresh", "5; url=http://localhost:PORT/next", "5; url=PUBLIC/next"},
	{"Refresh", "0;URL='http://notes.maya.porch.test/a;b'", "0;URL='PUBLIC/a;b'"},
	{"Refresh", `1.5 , url = "http://127.0.0.1:PORT/" x`, `1.5 , url = "PUBLIC/" x`},
	{"Refresh", "3;http://localhost:PORT/", "3;PUBLIC/"},
	{"Refresh", "5", "5"},
	{"Refresh", "5; url=/next", "5; url=/next"},
	{"Refresh", "5; url='http://localhost:PORT/next", "5; url='http://localhost:PORT/next"},
	{"Refresh", "url=http://localhost:PORT/", "url=http://localhost:PORT/"},
	{"Refresh", "5 http://localhost:PORT/", "5 http://localhost:PORT/"},
	{"Refresh", "5; url=http://localhost:1/", "5; url=http://localhost:1/"},
	// Link.
	{"Link", `<http://localhost:PORT/a,b;c>; rel="preload <x>, y\"z"; as=style, </rel>;rel=next,<//127.0.0.1:PORT/d>`,
		`<PUBLIC/a,b;c>; rel="preload <x>, y\"z"; as=style, </rel>;rel=next,<PUBLIC/d>`},
	{"Link", `<https://elsewhere.test/x>; rel=canonical, <http://notes.maya.porch.test/wp-json/>; rel="https://api.w.org/"`,
		`<https://elsewhere.test/x>; rel=canonical, <PUBLIC/wp-json/>; rel="https://api.w.org/"`},
	{"Link", `<http://localhost:PORT/a>; title="open`, `<http://localhost:PORT/a>; title="open`},
	{"Link", `<http://localhost:PORT/a`, `<http://localhost:PORT/a`},
	{"Link", `http://localhost:PORT/a; rel=next`, `http://localhost:PORT/a; rel=next`},
	{"Link", `</x>; anchor="http://localhost:PORT/"; rel=self`, `</x>; anchor="http://localhost:PORT/"; rel=self`},
	// Another address.
	{"Location", "http://localhost:1/x", "http://localhost:1/x"},
	{"Location", "http://localhost/x", "http://localhost/x"},
	{"Location", "http://127.0.0.2:PORT/x", "http://127.0.0.2:PORT/x"},
	{"Location", "/relative", "/relative"},
	{"Location", "relative//localhost:PORT/", "relative//localhost:PORT/"},
	{"Location", "https://elsewhere.test/x", "https://elsewhere.test/x"},
	{"Location", "http://elsewhere.test:PORT/x", "http://elsewhere.test:PORT/x"},
	{"Location", "https://notes.maya.porch.test/x", "https://notes.maya.porch.test/x"},
	{"Location", "http://notes.maya.porch.test:1/x", "http://notes.maya.porch.test:1/x"},
	{"Location", "http://photos.maya.porch.test/x", "http://photos.maya.porch.test/x"},
	{"Location", "http://notes.maya.porch.test.elsewhere.test/x", "http://notes.maya.porch.test.elsewhere.test/x"},
	{"Location", "", ""},
	// What can be read in more ways than one.
	{"Location", "http://localhost:PORT@elsewhere.test/x", "http://localhost:PORT@elsewhere.test/x"},
	{"Location", "http://me:x@localhost:PORT/", "http://me:x@localhost:PORT/"},
	{"Location", "http://localhost:PORT\\@elsewhere.test/", "http://localhost:PORT\\@elsewhere.test/"},
	{"Location", "http:\\\\localhost:PORT/", "http:\\\\localhost:PORT/"},
	{"Location", "http:localhost:PORT/", "http:localhost:PORT/"},
	{"Location", "http:///localhost:PORT/", "http:///localhost:PORT/"},
	{"Location", "///localhost:PORT/", "///localhost:PORT/"},
	{"Location", "http://local\thost:PORT/", "http://local\thost:PORT/"},
	{"Location", "http://localhost:PORT\t/", "http://localhost:PORT\t/"},
	{"Location", "http://localhost%2e:PORT/", "http://localhost%2e:PORT/"},
	{"Location", "http://localhost.:PORT/", "http://localhost.:PORT/"},
	{"Location", "http://localhost:0PORT/", "http://localhost:0PORT/"},
	{"Location", "http://localhost:+PORT/", "http://localhost:+PORT/"},
	{"Location", "http://localhost:/", "http://localhost:/"},
	{"Location", "http://[::1%25lo]:PORT/", "http://[::1%25lo]:PORT/"},
	{"Location", "http://2130706433:PORT/", "http://2130706433:PORT/"},
	{"Location", "ftp://localhost:PORT/", "ftp://localhost:PORT/"},
}

// says is an app that answers with the fields it was told to.
type says struct {
	status int // 201 when 0; set before the first request
	mu     sync.Mutex
	header http.Header
	asked  *http.Request
}

func (s *says) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	s.asked = r
	for name, values := range s.header {
		w.Header()[name] = values
	}
	w.WriteHeader(cmp.Or(s.status, http.StatusCreated))
}

func (s *says) say(name string, values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header = http.Header{name: values}
}

// saying is a rig whose app notes says what it is told to, over HTTP/1.1 and, where it
// is asked so, HTTP/2.
func saying(t *testing.T, options ...func(*proxy.Config)) (*rig, *says, string) {
	t.Helper()
	r, s := newRig(t, options...), &says{}
	srv := httptest.NewUnstartedServer(s)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	addr := srv.Listener.Addr().(*net.TCPAddr)
	r.publish("notes", addr.Port)
	_, port, _ := net.SplitHostPort(addr.String())
	return r, s, port
}

func TestAnswersLeadToThePublicAddress(t *testing.T) {
	t.Parallel()
	r, app, port := saying(t)
	h1, h2 := r.signedIn("notes", bobID, false), r.signedIn("notes", bobID, true)
	for _, way := range []struct {
		name    string
		options agentapi.AppOptions
		b       *browser
		method  string
	}{
		{"a GET over HTTP/1.1", agentapi.AppOptions{}, h1, "GET"},
		{"a GET over HTTP/2", agentapi.AppOptions{}, h2, "GET"},
		{"a POST over HTTP/1.1", agentapi.AppOptions{}, h1, "POST"},
		{"a POST over HTTP/2", agentapi.AppOptions{Forwarded: true}, h2, "POST"},
		{"an app asked as localhost", agentapi.AppOptions{LocalhostHost: true}, h2, "GET"},
		{"an app spoken to in HTTP/2", agentapi.AppOptions{H2C: true}, h2, "GET"},
	} {
		r.change("notes", func(a *engine.App) { a.Options = way.options })
		for _, c := range outward {
			app.say(c.field, "/first", strings.ReplaceAll(c.says, "PORT", port))
			var body io.Reader
			if way.method == "POST" {
				body = strings.NewReader("x")
			}
			res, text := way.b.read(way.b.request(way.method, origin+"/", body, "Origin", origin))
			want := strings.NewReplacer("PORT", port, "PUBLIC", origin).Replace(c.want)
			if got := res.Header[c.field]; res.StatusCode != 201 || !slices.Equal(got, []string{"/first", want}) {
				t.Errorf("%s: %s %q is %q, want %q (%s %s)", way.name, c.field, c.says, got, want, res.Status, text)
			}
		}
	}
}

// A directory redirect of nginx in local mode names the app's port, which led past
// Porchlight: the visitor came to the app as nobody.
func TestPublicPortInAnswers(t *testing.T) {
	t.Parallel()
	const public = "https://notes.maya.porch.test:8443"
	r, app, port := saying(t, func(c *proxy.Config) {
		c.Root = func() engine.Root { return engine.Root{Name: "maya", Host: rootHost + ":8443"} }
	})
	b := r.browser(false)
	b.signIn(public+"/", bobID)
	for to, want := range map[string]string{
		"http://notes.maya.porch.test:" + port + "/dir/":   public + "/dir/",
		"http://notes.maya.porch.test/dir/":                public + "/dir/",
		"http://notes.maya.porch.test:8443/dir/":           public + "/dir/",
		"http://localhost:" + port + "/dir/":               public + "/dir/",
		"https://notes.maya.porch.test:8443/dir/":          public + "/dir/",
		"https://notes.maya.porch.test/dir/":               "https://notes.maya.porch.test/dir/",
		"http://notes.maya.porch.test:443/dir/":            "http://notes.maya.porch.test:443/dir/",
		"http://notes.maya.porch.test:8443@elsewhere.test": "http://notes.maya.porch.test:8443@elsewhere.test",
	} {
		app.say("Location", to)
		if res, _ := b.fetch("GET", public+"/"); res.Header.Get("Location") != want {
			t.Errorf("%q leads to %q, want %q", to, res.Header.Get("Location"), want)
		}
	}
}

// An app that is asked by an address of its own gets its public one nowhere it
// compares with that, and every other address as it came.
func TestRequestsNameTheAppsOwnAddress(t *testing.T) {
	t.Parallel()
	r, app, port := saying(t)
	h1, h2 := r.signedIn("notes", bobID, false), r.signedIn("notes", bobID, true)
	for _, c := range []struct {
		options   agentapi.AppOptions
		host, own string
	}{
		{agentapi.AppOptions{}, "notes." + rootHost, origin},
		{agentapi.AppOptions{Forwarded: true, PublicAddress: true}, "notes." + rootHost, origin},
		{agentapi.AppOptions{LocalhostHost: true}, "localhost:" + port, "http://localhost:" + port},
		{agentapi.AppOptions{LocalhostHost: true, H2C: true}, "localhost:" + port, "http://localhost:" + port},
		{agentapi.AppOptions{HostHeader: "nas.home:5000"}, "nas.home:5000", "http://nas.home:5000"},
		{agentapi.AppOptions{HostHeader: "nas.home"}, "nas.home", "http://nas.home"},
	} {
		r.change("notes", func(a *engine.App) { a.Options = c.options })
		for _, b := range []*browser{h1, h2} {
			for _, method := range []string{"GET", "POST", "MOVE"} {
				for _, v := range []struct{ referer, want string }{
					{origin + "/page?q=1", c.own + "/page?q=1"},
					{origin, c.own},
					{"https://NOTES.maya.porch.test:443/\\x", map[bool]string{true: "https://NOTES.maya.porch.test:443/\\x", false: c.own + "/\\x"}[c.own == origin]},
					{origin + "@elsewhere.test/", origin + "@elsewhere.test/"},
					{origin + ".elsewhere.test/", origin + ".elsewhere.test/"},
					{origin + ":8080/", origin + ":8080/"},
					{"https://photos." + rootHost + "/", "https://photos." + rootHost + "/"},
					{"http://notes." + rootHost + "/", "http://notes." + rootHost + "/"},
					{"/relative", "/relative"},
				} {
					var body io.Reader
					if method == "POST" {
						body = strings.NewReader("x")
					}
					res, text := b.read(b.request(method, origin+"/a", body, "Origin", origin, "Referer", v.referer, "Destination", v.referer))
					if res.StatusCode != 201 {
						t.Fatalf("%s %s", res.Status, text)
					}
					app.mu.Lock()
					got := app.asked
					app.mu.Unlock()
					if got.Host != c.host || got.Header.Get("Origin") != c.own || got.Header.Get("Referer") != v.want || got.Header.Get("Destination") != v.want {
						t.Errorf("%+v: %s from %q: Host %q, Origin %q, Referer %q, Destination %q; want %q", c.options, method, v.referer,
							got.Host, got.Header.Get("Origin"), got.Header.Get("Referer"), got.Header.Get("Destination"), v.want)
					}
				}
			}
		}
	}
	// A page of another site is refused before anything is translated.
	res, _ := h1.fetch("POST", origin+"/", "Origin", "https://elsewhere.test")
	if res.StatusCode != 403 {
		t.Errorf("a foreign Origin: %s", res.Status)
	}
}

// What an app with a fixed Host says of that host is turned back as well.
func TestFixedHostIsTurnedBack(t *testing.T) {
	t.Parallel()
	r, app, port := saying(t)
	b := r.signedIn("notes", bobID, false)
	r.change("notes", func(a *engine.App) { a.Options.HostHeader = "nas.home:5000" })
	for to, want := range map[string]string{
		"http://nas.home:5000/x":            origin + "/x",
		"http://NAS.home:" + port + "/x":    origin + "/x",
		"//nas.home:5000/x":                 origin + "/x",
		"http://nas.home/x":                 "http://nas.home/x",
		"https://nas.home:5000/x":           "https://nas.home:5000/x",
		"http://localhost:" + port + "/x":   origin + "/x",
		"http://nas.home:5000@elsewhere/":   "http://nas.home:5000@elsewhere/",
		"http://nas.home.elsewhere:5000/x/": "http://nas.home.elsewhere:5000/x/",
	} {
		app.say("Location", to)
		if res, _ := b.fetch("GET", origin+"/"); res.Header.Get("Location") != want {
			t.Errorf("%q leads to %q, want %q", to, res.Header.Get("Location"), want)
		}
	}
}

// A 103 names what to load, before there is an answer.
func TestEarlyHintsLeadToThePublicAddress(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST"} {
		r, b := newVisitor(t, true, nil)
		var port string
		srv := r.app("notes", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "<http://localhost:"+port+"/a.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
		})
		_, port, _ = net.SplitHostPort(srv.Listener.Addr().String())
		var early []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { early = h["Link"]; return nil }}
		req := b.request(method, origin+"/", nil, "Origin", origin)
		res, _ := b.read(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
		want := []string{"<" + origin + "/a.css>; rel=preload"}
		if !slices.Equal(early, want) || !slices.Equal(res.Header["Link"], want) {
			t.Errorf("%s: %q, and then %q", method, early, res.Header["Link"])
		}
	}
}

// The own address of an app that speaks HTTPS begins with https.
func TestOwnAddressByHTTPS(t *testing.T) {
	t.Parallel()
	r, app := newRig(t), &says{}
	srv := httptest.NewTLSServer(app)
	t.Cleanup(srv.Close)
	port := srv.Listener.Addr().(*net.TCPAddr).Port
	r.publish("notes", port)
	b := r.signedIn("notes", bobID, true)
	for _, c := range []struct {
		options agentapi.AppOptions
		own     string
	}{
		{agentapi.AppOptions{Upstream: agentapi.UpstreamHTTPS, LocalhostHost: true}, fmt.Sprint("https://localhost:", port)},
		{agentapi.AppOptions{Upstream: agentapi.UpstreamHTTPS, HostHeader: "nas.home"}, "https://nas.home"},
	} {
		r.change("notes", func(a *engine.App) { a.Options = c.options })
		app.say("Location", c.own+"/next")
		res, text := b.fetch("POST", origin+"/", "Origin", origin, "Referer", origin+"/a")
		if res.StatusCode != 201 || res.Header.Get("Location") != origin+"/next" {
			t.Fatalf("%+v: %s to %q %s", c.options, res.Status, res.Header.Get("Location"), text)
		}
		app.mu.Lock()
		if got := app.asked; "https://"+got.Host != c.own || got.Header.Get("Origin") != c.own || got.Header.Get("Referer") != c.own+"/a" {
			t.Errorf("%+v: Host %q, Origin %q, Referer %q", c.options, got.Host, got.Header.Get("Origin"), got.Header.Get("Referer"))
		}
		app.mu.Unlock()
	}
}

// A WebSocket of a development server compares Origin with Host.
func TestWebSocketsNameTheAppsOwnAddress(t *testing.T) {
	t.Parallel()
	heard := make(chan [2]string, 1)
	r, b := newVisitor(t, false, nil)
	srv := r.app("notes", func(w http.ResponseWriter, req *http.Request) {
		heard <- [2]string{req.Host, req.Header.Get("Origin")}
		echo(w, req)
	})
	r.change("notes", func(a *engine.App) { a.Options.LocalhostHost = true })
	c, _, err := b.dial("wss://notes."+rootHost+"/hmr", "Origin", origin)
	programs.Must(t, err)
	defer c.CloseNow()
	u := programs.Got(url.Parse(srv.URL))(t)
	if got, want := <-heard, "localhost:"+u.Port(); got != [2]string{want, "http://" + want} {
		t.Errorf("Host and Origin are %q, want those of %s", got, want)
	}
}

// An app may learn the address it has for visitors, and not theirs.
func TestPublicAddressIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rec := newRecorder(t)
	r.publish("notes", rec.port)
	b := r.signedIn("notes", bobID, true)
	for _, c := range []struct {
		options agentapi.AppOptions
		want    []string
	}{
		{agentapi.AppOptions{}, nil},
		{agentapi.AppOptions{PublicAddress: true}, []string{"Host: notes." + rootHost, "Proto: https"}},
		{agentapi.AppOptions{PublicAddress: true, LocalhostHost: true}, []string{"Host: notes." + rootHost, "Proto: https"}},
		{agentapi.AppOptions{PublicAddress: true, Forwarded: true}, []string{"For: 127.0.0.1", "Host: notes." + rootHost, "Proto: https"}},
	} {
		r.change("notes", func(a *engine.App) { a.Options = c.options })
		before := len(rec.requests())
		if res, text := b.fetch("GET", origin+"/", "X-Forwarded-Proto", "http", "X-Forwarded-Host", "evil.test", "X-Forwarded-For", "203.0.113.9"); res.StatusCode != 200 {
			t.Fatalf("%s %s", res.Status, text)
		}
		var got []string
		for line := range strings.SplitSeq(rec.requests()[before], "\r\n") {
			if value, is := strings.CutPrefix(line, "X-Forwarded-"); is {
				got = append(got, value)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.options, got, c.want)
		}
	}
}

// An app that wants HTTPS and does not know that it is reached by it redirects to what
// was asked, for ever.
func TestPublicAddressIsSuggestedToWhatLeadsNowhere(t *testing.T) {
	t.Parallel()
	hints := make(chan string, 10)
	r, app, _ := saying(t, func(c *proxy.Config) {
		c.OnHint = func(appID string) { hints <- appID }
	})
	app.status = http.StatusFound
	b := r.signedIn("notes", bobID, false)
	for _, c := range []struct {
		asked, to string
		hint      bool
	}{
		{"/login", origin + "/", false},
		{"/login", "/login", false},
		{"/login?a=1", origin + "/login", false},
		{"/login?a=%20&b", origin + "/login?a=%20&b", true},
	} {
		app.say("Location", c.to)
		if res, _ := b.fetch("GET", origin+c.asked); res.StatusCode != http.StatusFound || res.Header.Get("Location") != c.to {
			t.Errorf("%s: %s to %s", c.asked, res.Status, res.Header.Get("Location"))
		}
		if hint := len(hints) > 0; hint != c.hint {
			t.Errorf("%s to %s: suggested %t", c.asked, c.to, hint)
		}
	}
}

// That an app names its public address by http is told, also of one that is told its
// address, which then did not help.
func TestPublicAddressIsSuggested(t *testing.T) {
	t.Parallel()
	hints := make(chan string, 10)
	r, app, port := saying(t, func(c *proxy.Config) {
		c.OnHint = func(appID string) { hints <- appID }
	})
	b := r.signedIn("notes", bobID, false)
	ask := func(location string, o agentapi.AppOptions) {
		t.Helper()
		r.change("notes", func(a *engine.App) { a.Options = o })
		app.say("Location", location)
		if res, text := b.fetch("GET", origin+"/"); res.StatusCode != 201 {
			t.Fatalf("%s %s", res.Status, text)
		}
	}
	const byHTTP = "http://notes." + rootHost + "/login"
	ask("/login", agentapi.AppOptions{})
	ask("http://localhost:"+port+"/", agentapi.AppOptions{})
	if len(hints) != 0 {
		t.Errorf("suggested too early: %s", <-hints)
	}
	for _, o := range []agentapi.AppOptions{{}, {PublicAddress: true}, {Forwarded: true}} {
		ask(byHTTP, o)
		if len(hints) != 1 {
			t.Fatalf("%+v: suggested %d times", o, len(hints))
		}
		if got := <-hints; got != "id-notes" {
			t.Errorf("suggested for %q", got)
		}
	}
}

package relay

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"porchlight/control/relay/clienthello"
)

func servePlain(t *testing.T, change func(*Config)) (*Relay, string) {
	t.Helper()
	return serveRelay(t, func(c *Config) {
		c.Domain, c.PublicPort = "porch.test", 8443
		if change != nil {
			change(c)
		}
	}, nil)
}

// askPlain sends bytes and reads the one answer there is, and that nothing follows it.
func askPlain(t *testing.T, addr, send string) (*http.Response, string) {
	t.Helper()
	conn := visit(t, addr, []byte(send))
	from := bufio.NewReader(conn)
	method, _, _ := strings.Cut(send, " ")
	res, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%.60q: %v", send, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%.60q: %v", send, err)
	}
	if more, err := io.ReadAll(from); len(more) > 0 || err != nil || !res.Close {
		t.Errorf("%.60q: %q follows, %v", send, more, err)
	}
	return res, string(body)
}

// Who speaks plain HTTP to the port of TLS is sent on to the same address by HTTPS,
// where it is one of this service, and to no other.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	r, addr := servePlain(t, nil)
	connectAgent(t, addr, "maya") // maya.localhost, which is not below the domain
	const end = "\r\n\r\n"
	for _, c := range []struct{ name, send, location, link string }{
		{"an app", "GET /a/b?c=d HTTP/1.1\r\nHost: notes.maya.porch.test:8443" + end, "https://notes.maya.porch.test:8443/a/b?c=d", ""},
		{"HEAD", "HEAD / HTTP/1.1\r\nHost: notes.maya.porch.test" + end, "https://notes.maya.porch.test:8443/", ""},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nUser-Agent: x\r\nhOST:\tNotes.Maya.PORCH.test.  " + end, "https://notes.maya.porch.test:8443/", ""},
		{"odd bytes of a path", "GET //x\\y/%zz?<a>&\"' HTTP/1.1\r\nHost: notes.maya.porch.test:80" + end, "https://notes.maya.porch.test:8443//x\\y/%zz?<a>&\"'", ""},
		{"a computer", "GET / HTTP/1.1\r\nHost: maya.porch.test" + end, "https://maya.porch.test:8443/", ""},
		{"the auth host", "GET /signin HTTP/1.1\r\nHost: " + testAuthHost + end, "https://" + testAuthHost + ":8443/signin", ""},
		{"a computer that is here", "GET / HTTP/1.1\r\nHost: maya.localhost" + end, "https://maya.localhost:8443/", ""},
		{"its app", "GET / HTTP/1.1\r\nHost: notes.maya.localhost" + end, "https://notes.maya.localhost:8443/", ""},
		{"a second request", "GET /1 HTTP/1.1\r\nHost: maya.porch.test" + end + "GET /2 HTTP/1.1\r\nHost: maya.porch.test" + end, "https://maya.porch.test:8443/1", ""},
		{"a body", "GET /1 HTTP/1.1\r\nHost: maya.porch.test\r\nContent-Length: 5" + end + "hello", "https://maya.porch.test:8443/1", ""},

		{"POST", "POST /form HTTP/1.1\r\nHost: notes.maya.porch.test\r\nContent-Length: 1" + end + "x", "", "https://notes.maya.porch.test:8443/"},
		{"another method", "BREW /form HTTP/1.1\r\nHost: notes.maya.porch.test" + end, "", "https://notes.maya.porch.test:8443/"},
		{"another host", "GET / HTTP/1.1\r\nHost: elsewhere.test" + end, "", ""},
		{"a longer one", "GET / HTTP/1.1\r\nHost: notes.maya.porch.test.elsewhere.test" + end, "", ""},
		{"one that ends alike", "GET / HTTP/1.1\r\nHost: notporch.test" + end, "", ""},
		{"the domain itself", "GET / HTTP/1.1\r\nHost: porch.test" + end, "", ""},
		{"an address", "GET / HTTP/1.1\r\nHost: 127.0.0.1:8443" + end, "", ""},
		{"a computer nobody knows", "GET / HTTP/1.1\r\nHost: eve.localhost" + end, "", ""},
		{"no host", "GET / HTTP/1.1\r\nUser-Agent: x" + end, "", ""},
		{"no field", "GET / HTTP/1.1" + end, "", ""},
		{"two hosts", "GET / HTTP/1.1\r\nHost: maya.porch.test\r\nHost: eve.porch.test" + end, "", ""},
		{"a user", "GET / HTTP/1.1\r\nHost: me@maya.porch.test" + end, "", ""},
		{"a path in the host", "GET / HTTP/1.1\r\nHost: elsewhere.test/.maya.porch.test" + end, "", ""},
		{"a script in the host", "GET / HTTP/1.1\r\nHost: <script>.maya.porch.test" + end, "", ""},
		{"an empty label", "GET / HTTP/1.1\r\nHost: notes..porch.test" + end, "", ""},
		{"a dot first", "GET / HTTP/1.1\r\nHost: .porch.test" + end, "", ""},
		{"an odd port", "GET / HTTP/1.1\r\nHost: maya.porch.test:80@x" + end, "", ""},
		{"beyond ASCII", "GET / HTTP/1.1\r\nHost: m\xc3\xbc.porch.test" + end, "", ""},
		{"a whole address", "GET http://maya.porch.test/ HTTP/1.1\r\nHost: maya.porch.test" + end, "", ""},
		{"no path", "GET x HTTP/1.1\r\nHost: maya.porch.test" + end, "", ""},
		{"a fragment", "GET /#x HTTP/1.1\r\nHost: maya.porch.test" + end, "", ""},
		{"a space in the path", "GET /a b HTTP/1.1\r\nHost: maya.porch.test" + end, "", ""},
		{"a byte beyond ASCII in the path", "GET /\xc3\xbc HTTP/1.1\r\nHost: maya.porch.test" + end, "", ""},
		{"another version", "GET / HTTP/2.0\r\nHost: maya.porch.test" + end, "", ""},
		{"a folded line", "GET / HTTP/1.1\r\nHost: maya.porch.test\r\n x: y" + end, "", ""},
		{"a space before a colon", "GET / HTTP/1.1\r\nHost : maya.porch.test" + end, "", ""},
		{"no colon", "GET / HTTP/1.1\r\nHost: maya.porch.test\r\nx" + end, "", ""},
		{"bare LF", "GET / HTTP/1.1\nHost: maya.porch.test\n\n", "", ""},
		{"a bare LF in a field", "GET / HTTP/1.1\r\nX: y\nHost: eve.porch.test\r\nHost: maya.porch.test" + end, "", ""},
		{"a field without end", "GET / HTTP/1.1\r\nHost: maya.porch.test\r\nX: " + strings.Repeat("x", 2*clienthello.MaxSize), "", ""},
	} {
		before := r.Stats().Malformed
		res, body := askPlain(t, addr, c.send)
		status := http.StatusBadRequest
		if c.location != "" {
			status = http.StatusPermanentRedirect
		}
		if res.StatusCode != status || res.Header.Get("Location") != c.location {
			t.Errorf("%s: %s to %q, want %q", c.name, res.Status, res.Header.Get("Location"), c.location)
		}
		if refused := r.Stats().Malformed - before; refused != 0 && c.location != "" || refused != 1 && c.location == "" {
			t.Errorf("%s: counted %d times", c.name, refused)
		}
		head := strings.HasPrefix(c.send, "HEAD")
		if !head && !strings.Contains(body, "speaks HTTPS") || head && body != "" {
			t.Errorf("%s: %q", c.name, body)
		}
		if c.location == "" && strings.Contains(body, "<a href") != (c.link != "") || c.link != "" && !strings.Contains(body, `<a href="`+c.link+`">`) {
			t.Errorf("%s: %q, want a link to %q", c.name, body, c.link)
		}
		if strings.Contains(body, "<script") || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v %q", c.name, res.Header, body)
		}
	}
}

// At port 443 the address has no port, and who is slow is not waited for.
func TestPlainHTTPAtThePortOfHTTPS(t *testing.T) {
	t.Parallel()
	_, addr := servePlain(t, func(c *Config) { c.PublicPort = 443 })
	if res, _ := askPlain(t, addr, "GET /x HTTP/1.1\r\nHost: maya.porch.test:80\r\n\r\n"); res.Header.Get("Location") != "https://maya.porch.test/x" {
		t.Errorf("%s to %q", res.Status, res.Header.Get("Location"))
	}
	_, addr = servePlain(t, func(c *Config) { c.FirstBytes = 100 * time.Millisecond })
	if res, _ := askPlain(t, addr, "GET /x HTTP/1.1\r\nHost: maya.porch.test\r\n"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("half a head: %s", res.Status)
	}
}

// Whatever head comes, nobody is sent anywhere but to HTTPS at a host of the service,
// and the answer is one that any program reads alike.
func FuzzPlainHTTP(f *testing.F) {
	f.Add("GET /a?b HTTP/1.1\r\nHost: notes.maya.porch.test:8443")
	f.Add("HEAD //x\\y HTTP/1.0\r\nX: y\r\nhost:maya.porch.test.")
	f.Add("GET / HTTP/1.1\r\nHost: maya.porch.test\r\nHost: x")
	r := &Relay{cfg: Config{AuthHost: "control.porch.test", Domain: "porch.test"}, routes: newRoutes(Limits{}.WithDefaults())}
	f.Fuzz(func(t *testing.T, head string) {
		q := parsePlain([]byte(head))
		if !r.isOurs(q.host) {
			q.host = ""
		}
		answer, sentOn := plainAnswer(q, 8443)
		res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(answer))), &http.Request{Method: q.method})
		if err != nil {
			t.Fatalf("%q: %q, %v", head, answer, err)
		}
		to := res.Header.Get("Location")
		if sentOn != (to != "") {
			t.Fatalf("%q: %q", head, answer)
		}
		if !sentOn {
			return
		}
		origin, rest, _ := strings.Cut(strings.TrimPrefix(to, "https://"), "/")
		u, err := url.Parse("https://" + origin + "/")
		if err != nil || !strings.HasSuffix(u.Hostname(), ".porch.test") || u.Port() != "8443" || u.User != nil || !strings.Contains(head, rest) {
			t.Fatalf("%q leads to %q, %v", head, to, err)
		}
	})
}

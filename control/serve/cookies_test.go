package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"porchlight/control"
	"porchlight/test/programs"
)

// heedless sends heads longer than the node announces over HTTP/2, as browsers do.
//
//lint:ignore SA1019 net/http's transport takes no connection whose bytes are changed on the way
func heedless(dial func(context.Context, string, string) (net.Conn, error), conf *tls.Config) *http2.Transport {
	//lint:ignore SA1019 as above
	return &http2.Transport{DialTLSContext: func(ctx context.Context, network, addr string, offers *tls.Config) (net.Conn, error) {
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conf := conf.Clone()
		conf.NextProtos = offers.NextProtos
		conn := tls.Client(raw, conf)
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		return programs.Heedless(conn)
	}}
}

// Weakness: a page of one computer sets thirty large cookies for the domain that
// all of them share with the auth host, and the browser's next request there was
// cut off without an answer, over HTTP/1.1 and HTTP/2, until somebody deleted them.
// Checked: such a request gets a page. Cookies are deleted only from a browser that
// loads a page and is kept out by cookies alone, because that takes those of every
// other host of the domain, too.
func TestTooManyCookiesGetAPage(t *testing.T) {
	t.Parallel()
	n, roots := runNode(t, Config{
		DataDir: t.TempDir(), Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}, Grace: time.Second,
	})
	addrs, _ := n.Addrs()
	cookies := func(n, size int) string {
		one := strings.Repeat("x", size)
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "c%03d=%s; ", i, one)
		}
		return b.String() + "last=1"
	}
	tab := map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	with := func(fields map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		for name, value := range fields {
			out[name] = value
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	many := map[string]string{}
	for i := range 201 {
		many[fmt.Sprint("X-Field-", i)] = "v"
	}
	for what, tt := range map[string]struct {
		path    string
		fields  map[string]string
		status  int
		cleared bool
	}{
		"a browser's usual cookies":   {"/signin", with(tab, "Cookie", cookies(20, 1000)), 200, false},
		"thirty large ones":           {"/signin", with(tab, "Cookie", cookies(30, 4000)), 431, true},
		"all a browser keeps":         {"/signin", with(tab, "Cookie", cookies(180, 4090)), 431, true},
		"of an old browser":           {"/signin", map[string]string{"Accept": "text/html", "Cookie": cookies(30, 4000)}, 431, true},
		"of a script":                 {"/signin", map[string]string{"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Cookie": cookies(30, 4000)}, 431, false},
		"of a frame":                  {"/signin", map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe", "Cookie": cookies(30, 4000)}, 431, false},
		"of an old browser's script":  {"/signin", map[string]string{"Accept": "text/html", "Origin": "https://a.porch.test", "Cookie": cookies(30, 4000)}, 431, false},
		"few, and a long field":       {"/signin", with(tab, "Cookie", cookies(5, 1000), "X-Long", strings.Repeat("y", 64<<10)), 431, false},
		"few, and a long address":     {"/signin?" + strings.Repeat("z", 62<<10), with(tab, "Cookie", cookies(5, 1000)), 431, false},
		"many, and a long field, too": {"/signin", with(tab, "Cookie", cookies(30, 4000), "X-Long", strings.Repeat("y", 64<<10)), 431, false},
		"too many fields":             {"/signin", with(many, "Sec-Fetch-Mode", "navigate"), 431, false},
		"of an agent":                 {"/v1/sync", map[string]string{"Cookie": cookies(30, 4000)}, 431, false},
	} {
		for _, h2 := range []bool{false, true} {
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", addrs[0])
			}
			conf := &tls.Config{RootCAs: roots, ServerName: n.authHost()}
			var transport interface {
				http.RoundTripper
				CloseIdleConnections()
			} = &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true, DialContext: dial}
			if h2 {
				transport = heedless(dial, conf)
			}
			req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, n.AuthURL()+tt.path, nil))(t)
			for name, value := range tt.fields {
				req.Header.Set(name, value)
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Errorf("%s, HTTP/2 %t: %v", what, h2, err)
				continue
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			transport.CloseIdleConnections()
			if err != nil || resp.StatusCode != tt.status || (resp.ProtoMajor == 2) != h2 {
				t.Errorf("%s, HTTP/2 %t: %s %s, %v", what, h2, resp.Proto, resp.Status, err)
			}
			if got := resp.Header.Get("Clear-Site-Data"); (got == `"cookies"`) != tt.cleared || got != "" && !tt.cleared {
				t.Errorf("%s, HTTP/2 %t: Clear-Site-Data %q", what, h2, got)
			}
			page := strings.Contains(string(body), "<html")
			if isPage := !strings.HasPrefix(tt.path, "/v1/"); page != isPage || tt.status == 431 && !strings.Contains(string(body), "cookies") {
				t.Errorf("%s, HTTP/2 %t: it says %.300q", what, h2, body)
			}
		}
	}
}

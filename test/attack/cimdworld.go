//go:build linux

package main

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"porchlight/internal/localca"
	"porchlight/test/programs"
)

// world is an internet of this process alone: its names, the host docs.example at
// internetAt, and behind every other address a trap.
type world struct {
	dns    net.PacketConn
	server *http.Server

	trapped   atomic.Int64 // connections to any other address
	asked     atomic.Int64 // requests for documents
	lied      atomic.Int64 // requests for lies
	elsewhere atomic.Int64 // requests for where a redirect leads
	refresh   string       // token of the honest client

	mu    sync.Mutex
	names map[string][]string // addresses, guarded by mu
	turn  int                 // how often turn.example was looked up
	found map[string]bool     // names that were looked up
}

const (
	internetAt = "203.0.113.10"
	resolverAt = "203.0.113.53"
	ownAt      = "203.0.113.99" // an address of this computer
)

// newWorld makes it of a network that has nothing, and has the programs trust it: their
// names are looked up here, and its authority is the system's.
func newWorld(ctx context.Context, dir string) (w *world, err error) {
	for _, args := range []string{
		"link set lo up", "route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo", "address add " + ownAt + "/32 dev lo",
	} {
		if _, err := programs.Output(exec.CommandContext(ctx, "ip", strings.Fields(args)...)); err != nil {
			return nil, err
		}
	}
	resolver := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(resolver, []byte("nameserver "+resolverAt+"\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		return nil, err
	}
	if err := errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(resolver, "/etc/resolv.conf", "", unix.MS_BIND, "")); err != nil {
		return nil, fmt.Errorf("the resolver of a network of its own: %w", err)
	}
	ca, err := localca.Open(filepath.Join(dir, "authority"), localca.Options{Names: []string{"example"}})
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("SSL_CERT_FILE", filepath.Join(dir, "authority", localca.RootFile)); err != nil {
		return nil, err
	}
	w = &world{found: map[string]bool{}, names: map[string][]string{
		"docs.example": {internetAt}, "elsewhere.example": {internetAt}, "both.example": {"127.0.0.1", internetAt, "::1"},
	}}
	if w.dns, err = net.ListenPacket("udp4", resolverAt+":53"); err != nil {
		return nil, err
	}
	go w.resolve()
	w.server = &http.Server{
		Handler:   http.HandlerFunc(w.serve),
		TLSConfig: &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return ca.Issue(hello.ServerName) }},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := net.Listen(network, ":443")
		if err != nil {
			return nil, err
		}
		go w.server.ServeTLS(trapping{l, &w.trapped}, "", "")
	}
	return w, nil
}

func (w *world) close() {
	w.dns.Close()
	w.server.Close()
}

// trapping is a listener of every address: whatever comes to another one than internetAt
// is counted, and goes no further.
type trapping struct {
	net.Listener
	trapped *atomic.Int64
}

func (l trapping) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || c.LocalAddr().(*net.TCPAddr).IP.String() == internetAt {
			return c, err
		}
		l.trapped.Add(1)
		c.Close()
	}
}

// leads has a name lead somewhere.
func (w *world) leads(name, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = []string{address}
}

func (w *world) lookedUp(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found[name]
}

func (w *world) addresses(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found[name] = true
	if name == "turn.example" {
		if w.turn++; w.turn%4 < 2 { // it is asked for both families each time
			return []string{internetAt}
		}
		return []string{"127.0.0.1"}
	}
	return w.names[name]
}

// resolve answers who looks up a name.
func (w *world) resolve() {
	buf := make([]byte, 4<<10)
	for {
		n, from, err := w.dns.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		for _, a := range w.addresses(strings.TrimSuffix(q.Name.String(), ".")) {
			head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}
			switch at := netip.MustParseAddr(a); {
			case q.Type == dnsmessage.TypeA && at.Is4():
				answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: at.As4()}})
			case q.Type == dnsmessage.TypeAAAA && at.Is6():
				answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: at.As16()}})
			}
		}
		if packed, err := answer.Pack(); err == nil {
			w.dns.WriteTo(packed, from)
		}
	}
}

// bannedRedirects are redirect URIs that a document names and that never count.
var bannedRedirects = []string{
	"https://evil.example/cb", "https://docs.example.evil.example/cb", "https://evil.docs.example/cb", "https://docs.example:8443/cb", "http://docs.example/cb",
	"https://docs.example@evil.example/cb", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "blob:https://docs.example/x", "about:blank", "ws://127.0.0.1/cb",
	"ms-msdt:/id", "search-ms:/x", "intent://x", "cursor://cb", "com.example.app:/cb", "http://10.0.0.1/cb", "http://127.0.0.2/cb", "http://0.0.0.0/cb", "http://127.1/cb",
	"http://localhost.evil.example/cb", "http://app.localhost/cb", "http://[::ffff:127.0.0.1]/cb", "https://docs.example/../cb", "https://docs.example/cb?code=x", "https://docs.example/*",
}

// document is an honest one of an address, with some that do not count.
func document(id string) string {
	return fmt.Sprintf(`{"client_id":%q,"client_name":"Editor","token_endpoint_auth_method":"none","redirect_uris":["http://127.0.0.1:7777/cb","http://localhost/cb","https://docs.example/cb","%s"]}`,
		id, strings.Join(bannedRedirects, `","`))
}

// lies are documents that are none.
var lies = map[string]func(w http.ResponseWriter, r *http.Request, id string){
	"another id": func(w http.ResponseWriter, _ *http.Request, id string) { io.WriteString(w, document(id+"x")) },
	"capitals in the id": func(w http.ResponseWriter, _ *http.Request, id string) {
		io.WriteString(w, document(strings.ToUpper(id)))
	},
	"another's id": func(w http.ResponseWriter, _ *http.Request, _ string) {
		io.WriteString(w, document("https://docs.example/client.json"))
	},
	"its id twice": func(w http.ResponseWriter, _ *http.Request, id string) {
		io.WriteString(w, strings.Replace(document("https://docs.example/x"), "{", fmt.Sprintf(`{"client_id":%q,`, id), 1))
	},
	"its id in capitals": func(w http.ResponseWriter, _ *http.Request, id string) {
		io.WriteString(w, strings.Replace(document(id), "client_id", "Client_Id", 1))
	},
	"a secret": func(w http.ResponseWriter, _ *http.Request, id string) {
		io.WriteString(w, strings.Replace(document(id), "{", `{"client_secret":"x",`, 1))
	},
	"a shared secret": func(w http.ResponseWriter, _ *http.Request, id string) {
		io.WriteString(w, strings.Replace(document(id), `"none"`, `"client_secret_basic"`, 1))
	},
	"no redirects that count": func(w http.ResponseWriter, _ *http.Request, id string) {
		fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":["%s"]}`, id, strings.Join(bannedRedirects, `","`))
	},
	"a name that turns": func(w http.ResponseWriter, _ *http.Request, id string) {
		io.WriteString(w, strings.Replace(document(id), "Editor", `\u202eedualC`, 1))
	},
	"a list":     func(w http.ResponseWriter, _ *http.Request, id string) { io.WriteString(w, "["+document(id)+"]") },
	"two in one": func(w http.ResponseWriter, _ *http.Request, id string) { io.WriteString(w, document(id)+document(id)) },
	"huge": func(w http.ResponseWriter, _ *http.Request, id string) {
		io.WriteString(w, document(id)+strings.Repeat(" ", 64<<10))
	},
	"deep": func(w http.ResponseWriter, _ *http.Request, id string) {
		fmt.Fprintf(w, `{"a":%s`, strings.Repeat("[", 60_000))
	},
	"not finished": func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Length", "60000")
		io.WriteString(w, document(id))
	},
	"endless": func(w http.ResponseWriter, r *http.Request, _ string) {
		for r.Context().Err() == nil {
			io.WriteString(w, strings.Repeat(" ", 1<<16))
		}
	},
	"slow": func(w http.ResponseWriter, r *http.Request, id string) {
		for _, c := range document(id) {
			fmt.Fprint(w, string(c))
			http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	},
	"silent": func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() },
	"packed": func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, document(id)+strings.Repeat(" ", 1<<26))
		z.Close()
	},
	"a page": func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, document(id))
	},
	"an error": func(w http.ResponseWriter, _ *http.Request, id string) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, document(id))
	},
	"long headers": func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<18))
		io.WriteString(w, document(id))
	},
	"redirects":                    to("/there"),
	"redirects to another host":    to("https://elsewhere.example/there"),
	"redirects inside":             to("https://127.0.0.1/there"),
	"redirects inside, no TLS":     to("http://127.0.0.1/there"),
	"redirects to its own address": to("https://" + ownAt + "/there"),
	"redirects to a file":          to("file:///etc/passwd"),
	"redirects in a ring":          to("/lie/redirects%20in%20a%20ring"),
	"refreshes":                    func(w http.ResponseWriter, _ *http.Request, _ string) { w.Header().Set("Refresh", "0; url=/there") },
}

func to(where string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Location", where)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// serve answers at internetAt, whatever the host.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	id := "https://" + r.Host + r.URL.EscapedPath()
	rw.Header().Set("Content-Type", "application/json")
	switch what, lie := strings.CutPrefix(r.URL.Path, "/lie/"); {
	case r.URL.Path == "/there":
		w.elsewhere.Add(1)
		io.WriteString(rw, document("https://docs.example/lie/redirects"))
	case lie:
		w.lied.Add(1)
		lies[what](rw, r, id)
	default:
		w.asked.Add(1)
		io.WriteString(rw, document(id))
	}
}

// spelled are addresses as a host, in all ways that one program or another reads.
var spelled = []string{
	"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0x7f.1", "017700000001", "0177.0.0.1", "127.0.0.01", "127.000.000.001", "127.0.0.1.", "0", "0.0.0.0", "0x0",
	"localhost", "LOCALHOST", "localhost.", "app.localhost", "control.localhost", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]", "[ff02::1]", "[2001::1]", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1",
	"203.0.113.10", "0xcb.0.113.10", "3405803786", "docs.example:443", "docs.example:8443", "user@docs.example", "docs.example@127.0.0.1", "docs.example%00", "docs.example%2f", "docs.example.", ".docs.example",
	"*.example", "docs..example", "docs.example\\@127.0.0.1", "docs.example#@127.0.0.1", "docs.example?@127.0.0.1", "\u2460\u2461\u2466.0.0.1", "docs\u3002example", "d\u043ecs.example", "xn--.example", "docs.example ", "docs.example\t",
	"0x7f.example.0x1", "example", "docs.example/..", "-docs.example", "docs-.example",
}

// insides are addresses of every kind that is not in the internet.
var insides = []string{
	"127.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0", "0.0.0.1", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255", "169.254.0.1", "169.254.169.254",
	"100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.0.8", "192.88.99.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", ownAt,
	"::", "::1", "::2", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "::127.0.0.1", "::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::cb00:710a",
	"64:ff9b:1::7f00:1", "64:ff9b:1:1::a00:1", "2002:7f00:1::", "2002:a00:1::1", "2002:cb00:710a::1", "2001::1", "2001:0:7f00:1::1", "fe80::1", "febf::1", "fec0::1", "feff::1", "fc00::1", "fd00::1", "fdff:ffff::1",
	"ff01::1", "ff02::1", "ff05::2", "ff0e::1", "100::1", "4000::1", "5f00::1", "8000::1", "e000::1", "1fff::1",
}

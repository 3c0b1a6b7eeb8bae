package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/engine"
	"porchlight/agent/proxy"
	"porchlight/agent/proxy/gate"
	"porchlight/test/programs"
)

// Two ways in read what visitors send: ours and net/http's. The same bytes go into
// both here, and what the app received, what the visitor got and whether the
// connection was kept have to be the same.

// ways are both ways, each with an app of its own behind it; all else they share, the
// sessions too, so that one cookie is good for both.
type ways struct {
	own, golang *way
	fill        *strings.Replacer // what inputs say in place of what differs from run to run
}

// way is one of the ways in.
type way struct {
	app    *wayApp
	in     chan net.Conn
	conf   *tls.Config  // of visitors
	broken atomic.Value // a fault of ours that was met, a string

	mu     sync.Mutex
	visits map[string]*pipeWatch // by the visitor's address; guarded by mu
}

func newWays(t testing.TB) *ways {
	t.Helper()
	var c proxy.Config
	r := newRig(t, func(of *proxy.Config) { c = *of })
	b := r.signedIn("notes", bobID, false)
	session := b.cookies[cookie]
	w := &ways{fill: strings.NewReplacer("HOST", sni, "COOKIE", cookie+"="+session)}
	w.own, w.golang = newWay(t, r, c, false), newWay(t, r, c, true)
	return w
}

// wayApps has the one app at another port.
type wayApps struct {
	proxy.Apps
	port int
}

func (a wayApps) Lookup(name string) (engine.App, bool) {
	app, ok := a.Apps.Lookup(name)
	app.Port = a.port
	return app, ok
}

func newWay(t testing.TB, r *rig, c proxy.Config, byLibrary bool) *way {
	t.Helper()
	w := &way{app: newWayApp(t), in: make(chan net.Conn), visits: map[string]*pipeWatch{}}
	w.conf = &tls.Config{RootCAs: r.roots, ServerName: sni, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	c.Apps = wayApps{c.Apps, w.app.port}
	p := programs.Got(proxy.New(c))(t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- gate.Serve(ctx, chanListener{w.in, ctx}, gate.Config{
			TLS: c.TLS, Handler: w.watched(p), ByLibrary: byLibrary, Files: 4096, CutOff: func() {}, Log: slog.New(slog.DiscardHandler),
			Broken: func(what any) { w.broken.Store(fmt.Sprint(what)) },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return w
}

type chanListener struct {
	in  chan net.Conn
	ctx context.Context
}

func (l chanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.in:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}
func (l chanListener) Close() error   { return nil }
func (l chanListener) Addr() net.Addr { return &net.TCPAddr{} }

// pipeWatch knows when nothing more will come of what was sent on a connection: all of
// it was read, more is waited for, and no request is being answered but those that
// wait for their bodies.
type pipeWatch struct {
	mu      sync.Mutex
	changed *sync.Cond
	// Guarded by mu:
	sent, taken    int
	reading, ended bool
	listens        bool // the visitor waits for more: what came before it has looked at
	active, bodies int
	made           int         // answers, which may leave only after their handler returned
	owed, due      func() bool // more of an answer is on its way; or one that was made, or the end; nil for never
}

func newPipeWatch() *pipeWatch {
	p := &pipeWatch{}
	p.changed = sync.NewCond(&p.mu)
	return p
}

func (p *pipeWatch) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// settled returns once nothing more will come, or the visitor saw the end. A server that
// reads the rest of a body before it refuses a request looks as if it was at work; it is
// given a moment.
func (p *pipeWatch) settled() (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var given bool
	var moment *time.Timer
	for !p.ended && (!p.reading || !p.listens || p.taken != p.sent || (p.active != p.bodies || p.due != nil && p.due()) && !given || p.owed != nil && p.owed()) {
		if moment == nil {
			moment = time.AfterFunc(time.Second, func() { p.note(func() { given = true }) })
			defer moment.Stop()
		}
		p.changed.Wait()
	}
	return p.ended
}

// over says whether the visitor saw the end.
func (p *pipeWatch) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// finished returns once no request is being answered.
func (p *pipeWatch) finished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.active > 0 {
		p.changed.Wait()
	}
}

// serverEnd is the server's end of a connection, whose visitor is at an address of
// its own.
type serverEnd struct {
	net.Conn
	watch *pipeWatch
	addr  *net.TCPAddr
}

func (c *serverEnd) RemoteAddr() net.Addr { return c.addr }

func (c *serverEnd) Read(b []byte) (int, error) {
	c.watch.note(func() { c.watch.reading = true })
	n, err := c.Conn.Read(b)
	c.watch.note(func() { c.watch.reading = false; c.watch.taken += n })
	return n, err
}

type visitorEnd struct {
	net.Conn
	watch *pipeWatch
}

func (c *visitorEnd) Read(b []byte) (int, error) {
	c.watch.note(func() { c.watch.listens = true })
	n, err := c.Conn.Read(b)
	c.watch.note(func() { c.watch.listens = false })
	return n, err
}

func (c *visitorEnd) Write(b []byte) (int, error) {
	c.watch.note(func() { c.watch.sent += len(b) })
	return c.Conn.Write(b)
}

// watched counts the requests under way and those that wait for more of their body.
func (w *way) watched(h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		of := w.visits[r.RemoteAddr]
		w.mu.Unlock()
		if of == nil {
			panic(http.ErrAbortHandler) // the visitor has left, and is not looked at any more
		}
		of.note(func() { of.active++ })
		defer of.note(func() { of.active--; of.made++ })
		if r.Body != nil && r.Body != http.NoBody {
			// net/http asks afterwards what is left of the body that it gave.
			defer func(given io.ReadCloser) { r.Body = given }(r.Body)
			r.Body = &watchedBody{r.Body, of}
		}
		h.ServeHTTP(rw, r)
	})
}

type watchedBody struct {
	io.ReadCloser
	watch *pipeWatch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.note(func() { b.watch.bodies++ })
	defer func() { b.watch.note(func() { b.watch.bodies-- }) }()
	return b.ReadCloser.Read(p)
}

var visitors atomic.Uint32

// visitorConn is a visitor's connection; ended is called when nothing more comes on it.
func (w *way) dial(addr *net.TCPAddr, protocol string) (*tls.Conn, *pipeWatch) {
	near, far := net.Pipe()
	watch := newPipeWatch()
	w.mu.Lock()
	w.visits[addr.String()] = watch
	w.mu.Unlock()
	w.in <- &serverEnd{far, watch, addr}
	conf := w.conf.Clone()
	conf.NextProtos = []string{protocol}
	c := tls.Client(&visitorEnd{near, watch}, conf)
	if err := c.Handshake(); err != nil {
		panic(err) // a fuzz target may not use f
	}
	return c, watch
}

func (w *way) forget(addr *net.TCPAddr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.visits, addr.String())
}

// nextVisitor is an address nobody has had, so that no limit is reached by one.
func nextVisitor() *net.TCPAddr {
	n := visitors.Add(1)
	return &net.TCPAddr{IP: net.IPv4(10, byte(n>>16), byte(n>>8), byte(n)), Port: 40_000}
}

// came is what there was of one input.
type came struct {
	visitor []string // answers
	end     string   // of the connection
	app     []string // requests
	sure    []string // those of them that do not depend on who was faster
	hasty   bool     // some do
	// malformed says that the visitor sent a PRIORITY_UPDATE frame that makes no sense.
	malformed bool
	// late says that a header block was sent for a stream that had been reset, or may have been.
	late bool
}

// allowed are the differences that may be: at most 20, in each of which ours refuses what
// net/http does, or more; but one, which says so. alike has two outcomes that differ by it
// look alike.
var allowed = []struct {
	reason string
	alike  func(own, golang *came)
}{
	{"After a visitor's own goodbye, net/http says nothing more of what is wrong; we do.", func(own, golang *came) {
		n, m := len(golang.visitor)-1, len(own.visitor)-1
		if n < 0 || m < 0 || golang.visitor[n] != "goaway NO_ERROR" || !strings.HasPrefix(own.visitor[m], "goaway ") {
			return
		}
		if m == 0 { // all that is told of a connection that ends for what is wrong with it
			own.visitor = golang.visitor
		}
		if n == m || m == 0 {
			own.visitor[len(own.visitor)-1], own.end = golang.visitor[n], golang.end
		}
	}},
	{"A malformed PRIORITY_UPDATE frame ends our connection (RFC 9218, section 7.1); the net/http of this Go does not know the frame.", func(own, golang *came) {
		if own.malformed && len(own.visitor) == 1 && (own.visitor[0] == "goaway FRAME_SIZE_ERROR" || own.visitor[0] == "goaway PROTOCOL_ERROR") {
			*own = *golang
		}
	}},
	{"A header block for a stream that the server reset ends net/http's connection once its reset is written. Ours goes on, as RFC 9113, section 5.1, has it: the block may have been on its way.", func(own, golang *came) {
		// What came behind the block may have ended ours, which then says so.
		said := len(own.visitor) > 0 && strings.HasPrefix(own.visitor[len(own.visitor)-1], "goaway ")
		if own.late && len(golang.visitor) == 1 && golang.visitor[0] == "goaway PROTOCOL_ERROR" && (own.end == "kept" || said) {
			*own = *golang
		}
	}},
}

// differs says in what two outcomes differ, or nothing.
func (o came) differs(other came) string {
	for _, a := range allowed {
		a.alike(&o, &other)
	}
	same := slices.Equal(o.app, other.app)
	if o.hasty || other.hasty {
		same = (!o.hasty || has(other.app, o.sure)) && (!other.hasty || has(o.app, other.sure))
	}
	switch {
	case !same:
		return fmt.Sprintf("the app received\n  own: %q\n  go:  %q", o.app, other.app)
	case !slices.Equal(o.visitor, other.visitor):
		return fmt.Sprintf("the visitor got\n  own: %q\n  go:  %q", o.visitor, other.visitor)
	case o.end != other.end:
		return fmt.Sprintf("the connection: own: %s, go: %s", o.end, other.end)
	}
	return ""
}

// has says whether all of some are there, each as often.
func has(all, some []string) bool {
	all = slices.Clone(all)
	for _, s := range some {
		i := slices.Index(all, s)
		if i < 0 {
			return false
		}
		all = slices.Delete(all, i, i+1)
	}
	return true
}

// compare has both ways take an input. What differs only now and then is no
// difference: a visitor who leaves early meets either way at some moment. So does one who
// believes that all is settled: net/http looks for more for a moment once a body has
// ended, though another request came with that. Of such inputs one in four differs.
func (w *ways) compare(exchange func(*way, *net.TCPAddr) came) (difference string) {
	began, fuzzes := time.Now(), flag.Lookup("test.fuzz").Value.String() != ""
	for range 100 {
		addr := nextVisitor()
		if difference = exchange(w.own, addr).differs(exchange(w.golang, addr)); difference == "" {
			break
		}
		if fuzzes && time.Since(began) > 4*time.Second { // after a hundred the fuzzer would say no more than that it hung
			break
		}
	}
	if fault := w.own.broken.Swap(""); fault != nil && fault != "" {
		return fmt.Sprintf("a fault of ours: %v", fault)
	}
	return difference
}

// samePort leaves out what differs because the ways' apps have ports of their own.
func (w *way) samePort(all []string) []string {
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], strconv.Itoa(w.app.port), "PORT")
	}
	return all
}

// recorded are inputs that were recorded, a string of Go's in each line of the files
// testdata/ways/protocol-*: of Chromium, curl and Node.js (programs), of the quick attack
// (attacks), of h2spec. HOST and COOKIE stand for what they were sent.
func recorded(t testing.TB, protocol string) (all []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/ways/" + protocol + "-*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no inputs are recorded: ", err)
	}
	for _, file := range files {
		text := programs.Got(os.ReadFile(file))(t)
		for line := range strings.Lines(string(text)) {
			input, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
			if err != nil {
				t.Fatalf("%s: %q: %v", file, line, err)
			}
			all = append(all, input)
		}
	}
	return all
}

// ownAddresses are values of fields in which a visitor names the app's address, or nearly.
var ownAddresses = []string{"https://HOST/page?q=1", "https://HOST", "https://HOST:443/\\x", "https://HOST@elsewhere.test/", "https://HOST.elsewhere.test/", "https://HOST:8080/", "http://HOST/", "/relative"}

// unlike are the parts of our own answers that are another each time.
func unlike(s string) string {
	for _, name := range []string{"state=", "code_challenge=", instance + "-n-"} {
		for at := 0; ; {
			i := strings.Index(s[at:], name)
			if i < 0 {
				break
			}
			at += i + len(name)
			end := strings.IndexAny(s[at:], "&;|\" \n")
			if end < 0 {
				end = len(s) - at
			}
			s = s[:at] + "*" + s[at+end:]
		}
	}
	return s
}

// collect collects what comes on a connection until it ends, which is due after an answer
// that says so.
func collect(c io.Reader, watch *pipeWatch) (got *bytes.Buffer, ended chan struct{}) {
	got, ended = &bytes.Buffer{}, make(chan struct{})
	watch.note(func() {
		watch.due = func() bool { return bytes.Contains(got.Bytes(), []byte("\r\nConnection: close\r\n")) }
	})
	go func() {
		defer close(ended)
		_, _ = io.Copy(noting{got, watch}, c) // however it ends
		watch.note(func() { watch.ended = true })
	}()
	return got, ended
}

// noting is written to with the watch locked.
type noting struct {
	io.Writer
	watch *pipeWatch
}

func (w noting) Write(b []byte) (n int, err error) {
	w.watch.note(func() { n, err = w.Writer.Write(b) })
	return n, err
}

// patient is for tests that would hang: no came is judged by it.
const patient = time.Minute

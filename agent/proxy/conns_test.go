package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"porchlight/agent/proxy"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// streets is a listener whose visitors come from addresses the test chooses.
type streets struct {
	t     testing.TB
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

type fromStreet struct {
	net.Conn
	from net.Addr
}

func (c fromStreet) RemoteAddr() net.Addr { return c.from }

// streets has the rig's proxy serve a listener of that kind too.
func (r *rig) streets() *streets {
	r.t.Helper()
	s := &streets{t: r.t, conns: make(chan net.Conn), done: make(chan struct{})}
	r.serve(s)
	return s
}

// serve has the rig's proxy take visitors from another listener too.
func (r *rig) serve(ln net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(ctx, ln) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Error(err)
		}
	})
}

func (s *streets) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *streets) Close() error   { s.once.Do(func() { close(s.done) }); return nil }
func (s *streets) Addr() net.Addr { return &net.TCPAddr{} }

// from returns where to dial to come from an address.
func (s *streets) from(ip string) (addr string) {
	s.t.Helper()
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(s.t)
	var wg sync.WaitGroup
	s.t.Cleanup(func() { ln.Close(); wg.Wait() })
	from := &net.TCPAddr{IP: net.ParseIP(ip), Port: 1234}
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			select {
			case s.conns <- fromStreet{c, from}:
			case <-s.done:
				c.Close()
			}
		}
	})
	return ln.Addr().String()
}

// idle opens an HTTP/2 connection and sends what comes before a request; nil when
// it is refused.
func (r *rig) idle(addr string) *tls.Conn {
	r.t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: r.roots, ServerName: sni, NextProtos: []string{"h2"}}}
	conn, err := dialer.DialContext(r.t.Context(), "tcp", addr)
	if err != nil {
		return nil
	}
	r.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil
	}
	if err := http2.NewFramer(conn, nil).WriteSettings(); err != nil {
		return nil
	}
	if _, err := http2.NewFramer(nil, conn).ReadFrame(); err != nil { // the server's settings
		return nil
	}
	return conn.(*tls.Conn)
}

// at is a browser like b whose connections come from elsewhere.
func (b *browser) at(addr string, http2 bool) *browser {
	c := b.r.browser(http2)
	c.cookies = b.cookies
	c.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return c
}

// visit loads a page of notes; reused says that it came on a connection the
// browser had open.
func (b *browser) visit() (reused bool, err error) {
	ctx := httptrace.WithClientTrace(b.r.t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	req := b.request("GET", origin+"/", nil, "Sec-Fetch-Mode", "navigate").WithContext(ctx)
	b.addCookies(req)
	res, err := b.client.Do(req)
	if err != nil {
		return reused, err
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "fine" {
		return reused, fmt.Errorf("%s: %q (%v)", res.Status, body, err)
	}
	return reused, nil
}

func fine(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }

// Two sources without an account that hold as many connections as they get do not
// keep the owner out, and neither do many that fill all places; whoever was let in
// keeps their connection.
func TestConnectionsLeaveRoom(t *testing.T) {
	t.Parallel()
	const files, most = 1024, 1024 / 16 * 9
	r := newRig(t, func(c *proxy.Config) { c.Files, c.DecideWithin = files, time.Hour })
	r.app("notes", fine)
	s := r.streets()
	signedIn := r.signedIn("notes", ownerID, true)
	early := signedIn.at(s.from("192.0.2.1"), true)
	programs.Got(early.visit())(t)
	owner := s.from("192.0.2.2")
	sixOfSix := func(when string) {
		t.Helper()
		for i := range 6 {
			if _, err := signedIn.at(owner, i%2 == 0).visit(); err != nil {
				t.Errorf("%s, the owner's request %d: %v", when, i, err)
			}
		}
	}

	held := 0
	for _, street := range []string{"198.51.100.1", "2001:db8::1"} {
		addr, mine := s.from(street), 0
		for range 300 {
			if r.idle(addr) == nil {
				break
			}
			mine++
		}
		if mine < 32 || mine > most/2 {
			t.Errorf("%s holds %d connections, want a share of %d", street, mine, most)
		}
		held += mine
	}
	if held > most*2/3 {
		t.Errorf("two sources hold %d of %d connections", held, most)
	}
	if r.idle(s.from("2001:db8::2")) != nil {
		t.Error("another address of the same /64 is another source")
	}
	sixOfSix("beside two sources")

	for street := range 12 {
		addr := s.from(fmt.Sprintf("203.0.113.%d", street))
		for range 32 {
			if r.idle(addr) == nil {
				t.Fatalf("source %d gets less than 32 connections", street)
			}
		}
	}
	sixOfSix("with all places taken")
	if reused, err := early.visit(); err != nil || !reused {
		t.Errorf("who was let in lost their connection: %v", err)
	}
}

// Where everybody who is connected is signed in, nobody loses their place: the next
// one waits outside.
func TestConnectionsFullOfVisitors(t *testing.T) {
	t.Parallel()
	for files, most := range map[int]int{1: 64, 128: 128 / 16 * 9} {
		t.Run(fmt.Sprint(files, " files"), func(t *testing.T) {
			t.Parallel()
			fullOfVisitors(t, files, most)
		})
	}
}

func fullOfVisitors(t *testing.T, files, most int) {
	r := newRig(t, func(c *proxy.Config) { c.Files = files })
	r.app("notes", fine)
	signedIn := r.signedIn("notes", ownerID, true)
	s := r.streets()
	var in []*browser
	for street := range 8 {
		addr := s.from(fmt.Sprintf("203.0.113.%d", street))
		for range most / 8 {
			b := signedIn.at(addr, true)
			programs.Got(b.visit())(t)
			in = append(in, b)
		}
	}
	next := signedIn.at(s.from("192.0.2.1"), true)
	if _, err := next.visit(); err == nil {
		t.Errorf("%d connections are open at a time, want %d", most+1, most)
	}
	for i, b := range in {
		if reused, err := b.visit(); err != nil || !reused {
			t.Errorf("connection %d did not stay: %v", i, err)
		}
	}
	in[0].client.CloseIdleConnections()
	within(t, "there is a place again", func() bool { _, err := next.visit(); return err == nil })
}

// insist loads a page of a server that waits a moment only for who is to be let in: on a
// busy machine that can be over before the request is there, and a browser comes again.
func (b *browser) insist(target string) (res *http.Response) {
	b.r.t.Helper()
	within(b.r.t, target+" is answered", func() (ok bool) {
		var err error
		if res, err = b.try(b.request("GET", target, nil, "Sec-Fetch-Mode", "navigate", "Accept", "text/html")); err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return res
}

// visited is insist on visit.
func (b *browser) visited() {
	b.r.t.Helper()
	within(b.r.t, "notes can be visited", func() bool { _, err := b.visit(); return err == nil })
}

// A connection on which nobody was let in ends; one on which somebody was stays.
func TestUndecidedConnectionEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *proxy.Config) { c.DecideWithin = 50 * time.Millisecond })
	r.app("notes", fine)
	stay := map[bool]*browser{}
	for _, http2 := range []bool{false, true} {
		b := r.browser(http2)
		b.insist(r.issue(b.insist(origin+"/").Header.Get("Location"), ownerID))
		b.visited()
		stay[http2] = b
	}

	var conn *tls.Conn
	within(t, "there is a connection", func() bool { conn = r.idle(r.addr); return conn != nil })
	framer := http2.NewFramer(nil, conn)
	var last http2.Frame
	for frame, err := framer.ReadFrame(); err == nil; frame, err = framer.ReadFrame() {
		last = frame
	}
	if bye, ok := last.(*http2.GoAwayFrame); !ok || bye.ErrCode != http2.ErrCodeNo {
		t.Errorf("the last frame is %v, want GOAWAY without an error", last)
	}

	within(t, "a visitor without a session is answered", func() bool {
		plain := r.raw(sni, "GET / HTTP/1.1\r\nHost: notes."+rootHost+"\r\nSec-Fetch-Mode: navigate\r\n\r\n")
		plain.SetDeadline(time.Now().Add(time.Minute))
		buf := bufio.NewReader(plain)
		res, err := http.ReadResponse(buf, nil)
		if err != nil {
			return false
		}
		res.Body.Close()
		if res.StatusCode != http.StatusSeeOther {
			t.Errorf("a visitor without a session: %s, want the way to sign in", res.Status)
		}
		if rest, err := io.ReadAll(buf); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q came after the answer (%v)", rest, err)
		}
		return true
	})

	for http2, b := range stay {
		if reused, err := b.visit(); err != nil || !reused {
			t.Errorf("HTTP/2 %v: the connection of who was let in did not stay: %v", http2, err)
		}
	}
}

// What is being answered when the time is up is answered.
func TestUndecidedConnectionAnswers(t *testing.T) {
	t.Parallel()
	var r *rig
	r = newRig(t, func(c *proxy.Config) {
		c.DecideWithin = 50 * time.Millisecond
		redeem := c.Redeem
		c.Redeem = func(ctx context.Context, in controlapi.Redeem) (controlapi.Visitor, error) {
			if later := r.idle(r.addr); later != nil { // its end tells that the time of this one is up
				io.Copy(io.Discard, later)
			}
			return redeem(ctx, in)
		}
	})
	r.app("notes", fine)
	b := r.browser(true)
	back := r.issue(b.insist(origin+"/").Header.Get("Location"), ownerID)
	if res := b.insist(back); res.StatusCode != http.StatusSeeOther || b.cookies[cookie] == "" {
		t.Errorf("signing in: %s, want a session", res.Status)
	}
	b.visited()
}

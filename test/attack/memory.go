//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// What strangers may have a program's memory grow by, in bytes, whatever they send.
const (
	agentMayGrow  = 64 << 20
	serverMayGrow = 128 << 20
)

// hoard is few bytes that may become many, of which the answers are never taken.
type hoard struct {
	what string
	send func(f *http2.Framer, e *encoder, host, path string)
}

const (
	crumb   = 4000 // bytes: one of them fills the table of HPACK
	streams = 250
)

// crumbs are requests with so many crumbs of a cookie, a byte each once the first has come.
func crumbs(n int) func(*http2.Framer, *encoder, string, string) {
	return func(f *http2.Framer, e *encoder, host, path string) {
		for i := range streams {
			fields := []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: host, Sensitive: true}, {Name: ":path", Value: path, Sensitive: true}}
			for range n {
				fields = append(fields, hpack.HeaderField{Name: "cookie", Value: strings.Repeat("x", crumb)})
			}
			writeHead(f, uint32(2*i+1), e.block(fields), true)
		}
	}
}

var hoards = []hoard{
	{"cookies of a megabyte", crumbs(257)},
	{"cookies of just less than may be", crumbs(15)},
	{"many small fields", func(f *http2.Framer, e *encoder, host, path string) {
		for i := range streams {
			fields := []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: host}, {Name: ":path", Value: path}}
			for j := range 190 {
				fields = append(fields, hpack.HeaderField{Name: fmt.Sprintf("x%d", j%100), Value: "y"})
			}
			writeHead(f, uint32(2*i+1), e.block(fields), true)
		}
	}},
	{"bodies of one byte", func(f *http2.Framer, e *encoder, host, path string) {
		for i := range streams {
			id := uint32(2*i + 1)
			writeHead(f, id, e.block([]hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: host}, {Name: ":path", Value: path}}), false)
			_ = f.WriteData(id, false, []byte("x"))
		}
	}},
	{"long fields that do not end", func(f *http2.Framer, e *encoder, host, path string) {
		block := e.block([]hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: "x", Value: strings.Repeat("x", 240<<10)}})
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:1<<10]})
		for at := 1 << 10; at+16<<10 < len(block); at += 16 << 10 {
			_ = f.WriteContinuation(1, false, block[at:at+16<<10])
		}
	}},
}

// hoarded is a program that strangers have keep what they send.
type hoarded struct {
	name    string
	host    string
	paths   []string // answered by the program itself
	connect func(ctx context.Context, i int) (*tls.Conn, error)
	judged  map[string]judged
	visit   func(ctx context.Context) error
}

type judged struct {
	pid    int
	before int64 // bytes
	most   int64
}

// attackMemory has strangers of several sources send little that may become much, to an
// agent, to one behind a relay, and to the sign-in host, while others visit. The memory of
// the processes is the judge.
func attackMemory(ctx context.Context, s *stage, t *tally) error {
	c, b, err := s.startWithNotes(ctx)
	if err != nil {
		return err
	}
	if b.cookie, err = c.ownersCookie(ctx, "notes", b.host); err != nil {
		return err
	}
	p, err := s.startPlane(ctx, s.dir+"/plane")
	if err != nil {
		return err
	}
	maya, err := p.newTenant(ctx, "maya")
	if err != nil {
		return err
	}
	auth, err := url.Parse(p.AuthURL)
	if err != nil {
		return err
	}
	door := &computer{roots: p.roots} // to connect by
	of := func(c *computer, host string) func(context.Context, int) (*tls.Conn, error) {
		return func(ctx context.Context, i int) (*tls.Conn, error) { return c.secureFrom(ctx, from(i), host, "h2") }
	}
	server := judged{pid: p.PID(), most: serverMayGrow}
	pages := []string{"/", "/.porchlight/style.css"}
	for _, at := range []*hoarded{
		{"an agent", b.host, pages, of(c, b.host), map[string]judged{"the agent": {pid: c.PID(), most: agentMayGrow}}, c.ownerVisits(b)},
		{"an agent behind a relay", maya.app.host, pages, of(maya.computer, maya.app.host),
			map[string]judged{"the agent": {pid: maya.PID(), most: agentMayGrow}, "the server": server}, maya.ownerVisits(maya.app)},
		{"the sign-in host", auth.Host, []string{"/", "/signin"}, of(door, auth.Host), map[string]judged{"the server": server}, door.strangerVisits(auth.Host)},
	} {
		if err := at.attack(ctx, s, t); err != nil {
			return err
		}
	}
	return nil
}

func (at *hoarded) attack(ctx context.Context, s *stage, t *tally) error {
	sources, conns, lasts := 8, 10, 8*time.Second // of a source
	if s.quick {
		sources, conns, lasts = 4, 6, 4*time.Second
	}
	if err := at.visit(ctx); err != nil { // what is needed from now on is there
		return fmt.Errorf("%s, before anything: %w", at.name, err)
	}
	for name, j := range at.judged {
		j.before = memory(j.pid)
		at.judged[name] = j
	}
	for i, h := range hoards {
		sent, visits, failed := at.hoard(ctx, h, at.paths[i%len(at.paths)], sources, conns, lasts)
		t.try(1)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Printf("   %s, %s: connections %d of %d sources, %d KiB sent, %d visits meanwhile", at.name, h.what, sources*conns, sources, sent>>10, visits)
		for name, j := range at.judged {
			now, most := statusOf(j.pid, "VmRSS"), peak(j.pid)
			fmt.Printf("; %s %d MiB before, %+d MiB at most, %+d MiB after", name, j.before>>20, (most-j.before)>>20, (now-j.before)>>20)
			switch {
			case now == 0:
				t.got("%s, %s: %s ended", at.name, h.what, name)
			case most-j.before > j.most:
				t.got("%s, %s: %s grew by %d MiB", at.name, h.what, name, (most-j.before)>>20)
			}
			memory(j.pid) // the highest begins anew
		}
		fmt.Println()
		if failed != nil || visits == 0 {
			t.got("%s, %s: of %d visits meanwhile one fails: %v", at.name, h.what, visits, failed)
		}
	}
	return nil
}

// hoard has every connection send what it may, and again when it was ended, for so long.
func (at *hoarded) hoard(ctx context.Context, h hoard, path string, sources, conns int, lasts time.Duration) (sent int64, visits int, failed error) {
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&out, nil)
	framer.AllowIllegalWrites = true
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) // into memory, like all of these
	h.send(framer, newEncoder(), at.host, path)
	during, end := context.WithTimeout(ctx, lasts)
	defer end()
	var total atomic.Int64
	var strangers sync.WaitGroup
	for i := range sources * conns {
		strangers.Go(func() {
			for during.Err() == nil {
				total.Add(at.send(during, out.Bytes(), i%sources))
			}
		})
	}
	for during.Err() == nil && failed == nil {
		if failed = at.visit(ctx); failed == nil {
			visits++
		}
	}
	strangers.Wait()
	return total.Load(), visits, failed
}

// send is one stranger's connection, to its end or that of the attack; how much was sent.
func (at *hoarded) send(ctx context.Context, all []byte, source int) int64 {
	conn, err := at.connect(ctx, 10+source) // 127.0.0.2 is whoever visits
	if err != nil {
		return 0 // refused, which is well
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var reads sync.WaitGroup
	reads.Go(func() { _, _ = io.Copy(io.Discard, conn) }) // until it is closed
	n, _ := conn.Write(all)                               // it may be closed already
	reads.Wait()
	return int64(n)
}

// ownerVisits is a visit of the owner on a connection of its own.
func (c *computer) ownerVisits(b *backend) func(context.Context) error {
	return c.visits(b.host, "GET /owner HTTP/1.1\r\nHost: "+b.host+"\r\nCookie: "+b.cookie+"\r\nConnection: close\r\n\r\n")
}

// strangerVisits is somebody who opens the page of signing in.
func (c *computer) strangerVisits(host string) func(context.Context) error {
	return c.visits(host, "GET /signin HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
}

func (c *computer) visits(host, request string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := c.exchange(ctx, host, request)
		if err == nil && (len(got) != 1 || got[0].status != http.StatusOK) {
			err = fmt.Errorf("%.200v", got)
		}
		return err
	}
}

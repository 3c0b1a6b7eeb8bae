package http2_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/http2"
	"porchlight/agent/proxy/limits"
	"porchlight/test/programs"
)

// Weakness: a crumb of a cookie that is in HPACK's table comes in one byte, and crumbs are
// joined; with a window of 0 every answer waits.
// Attack: 250 requests, each of crumbs that come to a megabyte, or to just less than what
// may be, whose answers nobody takes.
// Checked: what the connection keeps of them is little.
func TestCrumbsTakeNoMemory(t *testing.T) { // alone, for it measures the memory of all
	const crumb = 4000
	for _, c := range []struct {
		what         string
		crumbs, most int
		body         bool // of one byte
	}{
		{"beyond what may be", 257, 3 << 20, false},
		{"within", 15, 3 << 20, false},
		{"a body", 1, 3 << 20, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			came := make(chan struct{}, limits.Streams)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.(interface{ DropHead() }).DropHead()
				fmt.Fprint(w, "an answer of ours")
				came <- struct{}{}
			})
			ours, theirs := programs.Connected(t)
			defer ours.Close()
			stop := serve(t, own, theirs, h, func(c *http2.Config) { c.TooLong = func(http.Header, int, int, int) {} })
			defer stop()
			v := visit(t, ours, false, frames.Setting{ID: frames.SettingInitialWindowSize, Val: 0})
			before := inUse()
			start := bytes.Clone(v.encode(":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/", "cookie", strings.Repeat("x", crumb)))
			again := append(bytes.Clone(v.encode(":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/")), bytes.Repeat([]byte{0xbe}, c.crumbs)...)
			for i := range limits.Streams {
				block := again
				if i == 0 {
					block = append(start, bytes.Repeat([]byte{0xbe}, c.crumbs-1)...)
				}
				v.WriteHeaders(frames.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block, EndStream: !c.body, EndHeaders: true})
				if c.body {
					v.WriteData(uint32(2*i+1), false, []byte("x"))
				}
			}
			for range limits.Streams {
				<-came
			}
			v.WritePing(false, [8]byte{1})
			v.next(func(f frames.Frame) bool { _, ok := f.(*frames.PingFrame); return ok })
			if kept := inUse() - before; kept > int64(c.most) {
				t.Errorf("%d requests keep %d KiB", limits.Streams, kept>>10)
			}
		})
	}
}

// Weakness: nothing counted trailers, of a connection up to 16 MiB.
// Checked: while an answer of ours waits none are kept, whether they were read, or came before
// it or after.
func TestTrailersTakeNoMemory(t *testing.T) { // alone, for it measures the memory of all
	const each, size, most = 12, 2000, 3 << 20 // and 250 of these, 6 MB
	for _, when := range []string{"read", "before", "after"} {
		came, answer := make(chan struct{}, limits.Streams), make(chan struct{})
		ours, theirs := programs.Connected(t)
		stop := serve(t, own, theirs, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if when == "read" {
				io.Copy(io.Discard, r.Body)
				if n := len(r.Trailer["X-A"]); n != each {
					t.Errorf("%d trailers", n)
				}
			}
			<-answer
			w.(interface{ DropHead() }).DropHead()
			fmt.Fprint(w, "an answer of ours")
			came <- struct{}{}
		}))
		v := visit(t, ours, false, frames.Setting{ID: frames.SettingInitialWindowSize, Val: 0})
		ponged := func() {
			v.WritePing(false, [8]byte{1})
			v.next(func(f frames.Frame) bool { _, ok := f.(*frames.PingFrame); return ok })
		}
		answered := func() {
			close(answer)
			for range limits.Streams {
				<-came
			}
		}
		before := inUse()
		for i := range limits.Streams {
			v.ask(uint32(2*i+1), "POST", "/", false, "trailer", "x-a")
		}
		if when == "after" {
			answered()
		}
		for i := range limits.Streams {
			var trailers []string
			for n := range each {
				trailers = append(trailers, "x-a", fmt.Sprintf("%0*d", size, each*i+n))
			}
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: v.encode(trailers...), EndStream: true, EndHeaders: true})
		}
		ponged()
		if when != "after" {
			answered()
			ponged()
		}
		if kept := inUse() - before; kept > most {
			t.Errorf("%s: %d requests keep %d KiB", when, limits.Streams, kept>>10)
		}
		ours.Close()
		stop()
	}
}

// counted is a connection that counts what is held.
type counted struct {
	net.Conn
	mu        sync.Mutex
	now, most int // guarded by mu
	refuses   bool
}

func (c *counted) Take(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(c.most, c.now+n)
	if !c.refuses {
		c.now += n
	}
	return !c.refuses
}

func (c *counted) Give(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now -= n
}

// Checked: requests that wait hold no more than a connection may. The others are read once
// these are at an app; where they wait for the visitor, or there is no room, they are refused,
// and may be sent again. All is given back.
func TestHeldOfAConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		h       http.HandlerFunc
		refuses bool
		code    frames.ErrCode
		least   int
	}{
		{"answers of ours", func(w http.ResponseWriter, _ *http.Request) {
			w.(interface{ DropHead() }).DropHead()
			fmt.Fprint(w, "an answer of ours")
		}, false, frames.ErrCodeRefusedStream, limits.HeldPerConn - limits.HeldAnswer - 9<<10},
		{"at an app", func(w http.ResponseWriter, _ *http.Request) {
			w.(interface{ Admit() }).Admit()
			w.WriteHeader(http.StatusNoContent)
		}, false, 0, limits.HeldAnswer},
		{"no room", func(http.ResponseWriter, *http.Request) { t.Error("it came to the handler") }, true, frames.ErrCodeRefusedStream, limits.HeldAnswer},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				theirs, ours := net.Pipe()
				conn := &counted{Conn: address{theirs}, refuses: c.refuses}
				stop := serve(t, own, conn, c.h)
				v := visit(t, ours, false, frames.Setting{ID: frames.SettingInitialWindowSize, Val: 0})
				const asked = 200
				for i := range asked {
					v.ask(uint32(2*i+1), "GET", "/", true, "x", strings.Repeat("x", 8<<10))
				}
				for range asked {
					f := v.next(func(f frames.Frame) bool {
						_, reset := f.(*frames.RSTStreamFrame)
						return reset || f.Header().Flags.Has(frames.FlagHeadersEndStream)
					})
					if r, reset := f.(*frames.RSTStreamFrame); f == nil || reset != (c.code != 0) || reset && r.ErrCode != c.code && r.ErrCode != frames.ErrCodeCancel {
						t.Errorf("%v, %v", f, v.err)
						break
					}
				}
				synctest.Wait()
				conn.mu.Lock()
				if conn.now != 0 || conn.most > limits.HeldPerConn || conn.most < c.least {
					t.Errorf("%d bytes are held, %d were at most, of %d", conn.now, conn.most, limits.HeldPerConn)
				}
				conn.mu.Unlock()
				ours.Close()
				stop()
			})
		})
	}
}

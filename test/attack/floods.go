//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	mayGrow   = 96 << 20 // bytes an agent's memory may grow by during a flood
	floodFor  = 10 * time.Second
	flooders  = 4 // connections at a time
	ownerAsks = 6
)

// flood is frames that cost less to send than to take.
type flood struct {
	what string
	n    int // how often send is called on each connection, at most
	send func(f *http2.Framer, e *encoder, i int, b *backend)
}

func headOf(b *backend, more ...hpack.HeaderField) []hpack.HeaderField {
	return append([]hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: b.host}, {Name: ":path", Value: "/flood"}, {Name: "cookie", Value: b.cookie}}, more...)
}

// open begins the i-th request of a connection.
func open(f *http2.Framer, e *encoder, i int, fields []hpack.HeaderField, end bool) uint32 {
	id := uint32(2*i + 1)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: e.block(fields), EndHeaders: true, EndStream: end})
	return id
}

var floods = []flood{
	{"requests reset at once", 4000, func(f *http2.Framer, e *encoder, i int, b *backend) {
		_ = f.WriteRSTStream(open(f, e, i, headOf(b), true), http2.ErrCodeCancel)
	}},
	{"requests the server has to reset", 4000, func(f *http2.Framer, e *encoder, i int, b *backend) {
		_ = f.WriteWindowUpdate(open(f, e, i, headOf(b), true), 0)
	}},
	{"more requests than there may be", 2000, func(f *http2.Framer, e *encoder, i int, b *backend) { open(f, e, i, headOf(b), false) }},
	{"CONTINUATION without end", 2000, func(f *http2.Framer, e *encoder, i int, b *backend) {
		if i == 0 {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: e.block(headOf(b))})
		}
		_ = f.WriteContinuation(1, false, e.block([]hpack.HeaderField{{Name: "x", Value: strings.Repeat("x", 8<<10), Sensitive: true}}))
	}},
	{"empty CONTINUATION", 20000, func(f *http2.Framer, e *encoder, i int, b *backend) {
		if i == 0 {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: e.block(headOf(b))})
		}
		_ = f.WriteContinuation(1, false, nil)
	}},
	{"SETTINGS", 20000, func(f *http2.Framer, _ *encoder, i int, _ *backend) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)})
	}},
	{"SETTINGS that change the header table", 10000, func(f *http2.Framer, _ *encoder, i int, _ *backend) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(i%2) << 24})
	}},
	{"PING", 20000, func(f *http2.Framer, _ *encoder, i int, _ *backend) { _ = f.WritePing(false, [8]byte{byte(i)}) }},
	{"empty DATA", 20000, func(f *http2.Framer, e *encoder, i int, b *backend) {
		if i == 0 {
			fields := headOf(b, hpack.HeaderField{Name: "origin", Value: "https://" + b.host})
			fields[0].Value = "POST"
			open(f, e, 0, fields, false)
		}
		_ = f.WriteData(1, false, nil)
	}},
	{"DATA that is all padding", 4000, func(f *http2.Framer, e *encoder, i int, b *backend) {
		if i == 0 {
			fields := headOf(b, hpack.HeaderField{Name: "origin", Value: "https://" + b.host})
			fields[0].Value = "POST"
			open(f, e, 0, fields, false)
		}
		_ = f.WriteDataPadded(1, false, nil, make([]byte, 200))
	}},
	{"PRIORITY", 20000, func(f *http2.Framer, _ *encoder, i int, _ *backend) {
		_ = f.WritePriority(uint32(2*i+1), http2.PriorityParam{StreamDep: uint32(2*i + 3), Weight: 1})
	}},
	{"WINDOW_UPDATE", 20000, func(f *http2.Framer, _ *encoder, _ int, _ *backend) { _ = f.WriteWindowUpdate(0, 1) }},
	{"frames of unknown types", 20000, func(f *http2.Framer, _ *encoder, i int, _ *backend) {
		_ = f.WriteRawFrame(http2.FrameType(0xf0), 0, uint32(2*i+1), nil)
	}},
	{"a header bomb", 200, func(f *http2.Framer, e *encoder, i int, b *backend) {
		fields := headOf(b)
		for range 1000 {
			fields = append(fields, hpack.HeaderField{Name: "x-bomb", Value: strings.Repeat("x", 3900)}) // one byte each, once known
		}
		writeHead(f, uint32(2*i+1), e.block(fields), true)
	}},
	{"fields without a name", 500, func(f *http2.Framer, e *encoder, i int, b *backend) {
		open(f, e, i, append(headOf(b), make([]hpack.HeaderField, 200)...), true)
	}},
	{"answers nobody takes", 100, func(f *http2.Framer, e *encoder, i int, b *backend) {
		if i == 0 {
			_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		}
		open(f, e, i, headOf(b), true)
	}},
	{"GOAWAY, and requests after it", 2000, func(f *http2.Framer, e *encoder, i int, b *backend) {
		_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
		open(f, e, i, headOf(b), true)
	}},
}

// attackFloods floods an agent over HTTP/2 and from many connections, and holds
// its memory and whether others still get their answers.
func attackFloods(ctx context.Context, s *stage, t *tally) error {
	c, b, err := s.startWithNotes(ctx)
	if err != nil {
		return err
	}
	if b.cookie, err = c.ownersCookie(ctx, "notes", b.host); err != nil {
		return err
	}
	for _, fl := range floods {
		n := fl.n
		if s.quick {
			n /= 5
		}
		before, cpu := memory(c.PID()), cpuOf(c.PID())
		sent, err := c.flood(ctx, b, fl, n)
		if err != nil {
			return err
		}
		t.try(1)
		grown := peak(c.PID()) - before
		fmt.Printf("   %s: %d × connections %d, %d KiB were taken, memory %+d MiB, %s CPU\n", fl.what, n, flooders, sent>>10, grown>>20, cpuOf(c.PID())-cpu)
		if grown > mayGrow {
			t.got("%s: the agent grew by %d MiB", fl.what, grown>>20)
		}
		if err := c.ownerAsks(ctx, b, "after "+fl.what, ownerAsks, t); err != nil {
			return err
		}
	}
	return c.crowds(ctx, s, b, t)
}

// flood sends on a few connections until the agent closes them or enough is sent.
// What comes back is read, so that only the frames are the attack.
func (c *computer) flood(ctx context.Context, b *backend, fl flood, n int) (sent int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, floodFor)
	defer cancel()
	var total atomic.Int64
	err = atOnce(flooders, flooders, func(int) error {
		conn, err := c.secure(ctx, b.host, "h2")
		if err != nil {
			return fmt.Errorf("%s: %w", fl.what, err)
		}
		var reading sync.WaitGroup
		reading.Go(func() { untilEnd(conn) })
		defer reading.Wait()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		var out bytes.Buffer
		framer, e := http2.NewFramer(&out, nil), newEncoder()
		framer.AllowIllegalWrites = true
		out.WriteString(http2.ClientPreface)
		_ = framer.WriteSettings() // into memory
		for i := range n {
			fl.send(framer, e, i, b)
			if out.Len() > 16<<10 || i == n-1 {
				if i == n-1 {
					_ = framer.WritePing(false, lastPing)
				}
				if _, err := conn.Write(out.Bytes()); err != nil {
					conn.Close() // it closed: that is well
					return nil
				}
				total.Add(int64(out.Len()))
				out.Reset()
			}
		}
		return nil
	})
	return total.Load(), err
}

var lastPing = [8]byte{'t', 'h', 'e', ' ', 'e', 'n', 'd'}

// untilEnd reads frames until the agent has answered the last one, or closed, or
// the time for a flood is over.
func untilEnd(conn net.Conn) {
	defer conn.Close()
	framer := http2.NewFramer(nil, conn)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() && ping.Data == lastPing {
			return
		}
	}
}

// ownerAsks has the owner make requests, each on a connection of its own.
func (c *computer) ownerAsks(ctx context.Context, b *backend, when string, n int, t *tally) error {
	answered, other := 0, ""
	for range n {
		got, err := c.exchange(ctx, b.host, "GET /owner HTTP/1.1\r\nHost: "+b.host+"\r\nCookie: "+b.cookie+"\r\nConnection: close\r\n\r\n")
		if err == nil && len(got) == 1 && got[0].status == 200 {
			answered++
		} else {
			other = fmt.Sprintf("%.200v %v", got, err)
		}
	}
	if answered < n {
		t.got("%s the owner gets %d of %d answers, and: %s", when, answered, n, other)
	}
	return ctx.Err()
}

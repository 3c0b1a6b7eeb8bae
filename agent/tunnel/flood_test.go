package tunnel_test

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control/relay"
)

var floods = flag.Bool("floods", false, "run the floods at their full size, which take 15 seconds each")

// TestFloodOfHalfOpenConnections: 2,500 connections a second that say nothing, for
// 15 s and from ten addresses, while people visit: no visit fails. What it rests on
// is in the relay's TestVisitsPassAFloodOfSilence, without a clock.
func TestFloodOfHalfOpenConnections(t *testing.T) {
	if !*floods {
		t.Skip("run with -floods")
	}
	const perSecond, sources = 2500, 10
	w := start(t, options{relay: func(c *relay.Config) {
		c.Limits.Handshakes, c.Limits.HandshakesPerSource = 4096, 1024
	}})
	w.connected(true)
	ctx, stop := context.WithTimeout(t.Context(), 15*time.Second)
	defer stop()
	var wg sync.WaitGroup
	var opened atomic.Int64
	for i := range sources {
		wg.Go(func() { opened.Add(sayNothing(ctx, w.addr, fmt.Sprintf("127.0.0.%d", 10+i), perSecond/sources)) })
	}
	var visits, failed int
	for ctx.Err() == nil {
		visits++
		if err := w.visitOnce("127.0.0.2"); err != nil {
			failed++
			t.Errorf("visit %d: %v", visits, err)
		}
		time.Sleep(40 * time.Millisecond)
	}
	wg.Wait()
	t.Logf("%d half-open connections; %d visits, %d failed; %+v", opened.Load(), visits, failed, w.relay.Stats())
}

// sayNothing opens so many connections a second until ctx ends, and keeps each
// until the relay closes it.
func sayNothing(ctx context.Context, addr, source string, perSecond int) (opened int64) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: wait}
	pace := time.NewTicker(time.Second / time.Duration(perSecond))
	defer pace.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return opened
		case <-pace.C:
		}
		conn, err := dialer.Dial("tcp", addr)
		if err != nil {
			continue
		}
		opened++
		_, _ = conn.Write([]byte{0x16}) // or the kernel keeps it to itself
		wg.Go(func() {
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(wait))
			_, _ = conn.Read(make([]byte, 1))
		})
	}
}

// visitOnce comes, says something, and goes.
func (w *world) visitOnce(source string) error {
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: wait}).Dial("tcp", w.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(wait))
	return echo(tls.Client(conn, visitorConfig("maya.localhost")), []byte("good evening"))
}

// TestFloodOfIdleVisits: two addresses open 2,400 visits and leave them open; the
// owner, from a third that was never seen, comes in six of six times.
func TestFloodOfIdleVisits(t *testing.T) {
	if !*floods {
		t.Skip("run with -floods")
	}
	const idle, workers = 2400, 16
	w := start(t, options{})
	w.connected(true)
	var mu sync.Mutex
	var held []net.Conn
	var refused atomic.Int64
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(10+k%2))}, Timeout: wait}
			for range idle / workers {
				conn, err := dialer.Dial("tcp", w.addr)
				if err == nil {
					_ = conn.SetDeadline(time.Now().Add(3 * wait))
					err = tls.Client(conn, visitorConfig("maya.localhost")).Handshake()
				}
				if err != nil {
					refused.Add(1)
				}
				if conn != nil {
					mu.Lock()
					held = append(held, conn)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i := range 6 {
		if err := w.visitOnce("127.0.0.3"); err != nil {
			t.Errorf("the owner's visit %d: %v", i+1, err)
		}
	}
	t.Logf("%d idle visits tried, %d refused; %+v", idle, refused.Load(), w.relay.Stats())
	for _, conn := range held {
		_ = conn.Close()
	}
}

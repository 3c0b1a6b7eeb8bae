//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/test/programs"
)

// crowds are many connections at once: idle ones, half-open ones, and those of
// one person at an app that never answers; and a control plane without files.
func (c *computer) crowds(ctx context.Context, s *stage, b *backend, t *tally) error {
	for _, crowd := range []func(context.Context, *stage, *backend, *tally) error{c.idleCrowd, halfOpenCrowd, c.onePerson, atFileLimit} {
		if err := crowd(ctx, s, b, t); err != nil {
			return err
		}
	}
	return nil
}

// share is a number of the full form, cut to what files allow, or in the quick
// form a part of it.
func (s *stage) share(full, quick int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && int(limit.Cur)/2 < full {
		full = int(limit.Cur) / 2
		fmt.Printf("   (the file limit allows %d of them)\n", full)
	}
	if s.quick {
		return min(full, quick)
	}
	return full
}

// from is the i-th of many sources.
func from(i int) *net.Dialer {
	return &net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(i/250), byte(2+i%250))}}
}

// held closes connections together.
type held struct {
	mu    sync.Mutex // protects conns
	conns []net.Conn
}

func (h *held) keep(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
}

func (h *held) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.Close()
	}
}

// idleCrowd is two sources with HTTP/2 connections on which nothing is asked.
func (c *computer) idleCrowd(ctx context.Context, s *stage, b *backend, t *tally) error {
	n := s.share(2400, 600)
	var all held
	defer all.close()
	var refused atomic.Int64
	_ = atOnce(n, 16, func(i int) error { // each may be refused
		conn, err := c.secureFrom(ctx, from(i%2), b.host, "h2")
		if err != nil {
			refused.Add(1)
			return ctx.Err()
		}
		all.keep(conn)
		_, _ = io.WriteString(conn, http2.ClientPreface) // it may be closed already
		_ = http2.NewFramer(conn, nil).WriteSettings()
		return nil
	})
	t.try(1)
	fmt.Printf("   idle HTTP/2 connections %d from 2 sources, of which %d were refused; the owner asks %d times\n", n, refused.Load(), ownerAsks)
	return c.ownerAsks(ctx, b, fmt.Sprintf("beside %d idle connections", n), ownerAsks, t)
}

// halfOpenCrowd connects to the door of a relay again and again and says nothing,
// while somebody visits a computer behind it.
func halfOpenCrowd(ctx context.Context, s *stage, _ *backend, t *tally) error {
	p, err := s.startPlane(ctx, s.dir+"/plane")
	if err != nil {
		return err
	}
	c, err := p.newTenant(ctx, "maya")
	if err != nil {
		return err
	}
	b := c.app
	const rate = 2500 // a second
	seconds := 15
	if s.quick {
		seconds = 2
	}
	most := s.share(rate*4, rate*4) // open at a time
	_, port, err := net.SplitHostPort(b.host)
	if err != nil {
		return err
	}
	crowd, end := context.WithCancel(ctx)
	defer end()
	var wg sync.WaitGroup
	var opened atomic.Int64
	places := make(chan struct{}, most)
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; i < rate*seconds && crowd.Err() == nil; {
			<-tick.C
			for range rate / 100 {
				i++
				select {
				case places <- struct{}{}:
				default:
					continue // as many as files allow
				}
				wg.Go(func() {
					defer func() { <-places }()
					conn, err := from(i%40).DialContext(crowd, "tcp", "127.0.0.1:"+port)
					if err != nil {
						return
					}
					defer conn.Close()
					opened.Add(1)
					defer context.AfterFunc(crowd, func() { conn.Close() })()
					conn.SetReadDeadline(time.Now().Add(4 * time.Second))
					_, _ = conn.Read(make([]byte, 1)) // until the door closes it
				})
			}
		}
	})
	visit, visits, failed := c.ownerVisits(b), 0, 0
	for stop := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(stop) && ctx.Err() == nil; visits++ {
		if visit(ctx) != nil {
			failed++
		}
	}
	end()
	wg.Wait()
	t.try(1)
	fmt.Printf("   half-open connections %d in %d s; %d visits beside them\n", opened.Load(), seconds, visits)
	if failed > 0 {
		t.got("%d of %d visits fail beside half-open connections", failed, visits)
	}
	return ctx.Err()
}

// onePerson has a member fill an app that never answers, with requests and with
// WebSockets, while the owner opens another app.
func (c *computer) onePerson(ctx context.Context, s *stage, b *backend, t *tally) error {
	requests, sockets := s.share(5000, 1000), s.share(500, 300)
	hanging, err := startHanging()
	if err != nil {
		return err
	}
	defer hanging.close()
	host, err := c.publish(ctx, "hanging", "Hanging", hanging.port)
	if err != nil {
		return err
	}
	browser, _, err := c.invite(ctx, memberEmail, "Hanging")
	if err != nil {
		return err
	}
	defer browser.Close()
	cookie, err := cookieOf(ctx, browser, host)
	if err != nil {
		return err
	}
	at := &backend{host: host, cookie: cookie}
	var all held
	defer all.close()
	const perConn = 250
	_ = atOnce(requests/perConn, 8, func(int) error { // each may be refused
		conn, err := c.secureFrom(ctx, from(0), host, "h2")
		if err != nil {
			return ctx.Err()
		}
		all.keep(conn)
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
		framer, e := http2.NewFramer(conn, nil), newEncoder()
		_, _ = io.WriteString(conn, http2.ClientPreface)
		_ = framer.WriteSettings()
		for i := range perConn {
			open(framer, e, i, headOf(at, hpack.HeaderField{Name: "x-hang", Value: "yes"}), true)
		}
		return nil
	})
	_ = atOnce(sockets, 8, func(int) error {
		conn, err := c.secureFrom(ctx, from(0), host, "http/1.1")
		if err != nil {
			return ctx.Err()
		}
		all.keep(conn)
		_, _ = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: "+host+"\r\nCookie: "+cookie+"\r\nOrigin: https://"+host+
			"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		return nil
	})
	t.try(1)
	fmt.Printf("   one person: requests %d + WebSockets %d at a hanging app, of which %d came to it\n", requests, sockets, hanging.came.Load())
	return c.ownerAsks(ctx, b, "beside one person's requests", 20, t)
}

// atFileLimit fills a control plane that may have few files open, and asks what
// the operator would.
func atFileLimit(ctx context.Context, s *stage, _ *backend, t *tally) error {
	const files, asks = 256, 3
	port, giveBack, err := programs.Port()
	if err != nil {
		return err
	}
	defer giveBack()
	metrics := fmt.Sprintf("127.0.0.1:%d", port)
	data := filepath.Join(s.dir, "limited")
	p, line, err := s.start(ctx, nil, "sh", "-c", fmt.Sprintf("ulimit -n %d; exec %q serve --data %q --domain localhost --listen 127.0.0.1:0 --metrics %s --log-level error --grace 1s",
		files, filepath.Join(s.bin, "porchlight-control"), data, metrics))
	if err != nil {
		return err
	}
	defer p.Stop()
	listen := line[strings.LastIndexByte(line, ' ')+1:]
	var all held
	defer all.close()
	for i := range 2 * files {
		conn, err := from(i).DialContext(ctx, "tcp", strings.TrimSpace(listen))
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return err
			}
			continue
		}
		all.keep(conn)
	}
	fmt.Printf("   a control plane with %d files and %d connections: /readyz, /metrics and commands, %d each\n", files, 2*files, asks)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for range asks {
		for _, path := range []string{"/readyz", "/metrics"} {
			resp, err := client.Get("http://" + metrics + path)
			t.try(1)
			if err != nil {
				t.got("at the file limit %s: %v", path, err)
				continue
			}
			resp.Body.Close()
		}
		var accounts []struct{ Email string }
		t.try(1)
		if err := s.rig(0).Run(&accounts, "porchlight-control", "account", "list", "--data", data); err != nil {
			t.got("at the file limit, account list: %v", err)
		}
	}
	return ctx.Err()
}

//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/filelimit"
)

// fullAgent is an agent that may open few files, and visitors who take what they may of
// them: connections on which somebody is let in and then asks for nothing, and requests
// at an app that never answers.
type fullAgent struct {
	*tenant
	t       *tally
	road    *road
	files   int
	hanging *hanging
	member  agentapi.Person
	at      [2]*backend // the hanging app, for the owner and for the member

	mu    sync.Mutex
	quiet []*quietVisitor // guarded by mu
}

// quietVisitor is the connection of one who was let in and asks for nothing.
type quietVisitor struct {
	*tls.Conn
	r *bufio.Reader
}

// attackFiles has visitors of one computer take all the files they may: first every
// place for a connection, beside strangers, then every request as well. Each time those
// who are there are looked at, programs of the computer, the owner's click, a new control
// connection to the relay, and whoever comes next.
func attackFiles(ctx context.Context, s *stage, t *tally) error {
	f := &fullAgent{t: t, files: min(2048, filelimit.Limit()/4)}
	defer f.close()
	if err := f.start(ctx, s); err != nil {
		return err
	}
	fmt.Printf("   an agent with %d files: places %d, requests %d\n", f.files, f.places(), f.requests())
	busy, err := f.busy(ctx)
	if err != nil {
		return err
	}
	if err := f.fillPlaces(ctx, len(busy)); err != nil {
		return err
	}
	if err := f.goesOn(ctx, "with all places taken", http.StatusOK); err != nil {
		return err
	}
	if err := f.nextComes(ctx); err != nil {
		return err
	}
	end, err := f.fillRequests(ctx, busy)
	defer end()
	if err != nil {
		return err
	}
	if err := f.goesOn(ctx, "with all requests taken, too", http.StatusServiceUnavailable); err != nil {
		return err
	}
	if _, err := f.owner.Pause(ctx, "hanging"); err != nil {
		t.got("with everything taken the owner cannot pause an app: %v", err)
	}
	t.try(1)
	f.eventually(ctx, "after the app is paused those who are there are answered again", func() error { return f.ask(0, http.StatusOK) })
	if strings.Contains(f.Stderr(), "too many open files") {
		t.got("the agent was out of files: %.500s", f.Stderr())
	}
	t.try(1)
	return ctx.Err()
}

// places and requests are what the documentation says of the files.
func (f *fullAgent) places() int   { return f.files * 9 / 16 }
func (f *fullAgent) requests() int { return f.files / 4 }

func (f *fullAgent) start(ctx context.Context, s *stage) (err error) {
	if f.road, err = startRoad(); err != nil {
		return err
	}
	p, err := s.startPlane(ctx, s.dir+"/plane", "--tunnel-address", f.road.ln.Addr().String(), "--limit-visitors-per-computer", fmt.Sprint(f.files))
	if err != nil {
		return err
	}
	f.road.open(p.Listens[0])
	s.agentFiles = f.files
	if f.tenant, err = p.newTenant(ctx, "maya"); err != nil {
		return err
	}
	f.mails = p.mails
	if f.hanging, err = startHanging(); err != nil {
		return err
	}
	host, err := f.publish(ctx, "hanging", "Hanging", f.hanging.port)
	if err != nil {
		return err
	}
	owners, err := f.ownersCookie(ctx, "hanging", host)
	if err != nil {
		return err
	}
	browser, member, err := f.invite(ctx, memberEmail, "Hanging")
	if err != nil {
		return err
	}
	defer browser.Close()
	cookie, err := cookieOf(ctx, browser, host)
	f.member, f.at = member, [2]*backend{{host: host, cookie: owners}, {host: host, cookie: cookie}}
	f.browser.Close() // it takes no place
	return err
}

func (f *fullAgent) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.quiet {
		r.Close()
	}
	if f.hanging != nil {
		f.hanging.close()
	}
	if f.road != nil {
		f.road.close()
	}
}

// busy opens two connections each for the owner and the member, and has each let in.
func (f *fullAgent) busy(ctx context.Context) (conns [4]*http.ClientConn, err error) {
	for i := range conns {
		at := f.at[i%2]
		over := http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return f.secureFrom(ctx, from(i), at.host, "h2")
		}}
		if conns[i], err = over.NewClientConn(ctx, "https", at.host); err != nil {
			return conns, err
		}
		res, err := conns[i].RoundTrip(at.request(ctx, "/hello"))
		if err != nil {
			return conns, err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return conns, fmt.Errorf("a visitor who may open the app gets %s", res.Status)
		}
	}
	return conns, nil
}

func (b *backend) request(ctx context.Context, path string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.host+path, nil)
	if err != nil {
		panic(err) // the host is one of ours
	}
	r.Header.Set("Cookie", b.cookie)
	return r
}

// come has the i-th visitor come, who is let in and then asks for nothing.
func (f *fullAgent) come(ctx context.Context, i int) error {
	conn, err := f.secureFrom(ctx, from(i), f.app.host, "http/1.1")
	if err != nil {
		return err
	}
	r := &quietVisitor{conn, bufio.NewReaderSize(conn, 512)}
	if err := r.ask(f.app, http.StatusOK); err != nil {
		conn.Close()
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.quiet = append(f.quiet, r)
	return nil
}

func (r *quietVisitor) ask(b *backend, want int) error {
	_ = r.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(r, "GET /hello HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", b.host, b.cookie); err != nil {
		return err
	}
	res, err := http.ReadResponse(r.r, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != want || want == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "" {
		return fmt.Errorf("HTTP %d, want %d", res.StatusCode, want)
	}
	return nil
}

// ask has one who is there ask again.
func (f *fullAgent) ask(i, want int) error {
	f.mu.Lock()
	r := f.quiet[i]
	f.mu.Unlock()
	return r.ask(f.app, want)
}

// fillPlaces has strangers take a quarter of the places, and then visitors who are let in
// all that the busy ones leave: strangers give way, and once all are let in the next one
// is turned away.
func (f *fullAgent) fillPlaces(ctx context.Context, busy int) error {
	var strangers held
	defer strangers.close()
	if err := atOnce(f.places()/4, 16, func(i int) error {
		conn, err := f.secureFrom(ctx, from(1000+i), f.app.host, "http/1.1")
		if err == nil {
			strangers.keep(conn)
		}
		return err
	}); err != nil {
		return fmt.Errorf("a stranger finds no place: %w", err)
	}
	const leaving = 16 // browsers that are about to
	n := f.places() - busy - leaving
	f.t.try(1)
	if err := atOnce(n, 16, func(i int) error { return f.come(ctx, i) }); err != nil {
		f.t.got("beside strangers a visitor finds no place of %d: %v", n, err)
	}
	f.t.try(1)
	f.eventually(ctx, "visitors have every place, and the next one is turned away", func() error {
		err := error(nil)
		for err == nil && len(f.quiet)+busy <= f.places() {
			err = f.come(ctx, len(f.quiet))
		}
		if there := len(f.quiet) + busy; there != f.places() || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%d visitors have one of %d places, and the next one: %v", there, f.places(), err)
		}
		return nil
	})
	fmt.Printf("   visitors %d are quiet and %d busy, after strangers %d; files %d of %d are open\n", len(f.quiet), busy, f.places()/4, f.opened(), f.files)
	return ctx.Err()
}

// fillRequests has two people ask the hanging app for all there may be.
func (f *fullAgent) fillRequests(ctx context.Context, busy [4]*http.ClientConn) (end func(), err error) {
	asking, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	end = func() { stop(); all.Wait() }
	for i, conn := range busy {
		for range f.requests() / len(busy) {
			all.Go(func() {
				if res, err := conn.RoundTrip(f.at[i%2].request(asking, "/hang")); err == nil {
					res.Body.Close()
				}
			})
		}
	}
	f.t.try(1)
	f.eventually(ctx, "two people have all requests", func() error {
		if n := int(f.hanging.came.Load()); n != f.requests() {
			return fmt.Errorf("%d requests came to the app, want %d", n, f.requests())
		}
		return nil
	})
	fmt.Printf("   requests %d hang; files %d of %d are open\n", f.hanging.came.Load(), f.opened(), f.files)
	return end, ctx.Err()
}

// goesOn looks at what must not depend on the files that visitors have. status is what
// those who are there get when they ask.
func (f *fullAgent) goesOn(ctx context.Context, when string, status int) error {
	const times = 20
	f.t.try(4)
	for i := range times {
		if err := f.ask(i, status); err != nil {
			f.t.got("%s one who is there asks: %v", when, err)
		}
		if _, err := agentapi.New(f.Running.API).Status(ctx); err != nil {
			f.t.got("%s a program asks: %v", when, err)
		}
		if _, err := f.owner.SetAccess(ctx, agentapi.AccessRequest{AccountID: f.member.AccountID, App: "Notes", Granted: i%2 == 0}); err != nil {
			f.t.got("%s the owner gives or withdraws an app: %v", when, err)
		}
	}
	before := f.road.cut()
	f.eventually(ctx, when+" a new control connection reaches the relay", func() error {
		if f.road.controls() == before {
			return errors.New("none came")
		}
		status, err := f.computer.open.Status(ctx)
		if err == nil && !status.Connected {
			err = errors.New("not connected")
		}
		return err
	})
	return ctx.Err()
}

// nextComes looks that there is a place when somebody has left, by a data connection of
// the new tunnel.
func (f *fullAgent) nextComes(ctx context.Context) error {
	f.mu.Lock()
	last := len(f.quiet) - 1
	f.quiet[last].Close()
	f.quiet = slices.Delete(f.quiet, last, last+1)
	f.mu.Unlock()
	f.t.try(1)
	f.eventually(ctx, "the next visitor has the place of one who left", func() error { return f.come(ctx, last) })
	return ctx.Err()
}

// eventually notes what does not become so.
func (f *fullAgent) eventually(ctx context.Context, what string, so func() error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := so()
		if err == nil || ctx.Err() != nil {
			return
		}
		if time.Now().After(end) {
			f.t.got("never: %s: %v", what, err)
			return
		}
	}
}

// opened is how many files the agent has open.
func (f *fullAgent) opened() int {
	all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", f.PID())) // it may have ended
	return len(all)
}

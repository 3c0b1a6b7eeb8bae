//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"porchlight/agent/agentapi"
	"porchlight/test/visitor"
)

// guest is somebody whom an app is shared with until a date, with every way in that
// such a person can have.
type guest struct {
	*computer
	host    string
	id      string // account
	browser *visitor.Visitor
	remote  *remote
	refresh string
	ways    map[string][2]string // what opens the app: a header field by what it is
}

// datedProtocols are how the guest asks; each answers a status, 0 for a closed connection.
var datedProtocols = map[string]func(context.Context, *guest, [2]string) (int, error){
	"HTTP/1.1": func(ctx context.Context, g *guest, way [2]string) (int, error) {
		return status(g.exchange(ctx, g.host, g.get("/hello", way, "Connection: close\r\n")))
	},
	"WebSocket": func(ctx context.Context, g *guest, way [2]string) (int, error) {
		return status(g.provoke(ctx, g.host, g.get("/ws", way, upgrade(g.host))))
	},
	"HTTP/2": func(ctx context.Context, g *guest, way [2]string) (int, error) {
		got, err := g.stream(ctx, g.host, []hpack.HeaderField{
			{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: g.host}, {Name: ":path", Value: "/hello"},
			{Name: strings.ToLower(way[0]), Value: way[1]},
		}, nil)
		return got.status, err
	},
}

func (g *guest) get(path string, way [2]string, more string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + g.host + "\r\n" + way[0] + ": " + way[1] + "\r\n" + more + "\r\n"
}

func upgrade(host string) string {
	return "Origin: https://" + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
}

func status(got []answer, err error) (int, error) {
	if err != nil || len(got) == 0 {
		return 0, err
	}
	return got[0].status, nil
}

// lets says whether an answer let somebody in.
func lets(status int) bool { return status == http.StatusOK || status == http.StatusSwitchingProtocols }

// serveSockets is an app that answers, and whose WebSockets stay open.
func serveSockets() (port int, end func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})}
	go func() { _ = server.Serve(ln) }() // until it is closed
	return ln.Addr().(*net.TCPAddr).Port, func() { server.Close() }, nil
}

// attackDates uses access while its end comes and after: by a session, an access token
// and an app password, over HTTP/1.1, HTTP/2 and WebSockets, and by what is open.
func attackDates(ctx context.Context, s *stage, t *tally) error {
	port, end, err := serveSockets()
	if err != nil {
		return err
	}
	defer end()
	c, err := s.startComputer(ctx, s.dir+"/data")
	if err != nil {
		return err
	}
	g := &guest{computer: c}
	if g.host, err = c.publish(ctx, "notes", "Notes", port); err != nil {
		return err
	}
	var person agentapi.Person
	if g.browser, person, err = c.invite(ctx, memberEmail, "Notes"); err != nil {
		return err
	}
	defer g.browser.Close()
	g.id = person.AccountID
	if g.remote, err = c.newRemoteOf(ctx, s, "Pocket Notes", callback, memberEmail); err != nil {
		return err
	}
	defer g.remote.browser.Close()
	rounds, tries := 8, 12
	if s.quick {
		rounds, tries = 2, 6
	}
	fmt.Printf("   rounds %d × ways 3 × protocols %d × tries %d, + open WebSockets 3 a round, + new sign-in and new token\n", rounds, len(datedProtocols), tries)
	for range rounds {
		if err := g.round(ctx, tries, t); err != nil {
			return err
		}
	}
	return nil
}

// round gives the app until a moment from now, and goes on using it.
func (g *guest) round(ctx context.Context, tries int, t *tally) error {
	if _, err := g.give(ctx, agentapi.UntilNever); err != nil {
		return err
	}
	if err := g.prepare(ctx); err != nil {
		return err
	}
	var open []net.Conn
	for what, way := range g.ways {
		for name, ask := range datedProtocols {
			err := known(ctx, func() error {
				got, err := ask(ctx, g, way)
				if err == nil && !lets(got) {
					err = fmt.Errorf("HTTP %d", got)
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("before the end, %s over %s gets %w", what, name, err)
			}
		}
		conn, err := g.socket(ctx, way)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	until, err := g.give(ctx, "2s")
	if err != nil {
		return err
	}
	if err := g.hammer(ctx, until, tries, t); err != nil {
		return err
	}
	for _, conn := range open {
		conn.SetReadDeadline(time.Now().Add(patience))
		t.try(1)
		if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.got("a WebSocket that was open goes on after the end: %v", err)
		}
	}
	return g.comeBack(ctx, t)
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

func (g *guest) give(ctx context.Context, until string) (time.Time, error) {
	changed, err := g.owner.SetAccess(ctx, agentapi.AccessRequest{AccountID: g.id, App: "Notes", Granted: true, Until: until})
	return changed.Person.Until["Notes"], err
}

// prepare makes what opens the app: the end before took the app password.
func (g *guest) prepare(ctx context.Context) error {
	var cookie string
	err := known(ctx, func() (err error) { cookie, err = cookieOf(ctx, g.browser, g.host); return err })
	if err != nil {
		return err
	}
	if g.refresh == "" {
		granted, err := g.remote.granted(ctx)
		if err != nil {
			return err
		}
		g.refresh = granted.Refresh
	}
	_, got, err := g.remote.token(ctx, g.remote.refreshing(g.refresh))
	if err != nil || got.Access == "" {
		return fmt.Errorf("an honest refresh gets %q, %v", got.Error, err)
	}
	g.refresh = got.Refresh
	page, err := g.remote.browser.Open(ctx, g.remote.authURL+"/account/passwords")
	if err != nil {
		return err
	}
	fields := map[string]string{"name": "dates"}
	if _, first, several := strings.Cut(page.Body, `<option dir="auto" value="`); several {
		fields["app"] = first[:strings.IndexByte(first, '"')]
	}
	if page, err = g.remote.browser.Submit(ctx, page, "form", fields); err != nil {
		return err
	}
	_, rest, found := strings.Cut(page.Body, "plp_")
	if !found {
		return fmt.Errorf("no password was made: HTTP %d", page.Status)
	}
	password := "plp_" + rest[:strings.IndexByte(rest, '<')]
	g.ways = map[string][2]string{
		"a session":       {"Cookie", cookie},
		"an access token": {"Authorization", "Bearer " + got.Access},
		"an app password": {"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(memberEmail+":"+password))},
	}
	return nil
}

// known tries until the owner's yes, or a new app password, is known everywhere: the answer
// to an earlier sync may still be on its way.
func known(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// socket opens a WebSocket that is left alone.
func (g *guest) socket(ctx context.Context, way [2]string) (net.Conn, error) {
	conn, err := g.secure(ctx, g.host, "http/1.1")
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, g.get("/ws", way, upgrade(g.host))) // what comes back says whether
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("a WebSocket gets %d", resp.StatusCode)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	return conn, nil
}

// hammer asks by all ways at once, across the end and so many times after it. The
// control plane and the agent are of this computer, so its clock says what was after.
func (g *guest) hammer(ctx context.Context, until time.Time, tries int, t *tally) error {
	var wg sync.WaitGroup
	failed := make(chan error, len(g.ways)*len(datedProtocols))
	for what, way := range g.ways {
		for name, ask := range datedProtocols {
			wg.Go(func() {
				for after := 0; after < tries; {
					began := time.Now()
					got, err := ask(ctx, g, way)
					if err != nil {
						failed <- err
						return
					}
					if began.Before(until) {
						continue
					}
					after++
					t.try(1)
					if lets(got) {
						t.got("%s over %s opens the app %v after the end", what, name, began.Sub(until))
					}
				}
			})
		}
	}
	wg.Wait()
	close(failed)
	return <-failed
}

// comeBack signs in anew and asks for a new token, and is still not let in.
func (g *guest) comeBack(ctx context.Context, t *tally) error {
	page, err := g.browser.Open(ctx, "https://"+g.host+"/hello")
	if err != nil {
		return err
	}
	t.try(1)
	if page.Status == http.StatusOK {
		t.got("a browser that comes back is let in, at %s", page.URL)
	}
	_, got, err := g.remote.token(ctx, g.remote.refreshing(g.refresh))
	if err != nil || got.Access == "" {
		return fmt.Errorf("a refresh gets %q, %v", got.Error, err)
	}
	g.refresh = got.Refresh
	code, err := datedProtocols["HTTP/1.1"](ctx, g, [2]string{"Authorization", "Bearer " + got.Access})
	t.try(1)
	if err == nil && lets(code) {
		t.got("a new access token opens the app")
	}
	return err
}

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
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// lure is an app that is reached by TCP, and counts who comes.
type lure struct {
	on   *tenant
	host string
	port int
	came atomic.Int64
	good int64 // handshakes that were taken: as many come, if a little later
}

// newLure publishes one on a tenant's computer.
func (t *tenant) newLure(ctx context.Context, name string) (*lure, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	l := &lure{on: t, host: name + "." + t.account.Host, port: ln.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			l.came.Add(1)
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	if _, err := t.owner.PublishTCP(ctx, name, agentapi.PublishTCP{Label: "The " + name, LocalPort: l.port}); err != nil {
		return nil, err
	}
	_, err = t.owner.Approve(ctx, name)
	return l, err
}

// asked are ways to ask for something at a host; upgrade says that it asks as porchlight reach
// does.
func asked(host, target, fields string) string {
	return target + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n"
}

const upgrading = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: porchlight-tcp\r\n"

// attackReach asks for apps that are reached by TCP with all that opens web apps, for web apps
// with what opens those, for other ports and computers, and by halves: nothing but a token of
// porchlight reach for that very app gets a connection.
func attackReach(ctx context.Context, s *stage, t *tally) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := s.startPlane(ctx, s.dir+"/plane")
	if err != nil {
		return err
	}
	maya, err := c.newTenant(ctx, "maya")
	if err != nil {
		return err
	}
	zoe, err := c.newTenant(ctx, "zoe")
	if err != nil {
		return err
	}
	var lures []*lure
	for _, at := range []struct {
		on   *tenant
		name string
	}{{maya, "db"}, {maya, "ssh"}, {zoe, "db"}} {
		l, err := at.on.newLure(ctx, at.name)
		if err != nil {
			return err
		}
		lures = append(lures, l)
	}
	db := lures[0]
	r := &remote{authURL: c.AuthURL, id: controlapi.ReachClient, back: "http://127.0.0.1:9/", browser: maya.browser}
	got, err := r.grantedFor(ctx, "https://"+db.host)
	if err != nil {
		return fmt.Errorf("porchlight reach is not let in: %w", err)
	}
	if status, err := db.reach(ctx, db.host, "GET /", "Authorization: Bearer "+got.Access+"\r\n"); err != nil || status != http.StatusSwitchingProtocols || db.counted() != 1 {
		return fmt.Errorf("the honest way gets %d, %v, and %d came", status, err, db.counted())
	}
	if err := reachAuthorize(ctx, r, maya, zoe, lures, t); err != nil {
		return err
	}
	credentials, err := maya.opens(ctx, c, got)
	if err != nil {
		return err
	}
	if err := reachWrongly(ctx, db, lures, credentials, got.Access, t); err != nil {
		return err
	}
	if err := reachHalf(ctx, db, got.Access, t); err != nil {
		return err
	}
	return reachRevoked(ctx, r, db, got, t)
}

// reach is the status of what was asked of an app; 0 for none.
func (l *lure) reach(ctx context.Context, host, target, fields string) (int, error) {
	return l.ask(ctx, asked(host, target, upgrading+fields))
}

// ask is peek at the app, and counts what was taken.
func (l *lure) ask(ctx context.Context, request string) (int, error) {
	status, err := l.on.peek(ctx, l.host, request)
	if status == http.StatusSwitchingProtocols {
		l.good++
	}
	return status, err
}

// counted is how many came, once all have that were taken.
func (l *lure) counted() int64 {
	for end := time.Now().Add(programs.Patience); l.came.Load() < l.good && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return l.came.Load()
}

// peek is the status of the first answer to some bytes, and does not wait for the rest; 0
// where nothing comes.
func (c *computer) peek(ctx context.Context, host, request string) (status int, err error) {
	conn, err := c.secure(ctx, host, "http/1.1")
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(pause))
	_, _ = io.WriteString(conn, request)
	line, _ := bufio.NewReader(conn).ReadString('\n')
	_, _ = fmt.Sscanf(line, "HTTP/1.1 %d", &status)
	return status, nil
}

// opens is what opens web apps to maya, by what it is.
func (m *tenant) opens(ctx context.Context, c *plane, reach tokens) (map[string]string, error) {
	made, err := m.owner.MakePassword(ctx, agentapi.PasswordRequest{App: "notes", Name: "attacked"})
	if err != nil {
		return nil, err
	}
	var client struct{ ClientID, ClientSecret string }
	if err := c.Run(&client, "client", "add", "--name", "Assistant", "--redirect-uri", callback); err != nil {
		return nil, err
	}
	other := &remote{authURL: c.AuthURL, id: client.ClientID, secret: client.ClientSecret, back: callback, browser: m.browser}
	all, err := other.granted(ctx)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(reach.Access, ".")
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(m.email+":"+made.Password))
	return map[string]string{
		"nothing": "", "the owner's cookie": "Cookie: " + m.app.cookie + "\r\n", "a password": "Authorization: " + basic + "\r\n",
		"a key": "X-Porchlight-Key: " + made.Password + "\r\n", "a password as a token": "Authorization: Bearer " + made.Password + "\r\n",
		"another client's token": "Authorization: Bearer " + all.Access + "\r\n", "its refresh token": "Authorization: Bearer " + all.Refresh + "\r\n",
		"the refresh token":             "Authorization: Bearer " + reach.Refresh + "\r\n",
		"the token as Basic":            "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(m.email+":"+reach.Access)) + "\r\n",
		"the token as a cookie":         "Cookie: __Host-porchlight=" + reach.Access + "\r\n",
		"the token as a protocol":       "Sec-WebSocket-Protocol: bearer, " + reach.Access + "\r\n",
		"the token, cut":                "Authorization: Bearer " + reach.Access[:len(reach.Access)-8] + "\r\n",
		"the token, unsigned":           "Authorization: Bearer " + parts[0] + "." + parts[1] + ".\r\n",
		"the token twice":               "Authorization: Bearer " + reach.Access + "\r\nAuthorization: Bearer " + reach.Access + "\r\n",
		"the token and a key":           "Authorization: Bearer " + reach.Access + "\r\nX-Porchlight-Key: " + made.Password + "\r\n",
		"the token from elsewhere":      "Authorization: Bearer " + reach.Access + "\r\nOrigin: https://evil.test\r\n",
		"the token of a proxy":          "Proxy-Authorization: Bearer " + reach.Access + "\r\n",
		"the token beside another's":    "Authorization: Bearer " + reach.Access + "\r\nAuthorization: Bearer " + all.Access + "\r\n",
		"another's, and the name of it": "Authorization: Bearer " + all.Access + "\r\nUser-Agent: porchlight-reach\r\nX-Client-Id: porchlight-reach\r\n",
	}, nil
}

// reachWrongly asks for connections with what opens none.
func reachWrongly(ctx context.Context, db *lure, lures []*lure, credentials map[string]string, token string, t *tally) error {
	before := make([]int64, len(lures))
	for i, l := range lures {
		before[i] = l.counted()
	}
	bearer := "Authorization: Bearer " + token + "\r\n"
	try := func(what string, l *lure, host, target, fields string) error {
		status, err := l.reach(ctx, host, target, fields)
		if err != nil {
			return err
		}
		t.try(1)
		if status == http.StatusSwitchingProtocols {
			t.got("%s gets a connection at %s", what, l.host)
		}
		return nil
	}
	for what, fields := range credentials {
		for _, l := range lures {
			if err := try(what, l, l.host, "GET /", fields); err != nil {
				return err
			}
		}
	}
	for _, l := range lures[1:] { // another app, another computer
		if err := try("the token of another app", l, l.host, "GET /", bearer); err != nil {
			return err
		}
	}
	for _, host := range []string{lures[1].host, lures[2].host, db.on.app.host, db.on.account.Host, "none." + db.on.account.Host, "127.0.0.1:" + strconv.Itoa(lures[1].port), "localhost:22", ""} {
		if err := try("the token, at Host "+host, db, host, "GET /", bearer); err != nil {
			return err
		}
	}
	for _, target := range []string{
		"CONNECT 127.0.0.1:22", "CONNECT " + lures[1].host, "GET http://127.0.0.1:" + strconv.Itoa(lures[1].port) + "/", "GET https://" + lures[1].host + "/", "GET //" + lures[1].host + "/", "POST /", "PUT /", "OPTIONS /", "HEAD /",
	} {
		if strings.HasPrefix(target, "GET //") {
			continue // a path like any other of this app
		}
		if err := try("the token, by "+target, db, db.host, target, bearer); err != nil {
			return err
		}
	}
	for i, l := range lures {
		if now := l.counted(); now != before[i] {
			t.got("%d connections came to %s", now-before[i], l.host)
		}
	}
	// Whatever a request says of a port, the app's own is the one.
	for _, more := range []string{"GET /?port=22", "GET /22", "GET /127.0.0.1:22", "GET //" + lures[1].host + "/", "GET /;port=" + strconv.Itoa(lures[1].port)} {
		fields := bearer + "X-Forwarded-Port: " + strconv.Itoa(lures[1].port) + "\r\nX-Forwarded-Host: " + lures[1].host + "\r\n"
		if _, err := db.reach(ctx, db.host, more, fields); err != nil {
			return err
		}
		t.try(1)
		if lures[1].counted() != before[1] || lures[2].counted() != before[2] {
			t.got("%s leads to another app", more)
		}
	}
	// HTTP at an app that speaks none.
	came := db.counted()
	for what, fields := range map[string]string{"the token": bearer, "the owner's cookie": credentials["the owner's cookie"]} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PROPFIND"} {
			status, err := db.ask(ctx, asked(db.host, method+" /any", fields))
			if err != nil {
				return err
			}
			t.try(1)
			if status > 0 && status < 300 && method != "OPTIONS" || db.counted() != came {
				t.got("%s by %s comes to the app", method, what)
			}
		}
	}
	return webWrongly(ctx, db, bearer, t)
}

// webWrongly uses the token at web apps and their paths of ours.
func webWrongly(ctx context.Context, db *lure, bearer string, t *tally) error {
	for _, host := range []string{db.on.app.host, db.on.account.Host} {
		for _, target := range []string{"GET /hello", "POST /hello", "GET /.porchlight/me", "GET /.porchlight/apps", "GET /"} {
			for _, more := range []string{"", upgrading} {
				status, err := db.on.peek(ctx, host, asked(host, target, more+bearer))
				if err != nil {
					return err
				}
				t.try(1)
				if status > 0 && status < 400 {
					t.got("the token gets %d by %s of %s", status, target, host)
				}
			}
		}
	}
	return nil
}

// reachAuthorize asks for tokens that there must not be.
func reachAuthorize(ctx context.Context, r *remote, maya, zoe *tenant, lures []*lure, t *tally) error {
	must := func(what string, who *visitor.Visitor, resources ...string) error {
		asks := &remote{authURL: r.authURL, id: r.id, back: r.back, browser: who}
		got, err := asks.grantedFor(ctx, resources...)
		t.try(1)
		if err == nil && got.Access != "" {
			t.got("%s: a token", what)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return nil
	}
	db, ssh, zoes := "https://"+lures[0].host, "https://"+lures[1].host, "https://"+lures[2].host
	for what, resources := range map[string][]string{
		"for everything": nil, "for two": {db, ssh}, "for a computer": {"https://" + maya.account.Host}, "for a web app": {"https://" + maya.app.host},
		"for one and a web app": {db, "https://" + maya.app.host}, "for another's": {zoes}, "for one that is not": {"https://none." + maya.account.Host},
	} {
		if err := must(what, maya.browser, resources...); err != nil {
			return err
		}
	}
	if err := must("of who was not given it", zoe.browser, db); err != nil {
		return err
	}
	for _, back := range []string{"https://evil.test/", "http://127.0.0.1.evil.test/", "http://127.0.0.1:9/else", "http://[::1]:9/", "http://localhost:9/", "http://127.0.0.1:9/?x=1", "http://user@127.0.0.1:9/"} {
		asks := &remote{authURL: r.authURL, id: r.id, back: back, browser: maya.browser}
		page, err := asks.askFor(ctx, db)
		if err != nil {
			return err
		}
		t.try(1)
		if page.Status == http.StatusOK || page.Header.Get("Location") != "" {
			t.got("it is led to %s: HTTP %d", back, page.Status)
		}
	}
	// Another client cannot ask for what is reached by TCP.
	for _, resources := range [][]string{{db}, {"https://" + maya.app.host, db}} {
		var client struct{ ClientID, ClientSecret string }
		if err := maya.plane.Run(&client, "client", "add", "--name", "Assistant", "--redirect-uri", callback); err != nil {
			return err
		}
		other := &remote{authURL: r.authURL, id: client.ClientID, secret: client.ClientSecret, back: callback, browser: maya.browser}
		t.try(1)
		if got, err := other.grantedFor(ctx, resources...); err == nil && got.Access != "" {
			t.got("another client gets a token for %v", resources)
		}
	}
	return nil
}

// reachHalf leaves handshakes and connections half done.
func reachHalf(ctx context.Context, db *lure, token string, t *tally) error {
	whole := asked(db.host, "GET /", upgrading+"Authorization: Bearer "+token+"\r\n")
	came := db.counted()
	for at := len(whole) - 3; at > 0; at -= 40 {
		if _, err := db.ask(ctx, whole[:at]); err != nil {
			return err
		}
		t.try(1)
	}
	if now := db.counted(); now != came {
		t.got("half a handshake makes %d connections", now-came)
	}
	for _, bad := range []string{"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Upgrade: websocket", "Connection: Upgrade"} {
		status, err := db.ask(ctx, strings.Replace(whole, bad+"\r\n", "", 1))
		if err != nil {
			return err
		}
		t.try(1)
		if status == http.StatusSwitchingProtocols {
			t.got("without %s there is a connection", bad)
		}
	}
	// Frames that are none end it and nothing else.
	for _, frames := range []string{"\x82\x05hello", "\xff\xff\xff\xff", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", "\x81\x80\x00\x00\x00\x00", "\x88\x80\x00\x00\x00\x00", "GET / HTTP/1.1\r\n\r\n"} {
		if _, err := db.ask(ctx, whole+frames); err != nil {
			return err
		}
		t.try(1)
	}
	status, err := db.reach(ctx, db.host, "GET /", "Authorization: Bearer "+token+"\r\n")
	if err == nil && status != http.StatusSwitchingProtocols {
		err = errors.New("afterwards the honest way gets HTTP " + strconv.Itoa(status))
	}
	return err
}

// reachRevoked uses what was revoked.
func reachRevoked(ctx context.Context, r *remote, db *lure, got tokens, t *tally) error {
	grants, err := db.on.owner.Grants(ctx)
	if err != nil {
		return err
	}
	for _, g := range grants {
		if _, err := db.on.owner.RevokeGrant(ctx, g.ID); err != nil {
			return err
		}
	}
	came := db.counted()
	status, err := db.reach(ctx, db.host, "GET /", "Authorization: Bearer "+got.Access+"\r\n")
	if err != nil {
		return err
	}
	t.try(2)
	if status == http.StatusSwitchingProtocols || db.counted() != came {
		t.got("a revoked token gets a connection")
	}
	if _, again, err := r.token(ctx, r.refreshing(got.Refresh)); err == nil && again.Access != "" {
		t.got("a revoked refresh token gets a token")
	}
	return nil
}

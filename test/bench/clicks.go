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
	"strings"
	"sync"
	"time"

	"porchlight/agent/proxy/limits"
	"porchlight/internal/filelimit"
)

// What the owner's click is measured among: sockets of so many people, through relay
// and agent, each a process of its own; and visitors' connections at rest.
const (
	crowdPeople = 40
	amongCrowd  = "a person's access withdrawn, among WebSockets of 40 people"
	amongIdle   = "a person's access withdrawn, among idle visitors"
)

// owner asks the agent's process for what the owner's click does: the change
// written, the state swapped, connections reset.
func (c contender) owner(ctx context.Context, what string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.ownerAddr+"/"+what, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", what, res.Status, said)
	}
	return err
}

// as is the contender as one of its people visits it.
func (c contender) as(person int) contender {
	c.header = [2]string{"Cookie", c.cookies[person%len(c.cookies)]}
	return c
}

// crowd opens st.sockets WebSockets of forty people, on which nobody says anything.
func (st *stage) crowd(ctx context.Context, c contender) ([]net.Conn, error) {
	return openMany(ctx, st.sockets, func(ctx context.Context, i int) (net.Conn, error) { return c.as(i % crowdPeople).hold(ctx) })
}

// hold opens a WebSocket and is done with it: of thousands the visitors' side, which shares
// the processors, is to cost little, and no more when they end.
func (c contender) hold(ctx context.Context) (net.Conn, error) {
	conn, err := secure(ctx, c, http1())
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\n%s: %s\r\nOrigin: https://%s\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", host, c.header[0], c.header[1], host)
	var res *http.Response
	if err == nil {
		res, err = http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	}
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(res.Status)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// clicksAmongSockets has the owner withdraw an app from somebody and give it back, again
// and again, among the crowd's sockets.
func clicksAmongSockets(ctx context.Context, st *stage, c contender) ([]reading, error) {
	crowd, err := st.crowd(ctx, c)
	defer closeAll(crowd)
	if err != nil {
		return nil, err
	}
	return clicks(ctx, st, c)
}

// How long it takes until the last socket is closed, and until the owner reads that.
const (
	allDark = "ms until all is dark"
	saidSo  = "ms until the owner is answered"
)

// untilDark has the owner close everything among the crowd's sockets. What ends is looked
// at below TLS: a visitor's system knows then.
func untilDark(ctx context.Context, st *stage, c contender) ([]reading, error) {
	crowd, err := st.crowd(ctx, c)
	defer closeAll(crowd)
	if err != nil {
		return nil, err
	}
	var waiting, ended sync.WaitGroup
	waiting.Add(len(crowd))
	for _, conn := range crowd {
		below := conn.(*tls.Conn).NetConn()
		ended.Go(func() {
			waiting.Done()
			_ = below.SetReadDeadline(time.Now().Add(time.Minute)) // one that stays open shows in the figure
			one := make([]byte, 1)
			for err := error(nil); err == nil; {
				_, err = below.Read(one)
			}
		})
	}
	waiting.Wait()
	began, last := time.Now(), make(chan time.Duration, 1)
	go func() {
		ended.Wait()
		last <- time.Since(began)
	}()
	if err := c.owner(ctx, "dark"); err != nil {
		return nil, err
	}
	answered := time.Since(began)
	return []reading{{allDark, micro(<-last) / 1e3}, {saidSo, micro(answered) / 1e3}}, c.owner(ctx, "light")
}

// What visitors at rest are, by those who stayed until the last click, and take.
const (
	stayed      = "visitors at rest"
	agentMemory = "MB of the agent"
	relayMemory = "MB of each relay"
)

// clicksAmongIdle has visitors' connections rest meanwhile, by each relay as many, all of
// which must last.
func clicksAmongIdle(ctx context.Context, st *stage, c contender) ([]reading, error) {
	conns, err := openMany(ctx, st.atRest(), func(ctx context.Context, i int) (net.Conn, error) {
		who := c.as(i % crowdPeople)
		who.addr = c.relays[i%len(c.relays)]
		return who.askOnce(ctx)
	})
	defer closeAll(conns)
	if err != nil {
		return nil, err
	}
	readings, err := clicks(ctx, st, c)
	if err != nil {
		return nil, err
	}
	agent, err := contender{pid: c.pid}.resident()
	if err != nil {
		return nil, err
	}
	relays, err := contender{helpers: c.helpers, whole: true}.resident()
	if err != nil {
		return nil, err
	}
	for i, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return nil, err
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, fmt.Errorf("visitor %d did not stay: %w", i, err)
		}
	}
	return append(readings, reading{stayed, float64(len(conns))},
		reading{agentMemory, agent / 1e6}, reading{relayMemory, relays / 1e6 / float64(len(c.helpers))}), nil
}

// atRest is how many visitors rest: fewer than are asked for where the agent's share of
// its files for them is less. Some are left for those who come meanwhile.
func (s settings) atRest() int {
	return min(s.resting, limits.Share(filelimit.Limit(), limits.ConnsShare)-100)
}

// clicks times the owner's, from the decision to the closed socket at the visitor.
func clicks(ctx context.Context, st *stage, c contender) ([]reading, error) {
	victim := c.as(crowdPeople)
	var took []time.Duration
	for trial := range st.clicks {
		talk, err := victim.webSocket(ctx)
		if err != nil {
			return nil, fmt.Errorf("trial %d: %w", trial, err)
		}
		ended := make(chan time.Time, 1)
		go func() {
			_, _, _ = talk.Read(ctx) // nobody says anything: it ends
			ended <- time.Now()
		}()
		began := time.Now()
		if err := c.owner(ctx, "withdraw"); err != nil {
			_ = talk.CloseNow() // nobody else closes it
			return nil, err
		}
		at := <-ended
		_ = talk.CloseNow() // it is closed
		took = append(took, at.Sub(began))
		if err := c.owner(ctx, "give"); err != nil {
			return nil, err
		}
	}
	return quantiles(took)
}

// crowdStage stands those on the stage whom the owner's click is measured at: with the
// relay, and with both that a computer is connected to. A visitor takes two files of a
// relay, so where a process has 20,000, one relay alone carries no 10,000.
func (st *stage) crowdStage(ctx context.Context) error {
	st.env = []string{scaleVariable + "=" + fmt.Sprint(crowdPeople+1)}
	defer func() { st.env = nil }()
	for i, name := range []string{oursCrowd, oursTwoRelays} {
		if !st.measures(name) {
			continue
		}
		if err := st.startCrowd(ctx, name, i+1); err != nil {
			return err
		}
	}
	return nil
}

func (st *stage) startCrowd(ctx context.Context, name string, relays int) error {
	profile, dir := fmt.Sprint("crowd-", relays), fmt.Sprint(st.dir, "/crowd-", relays)
	if err := st.link(dir); err != nil {
		return err
	}
	c := contender{name: name}
	for i := range relays {
		relay, pid, err := st.role(ctx, st.self, "relay", dir, st.profileOf(fmt.Sprint(profile, "-relay-", i)))
		if err != nil {
			return err
		}
		c.relays, c.helpers = append(c.relays, relay.Addr), append(c.helpers, pid)
	}
	is, pid, err := st.role(ctx, st.self, "proxy", append([]string{dir, port(st.app.Addr), st.profileOf(profile + "-agent")}, c.relays...)...)
	if err != nil {
		return err
	}
	c.addr, c.pid, c.ownerAddr, c.cookies = c.relays[0], pid, is.Owner, strings.Split(is.Cookie, " ")
	for _, addr := range c.relays { // the agent is ready with the first
		by := c.as(0)
		by.addr, by.whole = addr, true
		if err := st.leads(ctx, by, os.DevNull); err != nil {
			return err
		}
	}
	st.stand(c)
	return nil
}

const (
	oursCrowd     = "Porchlight, relay and agent of a crowd"
	oursTwoRelays = "Porchlight, two relays and agent"
)

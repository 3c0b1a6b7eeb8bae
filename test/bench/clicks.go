package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

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

// clicksAmongSockets opens st.sockets of forty people, and has the owner withdraw an app
// from somebody else and give it back, again and again; at last all goes dark.
func clicksAmongSockets(ctx context.Context, st *stage, c contender) (readings []reading, err error) {
	crowd := make([]*websocket.Conn, st.sockets)
	defer func() {
		for _, talk := range crowd {
			if talk != nil {
				_ = talk.CloseNow() // it may have been closed by the agent
			}
		}
	}()
	g, group := errgroup.WithContext(ctx)
	const workers = 8
	for w := range workers {
		g.Go(func() (err error) {
			for i := w; i < st.sockets && err == nil; i += workers {
				crowd[i], err = c.as(i % crowdPeople).webSocket(group)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if readings, err = clicks(ctx, st, c); err != nil {
		return nil, err
	}
	var ended sync.WaitGroup
	for _, talk := range crowd {
		ended.Go(func() { _, _, _ = talk.Read(ctx) }) // nobody says anything: it ends
	}
	began := time.Now()
	if err := c.owner(ctx, "dark"); err != nil {
		return nil, err
	}
	ended.Wait()
	took := time.Since(began)
	return append(readings, reading{allDark, micro(took) / 1e3}), c.owner(ctx, "light")
}

// allDark is the metric of how long it takes until everything is dark.
const allDark = "ms until all is dark"

// clicksAmongIdle has visitors' connections rest meanwhile, all of which must last.
func clicksAmongIdle(ctx context.Context, st *stage, c contender) ([]reading, error) {
	// An agent takes three eighths of its files for visitors, which may be fewer.
	resting := min(st.resting, filelimit.Limit()*3/8-100)
	conns := make([]net.Conn, resting)
	defer closeAll(conns)
	g, group := errgroup.WithContext(ctx)
	const workers = 8
	for w := range workers {
		g.Go(func() error {
			for i := w; i < resting; i += workers {
				opened, err := st.rest(group, c.as(i%crowdPeople), 1)
				if err != nil {
					return fmt.Errorf("visitor %d: %w", i, err)
				}
				conns[i] = opened[0]
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	readings, err := clicks(ctx, st, c)
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
	return append(readings, reading{"visitors at rest", float64(resting)}), nil
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

// crowdStage stands those on the stage whom the owner's click is measured at.
func (st *stage) crowdStage(ctx context.Context) error {
	st.env = []string{scaleVariable + "=" + fmt.Sprint(crowdPeople+1)}
	defer func() { st.env = nil }()
	for _, with := range []string{"relay", ""} {
		dir := st.dir + "/crowd-" + with
		if err := st.link(dir); err != nil {
			return err
		}
		name, args := oursAgentOnly, []string{dir, port(st.app.Addr), ""}
		if with != "" {
			relay, _, err := st.role(ctx, st.self, "relay", dir, "")
			if err != nil {
				return err
			}
			name, args = oursCrowd, append(args, relay.Addr)
		}
		is, pid, err := st.role(ctx, st.self, "proxy", args...)
		if err != nil {
			return err
		}
		addr := is.Addr
		if with != "" {
			addr = args[3]
		}
		st.stand(contender{name: name, addr: addr, pid: pid, ownerAddr: is.Owner, cookies: strings.Split(is.Cookie, " ")})
	}
	return nil
}

const (
	oursCrowd     = "Porchlight, relay and agent of a crowd"
	oursAgentOnly = "Porchlight, agent alone"
)

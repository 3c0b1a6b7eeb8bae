package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
)

// The contenders of the control part have no peers: what they are compared with are
// goals.
const (
	onBolt     = "Porchlight, bbolt"
	onPostgres = "Porchlight, PostgreSQL"
	loopback   = "Porchlight, loopback API"

	refreshOne  = "access token refreshed, 1 client"
	refreshMany = "access token refreshed, 16 clients"
	refreshMost = "access token refreshed, 64 clients"
	publishSame = "POST /publish, unchanged"
	publishNew  = "POST /publish, another label"
	askOwn      = "GET /publish/NAME"
)

// mostClients is how many OAuth clients hold a grant of their own.
const mostClients = 64

func controlPart() part {
	stores := []string{onBolt, onPostgres}
	refresh := func(name string, clients int) work {
		return work{"refresh", name, stores, func(ctx context.Context, st *stage, c contender) ([]reading, error) {
			return refreshes(ctx, st, c, clients)
		}}
	}
	call := func(name string, requests ...string) work {
		return work{"loopback", name, []string{loopback}, func(ctx context.Context, st *stage, c contender) ([]reading, error) {
			return calls(ctx, st, c, requests)
		}}
	}
	publish := func(label string) string {
		body := fmt.Sprintf(`{"name":"notes","label":%q,"localPort":PORT}`, label)
		return "POST /publish HTTP/1.1\r\nHost: API\r\nContent-Type: application/json\r\nContent-Length: LENGTH\r\n\r\n" + body
	}
	operator, quick := operatorWork()
	return part{name: "control", start: (*stage).startControlPart, goals: append([]goal{
		{name: refreshMany, metric: perSecond, ours: onBolt, limit: 5000, atLeast: true},
		{name: refreshMany, metric: perSecond, ours: onPostgres, limit: 3000, atLeast: true},
		{name: publishSame, metric: p99, ours: loopback, limit: 5},
	}, quick...), work: append([]work{
		refresh(refreshOne, 1), refresh(refreshMany, 16), refresh(refreshMost, mostClients),
		call(publishSame, publish("Notes")),
		call(publishNew, publish("Notes"), publish("Diary")),
		call(askOwn, "GET /publish/notes HTTP/1.1\r\nHost: API\r\n\r\n"),
	}, operator...)}
}

// startControlPart starts a control plane on each store, and a computer on its own.
func (st *stage) startControlPart(ctx context.Context) error {
	stores := map[string]string{onBolt: st.dir + "/control.db", manyOnBolt: st.dir + "/many.db"}
	if server, err := pgtest.Start(pgtest.Options{Durable: true}); err != nil {
		fmt.Fprintf(os.Stderr, "%s is left out: %v\n", onPostgres, err)
	} else {
		st.onClose = append(st.onClose, func() { _ = server.Close() }) // it served only this
		for _, name := range []string{onPostgres, manyOnPostgres} {
			if stores[name], err = server.NewDatabase(); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{onBolt, onPostgres} {
		if stores[name] == "" || !st.measures(name) {
			continue
		}
		is, pid, err := st.role(ctx, st.self, "control", stores[name], fmt.Sprint(st.grants), st.profileOf("control-"+name[len("Porchlight, "):]))
		if err != nil {
			return err
		}
		st.stand(contender{name: name, addr: is.Addr, pid: pid, tokens: is.Tokens, client: [2]string{is.ClientID, is.Secret}})
	}
	if err := st.startOperators(ctx, stores); err != nil {
		return err
	}
	is, pid, err := st.role(ctx, st.self, "computer", st.dir+"/data", port(st.app.Addr), st.profileOf("control-loopback"))
	if err != nil {
		return err
	}
	st.stand(contender{name: loopback, addr: is.Addr, pid: pid})
	return nil
}

// timed has callers do something again and again for st.span, and returns how often,
// how long it took and what it cost.
func timed(ctx context.Context, st *stage, c contender, callers int, once func(context.Context, int) error) ([]reading, error) {
	var (
		mu   sync.Mutex
		took []time.Duration
	)
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i := range callers {
		g.Go(func() error {
			var mine []time.Duration
			for time.Since(began) < st.span {
				sent := time.Now()
				if err := once(ctx, i); err != nil {
					return err
				}
				mine = append(mine, time.Since(sent))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	length := time.Since(began).Seconds()
	after, err := c.cpu()
	if err != nil {
		return nil, err
	}
	n := float64(len(took))
	spread, err := quantiles(took)
	return append([]reading{{perSecond, n / length}, {cpuRequest, micro(after-before) / n}}, spread...), err
}

// refreshes are those of clients that each hold a grant of their own, one at a time:
// the old token is used up and the next one kept, durably.
func refreshes(ctx context.Context, st *stage, c contender, clients int) ([]reading, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	return timed(ctx, st, c, clients, func(_ context.Context, i int) error {
		body := url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {c.tokens[i]}, "client_id": {c.client[0]}, "client_secret": {c.client[1]},
		}
		res, err := client.Post("http://"+c.addr+controlapi.PathToken, "application/x-www-form-urlencoded", strings.NewReader(body.Encode()))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var out struct {
			Refresh string `json:"refresh_token"`
		}
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Refresh == "" {
			return fmt.Errorf("refresh: %s, %w", res.Status, err)
		}
		c.tokens[i] = out.Refresh
		return nil
	})
}

// calls are made as an app makes them, over one connection that is kept, the requests
// in turn.
func calls(ctx context.Context, st *stage, c contender, requests []string) ([]reading, error) {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	raw := make([][]byte, len(requests))
	for i, request := range requests {
		request = strings.NewReplacer("API", c.addr, "PORT", port(st.app.Addr)).Replace(request)
		_, body, _ := strings.Cut(request, "\r\n\r\n")
		raw[i] = bytes.Replace([]byte(request), []byte("LENGTH"), fmt.Append(nil, len(body)), 1)
	}
	r, n := bufio.NewReader(conn), 0
	return timed(ctx, st, c, 1, func(context.Context, int) error {
		n++
		_, err := ask(conn, r, raw[n%len(raw)])
		return err
	})
}

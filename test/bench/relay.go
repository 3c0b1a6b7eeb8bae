package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// The contenders of the relay's part. All lead visitors by the name in a ClientHello
// to one app, which reads that and then speaks bytes; ours, frp and chisel through a
// tunnel that the app's side has opened.
const (
	oursRelay   = "Porchlight's relay"
	beforeRelay = "Porchlight before's relay"
	haproxy     = "haproxy, splicing"
	nginxStream = "nginx stream"
	frp         = "frp"
	chisel      = "chisel"
	noRelay     = "no relay"
)

const (
	cpuConnection = "CPU µs a connection"
	gbPerSecond   = "GB/s"
	bulkOne       = "bulk, 1 connection"
	bulkEight     = "bulk, 8 connections"
	visits        = "connections"
	smallMessages = "requests of 100 B, 64 connections"
	relayAtRate   = "requests at the fixed rate"
	added50       = "p50 ms added"
)

func relayPart() part {
	all := []string{oursRelay, beforeRelay, haproxy, nginxStream, frp, chisel, noRelay}
	relays := all[:len(all)-1]
	bulk := func(n int) func(context.Context, *stage, contender) ([]reading, error) {
		return func(ctx context.Context, st *stage, c contender) ([]reading, error) { return relayBulk(ctx, st, c, n) }
	}
	goals := []goal{
		{name: visits, metric: perSecond, ours: oursRelay, peer: haproxy, limit: .6, atLeast: true},
		{name: idle, metric: memory, ours: oursRelay, limit: 8},
		{name: relayAtRate, metric: added50, ours: oursRelay, peer: haproxy, limit: 1},
	}
	for _, name := range []string{bulkOne, bulkEight} {
		goals = append(goals,
			goal{name: name, metric: gbPerSecond, ours: oursRelay, peer: haproxy, limit: 1, atLeast: true},
			goal{name: name, metric: cpuGB, ours: oursRelay, peer: haproxy, limit: 1})
	}
	return part{name: "relay", start: (*stage).startRelayPart, goals: goals, derive: addedByRelays, work: []work{
		{"idle", idle, relays, idleVisits}, // first: memory that was once taken would count for nothing
		{"bulk", bulkOne, all, bulk(1)},
		{"bulk", bulkEight, all, bulk(8)},
		{"connections", visits, all, relayConnections},
		{"requests", smallMessages, all, relayRequests},
		{"latency", relayAtRate, all, relayLatency},
	}}
}

// startRelayPart starts relay, agent with the app, and every peer.
func (st *stage) startRelayPart(ctx context.Context) error {
	var app string
	for _, ours := range []struct{ program, name, profile string }{{st.self, oursRelay, st.profileOf("relay")}, {st.before, beforeRelay, ""}} {
		if ours.program == "" {
			continue
		}
		is, pid, err := st.role(ctx, ours.program, "relay", st.dir, ours.profile)
		if err != nil && ours.name == beforeRelay { // it may be from before there was this part
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", ours.name, err)
			continue
		}
		if err != nil {
			return err
		}
		behind, _, err := st.role(ctx, ours.program, "behind", st.dir, is.Addr)
		if err != nil {
			return err
		}
		st.stand(contender{name: ours.name, addr: is.Addr, pid: pid})
		app = behind.Addr
	}
	for _, peer := range []peer{
		{haproxy, "haproxy.cfg", []string{"haproxy", "-db", "-f"}},
		{nginxStream, "nginx-stream.conf", []string{"nginx", "-p", st.dir, "-c"}},
	} {
		addr, pid, err := st.peer(ctx, peer, "APP", app)
		if err != nil {
			return fmt.Errorf("start %s: %w", peer.name, err)
		}
		if addr != "" {
			st.stand(contender{name: peer.name, addr: addr, pid: pid})
		}
	}
	if err := st.startFrp(ctx, app); err != nil {
		return err
	}
	if err := st.startChisel(ctx, app); err != nil {
		return err
	}
	st.stand(contender{name: noRelay, addr: app})
	return nil
}

// startFrp starts its server, and its client beside the app; helpers count with it
// where the whole way is measured.
func (st *stage) startFrp(ctx context.Context, app string, helpers ...int) error {
	control, err := freeAddress()
	if err != nil {
		return err
	}
	words := []string{"CONTROL", port(control), "APP", port(app)}
	addr, pid, err := st.peer(ctx, peer{frp, "frps.toml", []string{st.tool("frps"), "-c"}}, words...)
	if err != nil {
		return fmt.Errorf("start frp: %w", err)
	}
	if addr == "" {
		return nil
	}
	file, err := st.configure("frpc.toml", append(words, "HOST", host)...)
	if err != nil {
		return err
	}
	helper, err := st.background(ctx, exec.CommandContext(ctx, st.tool("frpc"), "-c", file), file+".log")
	if err != nil {
		return err
	}
	c := contender{name: frp, addr: addr, pid: pid, helpers: append(helpers, helper), whole: len(helpers) > 0, header: nobody}
	st.stand(c)
	return st.leads(ctx, c, file+".log")
}

// leads waits until the other side of a tunnel has come, too.
func (st *stage) leads(ctx context.Context, c contender, log string) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		var err error
		if c.whole {
			err = visitOnce(ctx, c, http1())
		} else {
			var conn net.Conn
			if conn, err = c.enter(ctx, 0); err == nil {
				return conn.Close()
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	said, err := os.ReadFile(log)
	return errors.Join(fmt.Errorf("%s leads nowhere: %s", c.name, said), err)
}

// startChisel does the same with chisel.
func (st *stage) startChisel(ctx context.Context, app string, helpers ...int) error {
	if _, err := exec.LookPath(st.tool("chisel")); err != nil || !st.measures(chisel) {
		return nil // said by frp's, which is built with it
	}
	server, err := freeAddress()
	if err != nil {
		return err
	}
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	log := st.dir + "/chisel.log"
	pid, err := st.background(ctx, exec.CommandContext(ctx, st.tool("chisel"), "server", "--host", "127.0.0.1", "--port", port(server), "--reverse"), log)
	if err != nil {
		return err
	}
	if err := st.listens(ctx, server, log); err != nil {
		return err
	}
	helper, err := st.background(ctx, exec.CommandContext(ctx, st.tool("chisel"), "client", "http://"+server, "R:"+addr+":"+app), log+"-client")
	if err != nil {
		return err
	}
	c := contender{name: chisel, addr: addr, pid: pid, helpers: append(helpers, helper), whole: len(helpers) > 0, header: nobody}
	st.stand(c)
	return st.leads(ctx, c, log+"-client")
}

// hello is a visitor's first bytes.
var hello = sync.OnceValue(func() []byte {
	client, server := net.Pipe()
	go func() { _ = tls.Client(client, &tls.Config{ServerName: host}).Handshake() }()
	defer client.Close()
	buf := make([]byte, 16<<10)
	n, _ := server.Read(buf)
	for n < 5 || n < 5+int(buf[3])<<8+int(buf[4]) {
		m, err := server.Read(buf[n:])
		if err != nil {
			panic(err)
		}
		n += m
	}
	return buf[:n]
})

// enter visits the app. source spreads visitors over loopback addresses, each of
// which has ports of its own.
func (c contender) enter(ctx context.Context, source int) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+source%200))}, KeepAlive: -1}
	conn, err := dialer.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	var dot [1]byte
	if _, err = conn.Write(hello()); err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err = io.ReadFull(conn, dot[:])
		_ = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (c contender) enterAll(ctx context.Context, n int) (conns []net.Conn, err error) {
	conns = make([]net.Conn, n)
	g, ctx := errgroup.WithContext(ctx)
	for w := range min(n, 16) {
		g.Go(func() error {
			for i := w; i < n; i += 16 {
				conn, err := c.enter(ctx, i)
				if err != nil {
					return err
				}
				conns[i] = conn
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		closeAll(conns)
		return nil, err
	}
	return conns, nil
}

// addedByRelays is what each relay adds to the time without one, in each round.
func addedByRelays(r *results) {
	direct := r.figures[measure{"relay", relayAtRate, p50, noRelay}]
	for _, m := range r.order {
		if m.part != "relay" || m.metric != p50 || m.of == noRelay {
			continue
		}
		for i, took := range r.figures[m] {
			if i < len(direct) {
				r.add("relay", relayAtRate, added50, m.of, took-direct[i])
			}
		}
	}
}

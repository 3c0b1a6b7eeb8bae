package main

import (
	"context"
	"fmt"
)

// The contenders of the tunnel's part, each with both of its sides: from the visitor to
// the app and back, with TLS ended beside the app.
const (
	oursWhole     = "Porchlight, relay and agent"
	anyConnection = "a new visitor, handshake and one request"
)

func tunnelPart() part {
	all := []string{oursWhole, frp, chisel}
	loads := func(group string, l load) work { return work{group, l.name, all, l.saturate} }
	goals := []goal{
		{name: amongCrowd, metric: p99, ours: oursCrowd, limit: 10},
		{name: amongCrowd, metric: allDark, ours: oursCrowd, limit: 200},
		{name: amongIdle, metric: p99, ours: oursTwoRelays, limit: 10},
		{name: amongIdle, metric: stayed, ours: oursTwoRelays, limit: 10_000, atLeast: true},
	}
	for _, peer := range []string{frp, chisel} {
		goals = append(goals,
			goal{name: smallH1, metric: cpuRequest, ours: oursWhole, peer: peer, limit: 1},
			goal{name: down, metric: cpuGB, ours: oursWhole, peer: peer, limit: 1},
			goal{name: atRate, metric: p50, ours: oursWhole, peer: peer, limit: 1})
	}
	return part{name: "tunnel", start: (*stage).startTunnelPart, goals: goals, work: []work{
		{"idle", idle, all, idleMemory},
		loads("requests", load{name: smallH1, path: "/"}),
		loads("requests", load{name: smallH2, path: "/", streams: 1}),
		loads("posts", load{name: "HTTP/1.1, POST 1 KiB", path: "/", post: 1 << 10}),
		{"websockets", "WebSocket, messages of 100 B", all, messages},
		{"latency", atRate, all, paced},
		{"handshakes", anyConnection, all, newVisitors},
		{"bulk", down, all, download},
		{"bulk", up, all, upload},
		{"clicks", amongCrowd, []string{oursCrowd}, clicksAmongSockets},
		{"dark", amongCrowd, []string{oursCrowd}, untilDark},
		{"clicks", amongIdle, []string{oursTwoRelays}, clicksAmongIdle},
	}}
}

func (st *stage) startTunnelPart(ctx context.Context) error {
	relay, relayPID, err := st.role(ctx, st.self, "relay", st.dir, st.profileOf("tunnel-relay"))
	if err != nil {
		return err
	}
	agent, agentPID, err := st.role(ctx, st.self, "proxy", st.dir, port(st.app.Addr), st.profileOf("tunnel-agent"), relay.Addr)
	if err != nil {
		return err
	}
	st.stand(contender{
		name: oursWhole, addr: relay.Addr, pid: relayPID, helpers: []int{agentPID}, whole: true,
		header: [2]string{"Cookie", agent.Cookie},
	})
	if st.wants("clicks") || st.wants("dark") {
		if err := st.crowdStage(ctx); err != nil {
			return err
		}
	}
	// frp and chisel end no TLS: nginx does it for the app, each one's its own.
	for _, start := range []func(context.Context, string, ...int) error{st.startFrp, st.startChisel} {
		addr, pid, err := st.peer(ctx, peer{"nginx", "nginx.conf", []string{"nginx", "-p", st.dir, "-c"}}, "APP", st.app.Addr)
		if err != nil {
			return err
		}
		if addr == "" {
			return nil
		}
		if err := start(ctx, addr, pid); err != nil {
			return err
		}
	}
	return nil
}

// newVisitors come, ask once and go, one after another.
func newVisitors(ctx context.Context, st *stage, c contender) ([]reading, error) {
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	n := max(st.handshakes/4, 1)
	for i := range n {
		if err := visitOnce(ctx, c, http1()); err != nil {
			return nil, fmt.Errorf("visitor %d: %w", i, err)
		}
	}
	after, err := c.cpu()
	return []reading{{cpuConnection, micro(after-before) / float64(n)}}, err
}

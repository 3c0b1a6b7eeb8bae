package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// The contenders of the agent's part, as results name them.
const (
	oursCookie   = "Porchlight, cookie"
	oursBearer   = "Porchlight, access token"
	oursPassword = "Porchlight, app password"
	oursKey      = "Porchlight, key"
	oursDevice   = "Porchlight, certificate"
	nginx        = "nginx, no sign-in"
	caddy        = "Caddy, no sign-in"
	caddyAuth    = "Caddy, forward_auth"

	beforeCookie = "Porchlight before, cookie"
	beforeBearer = "Porchlight before, access token"
)

// Metrics. CPU is the proxying processes' own; an authoriser's is not counted.
const (
	cpuRequest   = "CPU µs a request"
	cpuMessage   = "CPU µs a message"
	cpuHandshake = "CPU µs"
	cpuGB        = "CPU s a GB"
	perSecond    = "a second"
	mbPerSecond  = "MB/s"
	p50, p99     = "p50 ms", "p99 ms"
	memory       = "MB for 1,000"
)

// Names of what the goals are about.
const (
	smallH1   = "HTTP/1.1, 100 B"
	smallH2   = "HTTP/2, 1 stream, 100 B"
	smallH2x8 = "HTTP/2, 8 streams, 100 B"
	oneEach   = "HTTP/1.1, 100 B, one each at a time"
	atRate    = "HTTP/1.1, fixed rate"
	fullTLS   = "TLS handshake"
	resumed   = "TLS handshake, resumed"
	hybridTLS = "TLS handshake, X25519MLKEM768"
	down      = "download"
	up        = "upload"
	idle      = "idle connections"
)

// agentPart is the proxy beside its peers in front of one app, without the relay.
func agentPart() part {
	var (
		all    = []string{oursCookie, beforeCookie, oursBearer, beforeBearer, oursPassword, oursKey, nginx, caddy, caddyAuth}
		plain  = []string{oursCookie, beforeCookie, nginx, caddy}
		small  = func(l load) work { return work{"requests", l.name, all, l.saturate} }
		bodies = func(group string, l load) work { return work{group, l.name, plain, l.saturate} }
	)
	return part{name: "agent", start: (*stage).startAgentPart, goals: agentGoals(), work: append([]work{
		{"idle", idle, plain, idleMemory}, // first: memory that was once taken would count for nothing
		small(load{name: smallH1, path: "/"}),
		small(load{name: smallH2, path: "/", streams: 1}),
		small(load{name: smallH2x8, path: "/", streams: 8}),
		{"requests", oneEach, []string{oursCookie, oursKey, oursDevice}, oneAtATime}, // h2load has no certificate
		bodies("sizes", load{name: "HTTP/1.1, 16 KiB", path: "/16k"}),
		bodies("sizes", load{name: "HTTP/2, 1 stream, 16 KiB", path: "/16k", streams: 1}),
		bodies("sizes", load{name: "HTTP/1.1, 1 MiB", path: "/1m"}),
		bodies("sizes", load{name: "HTTP/2, 1 stream, 1 MiB", path: "/1m", streams: 1}),
		bodies("posts", load{name: "HTTP/1.1, POST 1 KiB", path: "/", post: 1 << 10}),
		bodies("posts", load{name: "HTTP/2, 1 stream, POST 1 KiB", path: "/", post: 1 << 10, streams: 1}),
		bodies("posts", load{name: "HTTP/1.1, POST 1 MiB", path: "/", post: 1 << 20}),
		bodies("posts", load{name: "HTTP/2, 1 stream, POST 1 MiB", path: "/", post: 1 << 20, streams: 1}),
		{"websockets", "WebSocket, messages of 100 B", plain, messages},
		{"latency", atRate, all, paced},
		{"handshakes", fullTLS, append(plain, oursDevice), handshakes(fullHandshake)},
		{"handshakes", resumed, append(plain, oursDevice), handshakes(resumedHandshake)},
		{"handshakes", hybridTLS, plain, handshakes(hybridHandshake)},
		{"bulk", down, plain, download},
		{"bulk", up, plain, upload},
	}, pageWork()...)}
}

func agentGoals() []goal {
	goals := []goal{
		{name: smallH2x8, metric: cpuRequest, ours: oursCookie, peer: nginx, limit: 1},
		{name: atRate, metric: p99, ours: oursCookie, peer: nginx, limit: 1.5},
		{name: fullTLS, metric: cpuHandshake, ours: oursCookie, peer: nginx, limit: 1},
		{name: resumed, metric: cpuHandshake, ours: oursCookie, peer: nginx, limit: 1},
		{name: down, metric: cpuGB, ours: oursCookie, peer: nginx, limit: .6},
		{name: up, metric: cpuGB, ours: oursCookie, peer: nginx, limit: .6},
		{name: oneEach, metric: cpuRequest, ours: oursKey, peer: oursCookie, limit: 1.05},
		{name: oneEach, metric: cpuRequest, ours: oursDevice, peer: oursCookie, limit: 1.05},
		{name: wholePage, metric: loadTime, ours: oursCookie, peer: nginx, limit: 1.05},
	}
	for _, name := range []string{smallH1, smallH2} {
		goals = append(goals,
			goal{name: name, metric: cpuRequest, ours: oursCookie, peer: nginx, limit: 1},
			goal{name: name, metric: cpuRequest, ours: oursCookie, peer: caddy, limit: 1. / 3},
			goal{name: name, metric: cpuRequest, ours: oursCookie, peer: caddyAuth, limit: 1. / 7},
			goal{name: name, metric: perSecond, ours: oursBearer, peer: oursCookie, limit: .95, atLeast: true},
			goal{name: name, metric: cpuRequest, ours: oursKey, peer: oursCookie, limit: 1.05},
		)
	}
	return goals
}

// startAgentPart starts an app, an authoriser and every contender.
func (st *stage) startAgentPart(ctx context.Context) error {
	authoriser, _, err := st.role(ctx, st.self, "authoriser")
	if err != nil {
		return err
	}
	for _, proxy := range []struct{ program, dir, profile, cookie, bearer, password, key string }{
		{st.self, st.dir, st.profileOf("agent"), oursCookie, oursBearer, oursPassword, oursKey},
		{st.before, filepath.Join(st.dir, "before"), "", beforeCookie, beforeBearer, "", ""},
	} {
		if proxy.program == "" {
			continue
		}
		is, pid, err := st.role(ctx, proxy.program, "proxy", proxy.dir, port(st.app.Addr), proxy.profile)
		if err != nil {
			return err
		}
		st.stand(contender{name: proxy.cookie, addr: is.Addr, pid: pid, header: [2]string{"Cookie", is.Cookie}})
		st.stand(contender{name: proxy.bearer, addr: is.Addr, pid: pid, header: [2]string{"Authorization", "Bearer " + is.Token}})
		if is.Password != "" && proxy.password != "" {
			st.stand(contender{name: proxy.password, addr: is.Addr, pid: pid, header: [2]string{"Authorization", is.Password}})
			st.stand(contender{name: proxy.key, addr: is.Addr, pid: pid, header: [2]string{"X-Porchlight-Key", is.Key}})
		}
	}
	is, pid, err := st.role(ctx, st.self, withDevice, filepath.Join(st.dir, "device"), port(st.app.Addr), "")
	if err != nil {
		return err
	}
	device, err := is.certificate()
	if err != nil {
		return err
	}
	st.stand(contender{name: oursDevice, addr: is.Addr, pid: pid, header: nobody, device: device})
	for _, peer := range []peer{
		{nginx, "nginx.conf", []string{"nginx", "-p", st.dir, "-c"}},
		{caddy, "caddy.conf", []string{st.tool("caddy"), "run", "--adapter", "caddyfile", "--config"}},
		{caddyAuth, "caddy-auth.conf", []string{st.tool("caddy"), "run", "--adapter", "caddyfile", "--config"}},
	} {
		addr, pid, err := st.peer(ctx, peer, "APP", st.app.Addr, "AUTHORISER", authoriser.Addr)
		if err != nil {
			return fmt.Errorf("start %s: %w", peer.name, err)
		}
		if addr != "" {
			st.stand(contender{name: peer.name, addr: addr, pid: pid, header: nobody})
		}
	}
	return nil
}

// nobody is what visitors send to those who ask nobody who they are.
var nobody = [2]string{"Cookie", "session=anything"}

func micro(d time.Duration) float64 { return float64(d) / 1e3 }

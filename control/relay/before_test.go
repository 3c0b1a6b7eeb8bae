package relay

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// Agents of before version 0.1.0 are told to update by the frame that they read, under a
// code with which they wait minutes, whether or not their credential is good.
func TestTunnelsOfBeforeAreToldToUpdate(t *testing.T) {
	t.Parallel()
	r, addr := serveRelay(t, nil, nil)
	for _, protocol := range []string{"porchlight-tunnel/1", "porchlight-tunnel/2"} {
		for _, credential := range []string{"credential-of-maya", "unknown"} {
			conn := tls.Client(dial(t, addr), &tls.Config{ServerName: testAuthHost, InsecureSkipVerify: true, NextProtos: []string{protocol}})
			programs.Must(t, tunnelwire.WriteFrame(conn, tunnelwire.Frame{Type: tunnelwire.Hello, Credential: credential, Instance: "a/0"}))
			f, err := tunnelwire.ReadFrame(conn)
			wait := time.Duration(f.RetryAfter) * time.Second
			if err != nil || f.Type != tunnelwire.Refused || f.Code != tunnelwire.CodeProtocol || f.Message != controlapi.SayOutdated || wait < 2*time.Minute {
				t.Errorf("%s is answered with %+v, %v", protocol, f, err)
			}
		}
	}
	if !strings.Contains(controlapi.SayOutdated, "0.1.0") || r.Stats().Sessions != 0 {
		t.Errorf("%q, %d sessions", controlapi.SayOutdated, r.Stats().Sessions)
	}
}

// A node of before version 0.1.0, whose row says nothing of what it speaks, is refused with
// a sentence in the log, once: its tunnel is not looked for, and no computer is sent to it.
func TestNodesOfBeforeAreRefused(t *testing.T) {
	t.Parallel()
	store := sharedStore(t, nil)
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	putNode(t, store, map[string]any{"node": "before", "run": "r", "peer": l.Addr().String(), "relay": controlapi.Relay{Address: "before.example:443"}})
	store.hall.hold("maya.localhost", "r", true)
	var log logLines
	one := serveNode(t, store, "one", func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	serveNode(t, store, "two", nil)
	one.sees(t, 2)
	if n := strings.Count(log.String(), "of a version before 0.1.0 uses this database, and is refused"); n != 1 {
		t.Errorf("the log says %d times that it is refused:\n%s", n, log.String())
	}
	if relays := one.RelaysFor("computer"); len(relays) != 2 || slices.ContainsFunc(relays, func(r controlapi.Relay) bool { return r.Address == "before.example:443" }) {
		t.Errorf("agents are sent to %v", relays)
	}
	visitor := visit(t, one.addr, programs.ClientHello(t, &tls.Config{ServerName: "maya.localhost"}))
	if _, err := io.ReadAll(visitor); err != nil {
		t.Error(err)
	}
	_ = l.(*net.TCPListener).SetDeadline(time.Now())
	if conn, err := l.Accept(); err == nil {
		_ = conn.Close()
		t.Error("a visitor is passed on to it")
	}
}

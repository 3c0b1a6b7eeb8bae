package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// An app that takes connections of the whole network is not only its owner's: whatever
// tells of it says so, with what to type instead, until it listens here alone.
func TestOpenInNetwork(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	port := strconv.Itoa(programs.FreePort(t)) // where nobody else listens between two of its apps
	everywhere := programs.Got(net.Listen("tcp", "0.0.0.0:"+port))(t)
	app := httptest.NewUnstartedServer(http.HandlerFunc(greets))
	app.Listener.Close()
	app.Listener = everywhere
	app.Start()
	t.Cleanup(app.Close)
	said := "Other computers in your network can open port " + port + " directly, without signing in. To keep it to this computer, "
	tells := func(out string, is bool) {
		t.Helper()
		if strings.Contains(out, said) != is || strings.Contains(out, "Only you") == is {
			t.Errorf("open in the network %v, and it says:\n%s", is, out)
		}
	}
	s.ok("publish", "notes", "--port", port)
	tells(s.ok("approve", "notes"), true)
	for _, command := range []string{"apps", "doctor"} {
		if _, out, _ := s.run(command); !strings.Contains(out, said) {
			t.Errorf("%s says:\n%s", command, out)
		}
	}
	s.wants(0, `"network": true`, "apps", "--json")
	p := inProcess(t, s.dir, "share", port, "--name", "shop").onPipes()
	p.says(said)
	p.says("Nobody but this computer reaches that address") // which other computers pass by
	p.stops(syscall.SIGINT)

	app.Close()
	p = inProcess(t, s.dir, "share", port, "--name", "late").onPipes()
	p.says("At its address, only you can open it.")
	p.says("Ctrl-C takes it off")
	everywhere = programs.Got(net.Listen("tcp", "0.0.0.0:"+port))(t)
	late := &http.Server{Handler: http.HandlerFunc(greets)}
	go late.Serve(everywhere)
	t.Cleanup(func() { late.Close() })
	s.browse(onceLink.FindString(p.output()))
	p.says(said) // as soon as somebody has come
	p.stops(syscall.SIGINT)
	late.Close()

	here := programs.Got(net.Listen("tcp", "127.0.0.1:"+port))(t)
	again := &http.Server{Handler: http.HandlerFunc(greets)}
	go again.Serve(here)
	t.Cleanup(func() { again.Close() })
	programs.Eventually(t, "it is told no more", func() bool {
		var apps []struct{ Network bool }
		return json.Unmarshal([]byte(s.ok("apps", "--json")), &apps) == nil && len(apps) == 1 && !apps[0].Network
	})
	tells(s.ok("approve", "notes"), false)
	if app := s.ownerApp("notes"); app.NetworkDetail != "" || app.Status != agentapi.StatusLive {
		t.Errorf("%+v", app)
	}
}

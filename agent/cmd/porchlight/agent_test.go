package main

import (
	"strings"
	"testing"

	"porchlight/internal/commandline"
)

// TestBundledFindsTheOneThatRuns: an app that brings Porchlight along starts it
// without knowing whether one runs; it attaches to the one that does.
func TestBundledFindsTheOneThatRuns(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	code, out, errOut := s.run("agent", "--local", "--first-party", "com.example.wiki", "--api", "127.0.0.1:0", "--https", "127.0.0.1:0")
	if code != 0 || errOut != "" || !strings.HasPrefix(out, "Porchlight already runs here (headless, pid ") || !strings.Contains(out, "; attach to it at 127.0.0.1:") {
		t.Errorf("exit %d\nout: %s\nerr: %s", code, out, errOut)
	}
}

// TestConnectRefusesANameAtOnce: nobody waits ten minutes for a page that cannot
// give the name.
func TestConnectRefusesANameAtOnce(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	code, out, errOut := s.run("connect", "https://control.localhost:1", "--name", "Bad Name")
	if code != commandline.ExitRefused || out != "" || !strings.Contains(errOut, `"Bad Name" cannot be one`) {
		t.Errorf("exit %d\nout: %s\nerr: %s", code, out, errOut)
	}
}

func TestAgentCommandLine(t *testing.T) {
	t.Parallel()
	s := shell{t, t.TempDir()}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"agent", "--local", "--control", "https://control.example.net"}, commandline.ExitUsage, "not both"},
		{[]string{"agent", "--control", "http://control.example.net", "--api", "127.0.0.1:0"}, commandline.ExitRefused, "https://control.example.net"},
		{[]string{"agent", "--local", "--ca", s.dir + "/absent.pem"}, commandline.ExitRefused, "certificate authority"},
		{[]string{"connect"}, commandline.ExitUsage, "URL"},
		{[]string{"connect", "https://control.example.net"}, commandline.ExitNotRunning, "not running"},
		{[]string{"disconnect"}, commandline.ExitNotRunning, "not running"},
	} {
		code, out, errOut := s.run(tt.args...)
		if code != tt.code || !strings.Contains(errOut, tt.want) || out != "" {
			t.Errorf("porchlight %s: exit %d, want %d\nout: %s\nerr: %s", strings.Join(tt.args, " "), code, tt.code, out, errOut)
		}
	}
}

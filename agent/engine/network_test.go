package engine

import (
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// A request and an app say that the network opens their port, with what their program
// takes instead; an app at a unix socket does not, and neither does one that listens here.
func TestInNetwork(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	open := map[int]bool{8000: true}
	d.cfg.Network = func() map[int]bool { return open }
	d.publish(t, agentapi.StatusPending)
	d.lookNow()
	for _, how := range []string{"asks", "is on"} {
		app := d.apps.OwnerApps(nil)[0]
		if !app.Network || !strings.Contains(app.NetworkDetail, "open port 8000 directly, without signing in.") || !strings.Contains(app.NetworkDetail, "http.server 8000 --bind 127.0.0.1") {
			t.Errorf("it %s: %+v", how, app.InNetwork)
		}
		programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
	}
	if seen, err := d.apps.PortSeen(t.Context(), 8000); err != nil || !seen.Network {
		t.Errorf("the port: %+v, %v", seen, err)
	}
	open = nil
	programs.Must(t, second(d.apps.Pause(t.Context(), "notes"))) // a change is looked at anew
	if app := d.apps.OwnerApps(nil)[0]; app.Network || app.NetworkDetail != "" {
		t.Errorf("here alone: %+v", app.InNetwork)
	}
	open = map[int]bool{8000: true}
	programs.Must(t, second(d.apps.ChangeOptions(t.Context(), "notes", func(o *agentapi.AppOptions) { o.Upstream = "unix:/run/notes.sock" })))
	if app := d.apps.OwnerApps(nil)[0]; app.Network {
		t.Errorf("at a socket: %+v", app.InNetwork)
	}
}

func TestKeepHere(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"python3.11": "--bind 127.0.0.1", "node": "-H 127.0.0.1 (Next)", "node.exe": "listen(8000, '127.0.0.1')", "php8.2": "php -S 127.0.0.1:8000",
		"ruby3.1": "rails server -b 127.0.0.1", "docker-proxy": "-p 127.0.0.1:8000:PORT", "caddy": "host, bind or listen", "": "host, bind or listen",
	} {
		if got := keepHere("8000", program).String(); !strings.Contains(got, want) {
			t.Errorf("%s: %q", program, got)
		}
	}
}

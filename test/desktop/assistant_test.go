//go:build rig

package desktop

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"os/user"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"porchlight/test/programs"
)

// A coding agent asks through porchlight mcp and waits. The owner reads in the tray that one
// does, and what the system tells of it, and approves there: the call ends with the address,
// which opens to the owner alone. The agent takes it off again, and asks nobody the next time.
func TestACodingAgentAsks(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launch()
	s.trayShows("No app is on", true)
	cmd := exec.Command(cli(t), "mcp", "--data", p.data)
	cmd.Env = s.env
	agent := programs.Got(mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "2"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil))(t)
	t.Cleanup(func() { agent.Close() })
	type standing struct {
		Status, URL string
		failed      error
	}
	call := func(tool string, in map[string]any) <-chan standing {
		done := make(chan standing, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			defer cancel()
			var out standing
			answer, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
			if err == nil && answer.IsError {
				err = errors.New(answer.Content[0].(*mcp.TextContent).Text)
			}
			if err == nil {
				raw, _ := json.Marshal(answer.StructuredContent)
				err = json.Unmarshal(raw, &out)
			}
			out.failed = err
			done <- out
		}()
		return done
	}
	notes := map[string]any{"name": "notes", "label": "Notes", "port": webApp(t, "notes"), "wait": true}
	published := call("publish", notes)

	asks := "Asked for by porchlight, run by " + programs.Got(user.Current())(t).Username + "."
	const claims = "A coding agent asks. It calls itself “claude-code”."
	if body := p.notified("Notes wants an address"); !strings.Contains(body, asks+" "+claims) {
		t.Errorf("the notification says %q", body)
	}
	s.trayShows("Notes wants an address > "+asks, true)
	s.trayShows("Notes wants an address > A coding agent asks.", true) // a line for each sentence
	s.trayShows("Notes wants an address > It calls itself “claude-code”.", true)
	p.isStill("notes", "pending")
	s.trayClick("Notes wants an address > Approve")
	on := <-published
	if on.failed != nil || on.Status != "live" || on.URL != p.address("notes") {
		t.Fatalf("approved: %+v", on)
	}
	p.answers(p.ownersBrowser("notes"), on.URL, 200)
	stranger := programs.Got(p.guest().Once(navigation(t, on.URL)))(t)
	stranger.Body.Close()
	if stranger.StatusCode/100 != 3 {
		t.Errorf("a stranger got %s", stranger.Status)
	}

	if off := <-call("stop", map[string]any{"name": "notes"}); off.failed != nil || off.Status != "stopped" {
		t.Errorf("stopped: %+v", off)
	}
	s.trayShows("Notes: off", true)
	if again := <-call("publish", notes); again.failed != nil || again.Status != "live" {
		t.Errorf("again: %+v", again)
	}
	s.trayShows("Notes wants an address", false)
	programs.Must(t, agent.Close())
	p.isStill("notes", "live") // the owner approved the app, and not the conversation
}

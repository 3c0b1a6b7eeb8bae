//go:build clients

package clients

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// An assistant that knows an app's address alone, and the id and secret that the operator
// issued, or a public one's id, finds the way in by itself, and its tool calls are its
// person's.
func TestAssistantFromTheBareAddress(t *testing.T) {
	h := emptyHouse(t)
	h.signIn(t)
	h.porchlight(t, "publish", "mcp", "--label", "Notes", "--port", startMCP(t))
	h.porchlight(t, "publish", "other", "--port", startMCP(t))
	h.porchlight(t, "approve", "mcp")
	h.porchlight(t, "approve", "other")
	address := "https://mcp." + h.account.Host + "/mcp"
	back := startBack(t)
	for kind, client := range map[string]registered{
		"confidential": h.issue(t, "Assistant", back),
		"public":       h.issuePublic(t, "Assistant", "http://127.0.0.1/callback", back), // at another port
	} {
		t.Run(kind, func(t *testing.T) {
			sdk := h.start(t, "node/mcp.mjs", client)

			asks := sdk.order(t, map[string]any{"do": "begin", "url": address}).URL
			if !strings.HasPrefix(asks, h.account.AuthURL+"/oauth/authorize?") {
				t.Fatalf("it leads to %s", asks)
			}
			back := h.allow(t, asks, "Assistant")
			got := sdk.order(t, map[string]any{"do": "finish", "callback": back, "url": address})
			var called struct {
				Headers map[string]string
				Counted []int
			}
			programs.Must(t, json.Unmarshal([]byte(got.Body), &called))
			for name, want := range map[string]string{
				"x-service-user": h.account.AccountID, "x-service-email": h.account.Email, "x-service-name": h.account.Name,
				"x-service-app": "Notes", "x-service-role": "owner", "authorization": "",
			} {
				if called.Headers[name] != want {
					t.Errorf("the tool sees %s %q, want %q", name, called.Headers[name], want)
				}
			}
			if !slices.Equal(called.Counted, []int{1, 2, 3}) {
				t.Errorf("of the stream it heard %v", called.Counted)
			}

			for _, name := range []string{"other", "none"} { // it was let into one app
				elsewhere := sdk.order(t, map[string]any{"do": "call", "url": "https://" + name + "." + h.account.Host + "/mcp"})
				if about := `resource_metadata="https://` + name + "."; elsewhere.Status != 401 || !strings.Contains(elsewhere.Body, about) {
					t.Errorf("at %s: %d %s", name, elsewhere.Status, elsewhere.Body)
				}
			}

			h.revokeAll(t)
			refused := sdk.order(t, map[string]any{"do": "call", "url": address})
			for deadline := time.Now().Add(10 * time.Second); refused.Status != 401 && time.Now().Before(deadline); { // within one poll
				refused = sdk.order(t, map[string]any{"do": "call", "url": address})
			}
			if about := `resource_metadata="https://mcp.` + h.account.Host + `/.well-known/oauth-protected-resource/mcp"`; refused.Status != 401 ||
				!strings.Contains(refused.Body, `error="invalid_token"`) || !strings.Contains(refused.Body, about) {
				t.Errorf("after revoking: %d %s", refused.Status, refused.Body)
			}
		})
	}
}

// startMCP runs the SDK's server until the test ends, and returns its port.
func startMCP(t testing.TB) (port string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "node/mcpserver.mjs")
	cmd.Stderr = t.Output()
	in := programs.Got(cmd.StdinPipe())(t)
	out := programs.Got(cmd.StdoutPipe())(t)
	programs.Must(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	port = programs.Got(bufio.NewReader(out).ReadString('\n'))(t)
	return strings.TrimSpace(port)
}

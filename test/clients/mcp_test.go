//go:build clients

package clients

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/internet"
	"porchlight/test/programs"
)

// assistant is an MCP client by an official SDK.
type assistant interface {
	// begin returns where its person is to consent before it can use an address.
	begin(t testing.TB, address string) string
	// finish takes where the browser came back to, and calls the tools at the address.
	finish(t testing.TB, callback, address string) (token string, got called)
}

// nodeAssistant is one by the TypeScript SDK.
type nodeAssistant struct{ sdk *process }

func (a nodeAssistant) begin(t testing.TB, address string) string {
	t.Helper()
	return a.sdk.order(t, map[string]any{"do": "begin", "url": address}).URL
}

func (a nodeAssistant) finish(t testing.TB, callback, address string) (token string, got called) {
	t.Helper()
	answer := a.sdk.order(t, map[string]any{"do": "finish", "callback": callback, "url": address})
	programs.Must(t, json.Unmarshal([]byte(answer.Body), &got))
	return answer.Tokens.AccessToken, got
}

// An assistant by either official SDK that knows an app's address alone, and the id and
// secret that the operator issued, or a public one's id, finds the way in by itself to a
// server of either; so does one that nobody registered and that describes itself. Its person
// consents in a real browser, and its tool calls are theirs. It is let into that app of that
// computer alone, until its grant is revoked.
func TestAssistantFromTheBareAddress(t *testing.T) {
	if !internet.Inside() {
		binDir(t)
		err := internet.Again(t.Context(), nil, "-test.run=^TestAssistantFromTheBareAddress$", "-test.v")
		if errors.Is(err, internet.ErrMayNot) {
			t.Skip(err)
		}
		programs.Must(t, err)
		return
	}
	in := programs.Got(internet.Open(t.Context(), t.TempDir()))(t)
	programs.Must(t, in.Serve(t.Context(), "assistant.example", http.HandlerFunc(describe)))
	browser := startChromium(t)
	ports := map[string]string{"node": startMCP(t), "go": startGoMCP(t)}
	for place, start := range map[string]func(t testing.TB, env ...string) (h, other *house){
		"local":     func(t testing.TB, env ...string) (h, other *house) { return emptyHouse(t, env...), nil },
		"connected": connectedHouses,
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			h, other := start(t, "SSL_CERT_FILE="+in.CA)
			programs.Must(t, h.node.Run(nil, "client", "allow", "assistant.example"))
			for app, port := range ports {
				h.porchlight(t, "publish", app, "--label", "Notes by "+app, "--port", port)
				h.porchlight(t, "approve", app)
				h.porchlight(t, "options", app, "--mcp", "/mcp")
			}
			elsewhere := map[string]*house{"https://none." + h.account.Host: h}
			for app := range ports {
				elsewhere["https://"+app+"."+h.account.Host] = h
			}
			if other != nil {
				other.porchlight(t, "publish", "go", "--label", "Notes by go", "--port", ports["go"])
				other.porchlight(t, "approve", "go")
				elsewhere["https://go."+other.account.Host] = other
			}
			tab, back, client := browser.tab(t), startBack(t), h.client(t)
			var streams []*bufio.Reader
			var tokens []string
			for _, way := range []struct{ sdk, app, kind string }{
				{"TypeScript", "go", "confidential"}, {"TypeScript", "node", "public"}, {"TypeScript", "node", "described"},
				{"Go", "node", "confidential"}, {"Go", "go", "public"}, {"Go", "node", "described"},
			} {
				name := way.sdk + " " + way.kind
				shown := name
				var issued registered
				switch way.kind {
				case "confidential":
					issued = h.issue(t, name, back)
				case "public":
					issued = h.issuePublic(t, name, "http://127.0.0.1/callback", back) // at another port
				case "described":
					shown = "assistant.example"
					issued = registered{AuthURL: h.account.AuthURL, ClientID: "https://assistant.example/" + way.sdk, RedirectURI: back, Authentication: "described"}
				}
				var sdk assistant
				if way.sdk == "Go" {
					sdk = h.goAssistant(t, issued)
				} else {
					sdk = nodeAssistant{h.start(t, "node/mcp.mjs", issued)}
				}
				address := "https://" + way.app + "." + h.account.Host
				asks := sdk.begin(t, address+"/mcp")
				if !strings.HasPrefix(asks, h.account.AuthURL+"/oauth/authorize?") {
					t.Fatalf("%s: it leads to %s", name, asks)
				}
				token, got := sdk.finish(t, h.consent(t, tab, asks, shown, "Notes by "+way.app, back), address+"/mcp")
				h.isTheirs(t, name, "Notes by "+way.app, got)
				for at, there := range elsewhere {
					if at != address {
						isRefused(t, there.client(t), at, token)
					}
				}
				if way.app == "go" {
					streams, tokens = append(streams, opens(t, client, address+"/events", token)), append(tokens, token)
				}
			}

			h.porchlight(t, "grants", "revoke", h.grantOf(t, "TypeScript confidential"))
			cut := make(chan struct{})
			go func() { defer close(cut); _, _ = io.Copy(io.Discard, streams[0]) }()
			select {
			case <-cut:
			case <-time.After(programs.Patience):
				t.Fatal("the stream of a grant that was revoked goes on")
			}
			isRefused(t, client, "https://go."+h.account.Host, tokens[0])
			for range 10 {
				if line, err := streams[1].ReadString('\n'); err != nil {
					t.Fatalf("the other grant's stream: %q, %v", line, err)
				}
			}
			for app := range ports { // the probe has found the same
				programs.Eventually(t, "what MCP it speaks is said", func() bool {
					return strings.Contains(h.porchlight(t, "apps"), "Notes by "+app+" speaks MCP at /mcp (version 2025-11-25) and calls itself “notes”.")
				})
			}
		})
	}
}

// describe answers with what a client says of itself at the address that is its id.
func describe(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"client_id": "https://assistant.example" + r.URL.Path, "client_name": "Assistant", "redirect_uris": []string{"http://127.0.0.1/callback"},
		"token_endpoint_auth_method": "none",
	})
}

// isTheirs says what the tools saw and sent: the owner's five headers and nothing of the
// token, and a stream of three.
func (h *house) isTheirs(t testing.TB, name, app string, got called) {
	t.Helper()
	for header, want := range map[string]string{
		"x-service-user": h.account.AccountID, "x-service-email": h.account.Email, "x-service-name": h.account.Name,
		"x-service-app": app, "x-service-role": "owner", "authorization": "",
	} {
		if got.Headers[header] != want {
			t.Errorf("%s: the tool sees %s %q, want %q", name, header, got.Headers[header], want)
		}
	}
	if !slices.Equal(got.Counted, []int{1, 2, 3}) {
		t.Errorf("%s: of the stream it heard %v", name, got.Counted)
	}
}

// grantOf is the id of a client's grant.
func (h *house) grantOf(t testing.TB, client string) string {
	t.Helper()
	var grants []agentapi.Grant
	programs.Must(t, h.agent.Run(&grants, "grants"))
	for _, g := range grants {
		if g.ClientName == client {
			return g.ID
		}
	}
	t.Fatalf("no grant of %s is among %+v", client, grants)
	return ""
}

// get asks with a token.
func get(t testing.TB, client *http.Client, address, token string) *http.Response {
	t.Helper()
	req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	req.Header.Set("Authorization", "Bearer "+token)
	res := programs.Got(client.Do(req))(t)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// isRefused says that a token opens nothing at an address, which says where it would begin.
func isRefused(t testing.TB, client *http.Client, at, token string) {
	t.Helper()
	res := get(t, client, at+"/mcp", token)
	challenge := res.Header.Get("WWW-Authenticate")
	if about := `resource_metadata="` + at + `/.well-known/oauth-protected-resource/mcp"`; res.StatusCode != http.StatusUnauthorized ||
		!strings.Contains(challenge, `error="invalid_token"`) || !strings.Contains(challenge, about) {
		t.Errorf("at %s: %s %s", at, res.Status, challenge)
	}
}

// opens opens a stream, and returns when it has begun.
func opens(t testing.TB, client *http.Client, address, token string) *bufio.Reader {
	t.Helper()
	res := get(t, client, address, token)
	stream := bufio.NewReader(res.Body)
	if line, err := stream.ReadString('\n'); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %q, %v", address, res.Status, line, err)
	}
	return stream
}

// startMCP runs the TypeScript SDK's server until the test ends, and returns its port.
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

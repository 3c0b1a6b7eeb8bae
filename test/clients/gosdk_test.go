//go:build clients

package clients

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// goAssistant is an MCP client by the official Go SDK that knows an address and what the
// operator issued.
type goAssistant struct {
	http    *http.Client
	handler *auth.AuthorizationCodeHandler
	asks    chan string // where the person is to consent
	backs   chan string // where the browser came back to
	called  chan called
	failed  chan error
}

// called is what an assistant's tool calls were answered.
type called struct {
	Headers map[string]string
	Counted []int
}

func (h *house) goAssistant(t testing.TB, client registered) *goAssistant {
	t.Helper()
	a := &goAssistant{http: h.client(t), asks: make(chan string, 1), backs: make(chan string, 1), called: make(chan called, 1), failed: make(chan error, 1)}
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: client.RedirectURI, Client: a.http,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			a.asks <- args.URL
			select {
			case callback := <-a.backs:
				back, err := url.Parse(callback)
				if err != nil {
					return nil, err
				}
				q := back.Query()
				return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
	switch {
	case client.Authentication == "described":
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: client.ClientID}
	case client.ClientSecret != "":
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: client.ClientID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: client.ClientSecret}}
	default:
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: client.ClientID}
	}
	a.handler = programs.Got(auth.NewAuthorizationCodeHandler(config))(t)
	return a
}

// client finds *.localhost, and trusts what the house does.
func (h *house) client(t testing.TB) *http.Client {
	transport := controlapi.NewTransport(h.roots)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (a *goAssistant) begin(t testing.TB, address string) string {
	t.Helper()
	programs.Run(t, func(ctx context.Context) error {
		got, err := a.call(ctx, address)
		if err != nil {
			a.failed <- err
			return nil
		}
		a.called <- got
		return nil
	})
	select {
	case asks := <-a.asks:
		return asks
	case err := <-a.failed:
		t.Fatal(err)
	}
	return ""
}

func (a *goAssistant) finish(t testing.TB, callback, _ string) (token string, got called) {
	t.Helper()
	a.backs <- callback
	select {
	case got = <-a.called:
	case err := <-a.failed:
		t.Fatal(err)
	}
	source, err := a.handler.TokenSource(t.Context())
	programs.Must(t, err)
	return programs.Got(source.Token())(t).AccessToken, got
}

// call connects and calls both tools.
func (a *goAssistant) call(ctx context.Context, address string) (got called, err error) {
	counted := make(chan int, 10)
	client := mcp.NewClient(&mcp.Implementation{Name: "assistant", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { counted <- int(r.Params.Progress) },
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: a.http, OAuthHandler: a.handler}, nil)
	if err != nil {
		return got, err
	}
	defer session.Close()
	who, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "whoami"})
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal([]byte(who.Content[0].(*mcp.TextContent).Text), &got.Headers); err != nil {
		return got, err
	}
	count := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{}}
	count.SetProgressToken("one")
	if _, err = session.CallTool(ctx, count); err != nil {
		return got, err
	}
	for len(got.Counted) < 3 {
		select {
		case n := <-counted:
			got.Counted = append(got.Counted, n)
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
	slices.Sort(got.Counted) // the SDK hands each on in a goroutine of its own
	return got, nil
}

// startGoMCP serves the tools of node/mcpserver.mjs by the official Go SDK, with sessions,
// and at /events a stream that goes on. It answers any host.
func startGoMCP(t testing.TB) (port string) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		seen := map[string]string{}
		for name, values := range r.Extra.Header {
			seen[strings.ToLower(name)] = strings.Join(values, ", ")
		}
		text, err := json.Marshal(seen)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, err
	})
	mcp.AddTool(server, &mcp.Tool{Name: "count"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for n := range 3 {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n + 1), Total: 3})
			if err != nil {
				return nil, nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "three"}}}, nil, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}))
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, "data: on\n\n")
			http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return strconv.Itoa(portOf(s))
}

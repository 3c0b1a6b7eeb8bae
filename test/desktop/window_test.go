//go:build rig

package desktop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

const guest = "bob@example.com"

// The owner's day in the window, driven in the real program: what came of each press
// is asked of a visitor's browser, of a remote client and of the command line, never
// of the window.
func TestW5_W6_Window(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launchDriven()
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.trayShows("Notes wants an address", true)
	p.openWindow()
	p.enter(p.named("button", "Approve"))
	p.is("notes", "live")
	address := p.address("notes")
	bob := p.guest()

	t.Run("invite", func(t *testing.T) {
		p.view("People")
		p.pressButton("Invite")
		p.write("E-mail addresses", guest)
		p.press(p.named("input", "Notes"))
		p.pressButton("Send invitation")
		page, err := bob.Open(t.Context(), p.mailed(guest))
		programs.Must(t, err)
		if page, err = bob.Submit(t.Context(), page, "token", nil); err != nil || page.Body != "notes for member" {
			t.Fatalf("the invitation led to %+v, %v", page, err)
		}
		p.shot("people")
	})

	t.Run("flip an app", func(t *testing.T) {
		p.pressButton("Apps for " + guest)
		flip := p.named("input", "Notes for "+guest)
		p.press(flip)
		p.opens(bob, address, false)
		p.see(flip + ":not(:disabled)")
		p.press(flip)
		p.opens(bob, address, true)
	})

	var token string
	t.Run("connect an assistant", func(t *testing.T) {
		p.view("Apps")
		p.pressButton("Notes")
		p.pressButton("Connect an assistant…")
		p.press(p.named("input", "Cursor"))
		p.shot("assist")
		p.pressButton("Make its id")
		p.named("[role=group]", "Its client id")
		p.shot("assist-id")
		var told agentapi.Assistance
		p.ask(&told, "assist", "notes")
		cursor := told.Assistants[3]
		if cursor.Name != "Cursor" || cursor.ClientID == "" || !strings.Contains(cursor.Paste, cursor.ClientID) {
			t.Errorf("Cursor is told %+v", cursor)
		}
		token = p.connectClient("Pocket Notes")
		p.asClient(token, address)
		p.named("[role=status]", "Pocket Notes has called. It works.")
		p.pressButton("Done")
	})

	t.Run("revoke a connected app", func(t *testing.T) {
		client := func() string { return p.asClient(token, address) }
		if got := client(); got != "200 notes for owner" {
			t.Fatalf("the client got %q", got)
		}
		p.view("Connected apps")
		p.pressButton("Revoke Pocket Notes")
		p.shot("revoke-client")
		p.press(p.named("dialog button", "Revoke"))
		p.eventually("the client is shut out", func() error {
			if got := client(); !strings.HasPrefix(got, "401 ") {
				return errors.New(got)
			}
			return nil
		})
		var grants []any
		if p.ask(&grants, "grants"); len(grants) != 0 {
			t.Errorf("the grants after it: %v", grants)
		}
	})

	t.Run("go dark and light up", func(t *testing.T) {
		p.press(p.named("input", "Go dark"))
		p.opens(bob, address, false)
		p.shot("dark")
		p.pressButton("Light up again")
		p.opens(bob, address, true)
	})

	t.Run("pause and resume", func(t *testing.T) {
		p.view("Apps")
		p.named("h2", "On") // the page knows by now that it is not dark
		p.pressButton("Notes")
		p.pressButton("Pause")
		p.opens(bob, address, false)
		p.pressButton("Resume")
		p.opens(bob, address, true)
	})

	t.Run("remove", func(t *testing.T) {
		p.view("People")
		p.pressButton("Remove " + guest)
		p.opens(bob, address, false)
		var people struct {
			Members []struct{ Email, Status string }
		}
		p.ask(&people, "people", "list")
		if fmt.Sprint(people.Members[len(people.Members)-1]) != fmt.Sprint(struct{ Email, Status string }{guest, "revoked"}) {
			t.Errorf("the people after it: %+v", people.Members)
		}
	})

	t.Run("revoke the app", func(t *testing.T) {
		p.view("Apps")
		p.pressButton("Notes")
		p.press(p.named("main button", "Revoke…"))
		p.press(p.named("dialog button", "Revoke"))
		p.is("notes", "")
		p.named("h1", "Apps")
	})
}

// enter presses the Enter key on what matches.
func (p *page) enter(css string) {
	p.t.Helper()
	p.types(css, "\ue007")
}

// opens waits until a visitor gets the app, or something else.
func (p *program) opens(who *visitor.Visitor, address string, want bool) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%s opens: %v", address, want), func() error {
		page, err := who.Open(context.Background(), address)
		got := err == nil && page.Status == http.StatusOK && strings.HasPrefix(page.Body, "notes for ")
		if got != want {
			return fmt.Errorf("%+v, %w", page, err)
		}
		return nil
	})
}

// ask runs the command line on this data directory and reads what it prints.
func (p *program) ask(answer any, args ...string) {
	p.t.Helper()
	out := p.mustTool(cli(p.t), append(args, "--json", "--data", p.data)...)
	if err := json.Unmarshal([]byte(out), answer); err != nil {
		p.t.Fatalf("porchlight %v: %v: %s", args, err, out)
	}
}

// connectClient has the owner let a remote client in, through the pages of the
// real endpoints, and returns its access token.
func (p *program) connectClient(name string) (token string) {
	p.t.Helper()
	return p.connectClientIn(p.guest(), name)
}

// connectClientIn is connectClient in a browser where the owner may be signed in.
func (p *program) connectClientIn(owner *visitor.Visitor, name string) (token string) {
	p.t.Helper()
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "Done.") }))
	p.t.Cleanup(back.Close)
	var account struct{ Email string }
	p.ask(&account, "account")
	return p.let(owner, account.Email, p.newClient(name, back.URL+"/callback"))
}

// remoteClient is one that the operator registered.
type remoteClient struct {
	name string
	oauth2.Config
}

func (p *program) newClient(name, redirect string) remoteClient {
	p.t.Helper()
	var client struct{ ClientID, ClientSecret string }
	control := filepath.Join(filepath.Dir(cli(p.t)), "porchlight-control")
	data := filepath.Join(p.data, "control")
	if p.plane != nil {
		data = p.plane.Data
	}
	out := p.mustTool(control, "client", "add", "--name", name, "--redirect-uri", redirect, "--data", data, "--json")
	if err := json.Unmarshal([]byte(out), &client); err != nil {
		p.t.Fatalf("client add: %v: %s", err, out)
	}
	var account struct{ AuthURL string }
	p.ask(&account, "account")
	return remoteClient{name, oauth2.Config{
		ClientID: client.ClientID, ClientSecret: client.ClientSecret, RedirectURL: redirect, Scopes: []string{"connect"},
		Endpoint: oauth2.Endpoint{AuthURL: account.AuthURL + "/oauth/authorize", TokenURL: account.AuthURL + "/oauth/token"},
	}}
}

// let has somebody let a client in, in a browser where they may be signed in, and returns
// its access token.
func (p *program) let(who *visitor.Visitor, email string, client remoteClient) (token string) {
	p.t.Helper()
	ctx := p.t.Context()
	verifier := oauth2.GenerateVerifier()
	consent := client.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier))
	page, err := who.Open(ctx, consent)
	if err == nil && !strings.Contains(page.Body, "Allow "+client.name) { // not signed in yet
		page, err = who.SignIn(ctx, consent, email, p.inbox())
	}
	programs.Must(p.t, err)
	var back *url.URL
	page, err = who.Submit(ctx, page, "computer", map[string]string{"decision": "allow"})
	if tried, ok := errors.AsType[*url.Error](err); ok { // a scheme of its own, which no browser speaks
		back, err = url.Parse(tried.URL)
	} else if err == nil {
		back = page.URL
	}
	programs.Must(p.t, err)
	exchange := context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: asTransport{p.guest()}})
	tokens, err := client.Exchange(exchange, back.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		p.t.Fatalf("consent led to %s: %v", back, err)
	}
	return tokens.AccessToken
}

// asClient opens an address with a remote client's token and returns status and
// body, or why there was no answer.
func (p *program) asClient(token, address string) string {
	p.t.Helper()
	return p.asProgram(address, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
}

// asProgram opens an address in no browser, signed in as by says.
func (p *program) asProgram(address string, by func(*http.Request)) string {
	p.t.Helper()
	req := programs.Got(http.NewRequestWithContext(p.t.Context(), http.MethodGet, address, nil))(p.t)
	by(req)
	resp, err := p.guest().Do(req)
	if err != nil {
		return err.Error() // cut while it was answered, for one
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

// asTransport lets a library send its requests through a visitor, who finds
// *.localhost.
type asTransport struct{ *visitor.Visitor }

func (v asTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := req.Clone(req.Context())
	sent.RequestURI = ""
	return v.Do(sent)
}

package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// TestRemoteClient is the whole way of an app elsewhere: its person consents in
// a browser, it gets tokens by code and PKCE, opens a published app with them
// through the relay, refreshes, and is shut out within one poll cycle of being
// revoked, what it had open included.
func TestRemoteClient(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	ctx := t.Context()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"User", "Email", "Name", "App", "Role"} {
			fmt.Fprintf(w, "%s=%s|", name, strings.Join(r.Header["X-Service-"+name], ","))
		}
		fmt.Fprintln(w, r.Header.Get("Authorization"))
		if r.URL.Path == "/stream" {
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(app.Close)
	h.port = portOf(t, app.Listener.Addr().String())
	address := h.publish(t)
	account := h.agent.Account()

	// Where the client waits for its code.
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "You can close this window.") }))
	t.Cleanup(back.Close)
	client, secret, err := h.plane.Service.Clients.Add(ctx, "Pocket Notes", []string{back.URL + "/callback"})
	if err != nil {
		t.Fatal(err)
	}
	transport := controlapi.NewTransport(h.plane.ca.Pool()) // finds *.localhost
	t.Cleanup(transport.CloseIdleConnections)
	remote := &http.Client{Transport: transport}
	clientCtx := context.WithValue(ctx, oauth2.HTTPClient, remote)
	config := oauth2.Config{
		ClientID: client.ID, ClientSecret: secret, RedirectURL: back.URL + "/callback", Scopes: []string{"connect"},
		Endpoint: oauth2.Endpoint{AuthURL: account.AuthURL + "/oauth/authorize", TokenURL: account.AuthURL + "/oauth/token"},
	}

	// The person: signs in by mail, reads who asks, and allows it.
	verifier := oauth2.GenerateVerifier()
	browser := h.browser(t)
	page, err := browser.SignIn(ctx, config.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier)), account.Email, h.mailedLink(account.Email))
	if err != nil {
		t.Fatal(err)
	}
	if page.Status != http.StatusOK || !strings.Contains(page.Body, "Allow Pocket Notes") || !strings.Contains(page.Body, account.Host) {
		t.Fatalf("consent: HTTP %d at %s: %s", page.Status, page.URL, page.Body)
	}
	if page, err = browser.Submit(ctx, page, "computer", map[string]string{"decision": "allow"}); err != nil {
		t.Fatal(err)
	}
	q := page.URL.Query()
	if !strings.HasPrefix(page.URL.String(), back.URL+"/callback?") || q.Get("state") != "the state" || q.Get("code") == "" {
		t.Fatalf("consent led to %s", page.URL)
	}

	// The client.
	token, err := config.Exchange(clientCtx, q.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	if token.Extra("host") != account.Host || token.Extra("address") != account.URL || address != "https://notes."+account.Host {
		t.Errorf("host %v, address %v, published at %s", token.Extra("host"), token.Extra("address"), address)
	}
	open := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		token.SetAuthHeader(req)
		resp, err := remote.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	want := fmt.Sprintf("User=%s|Email=%s|Name=%s|App=Notes|Role=owner|\n", account.AccountID, account.Email, account.Name)
	if body, err := io.ReadAll(open("/").Body); string(body) != want {
		t.Fatalf("the app saw %q (%v), want %q", body, err, want)
	}

	// Refreshing hands out the next pair; the first goes no further.
	first := token.RefreshToken
	if token, err = config.TokenSource(clientCtx, &oauth2.Token{RefreshToken: first}).Token(); err != nil {
		t.Fatal(err)
	}
	refused := func(refresh, code string) {
		t.Helper()
		_, err := config.TokenSource(clientCtx, &oauth2.Token{RefreshToken: refresh}).Token()
		if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); !ok || refusal.ErrorCode != code || refusal.Response.StatusCode != http.StatusBadRequest {
			t.Errorf("refresh: %v, want %s", err, code)
		}
	}
	refused(first, "invalid_grant")

	// V3: revoked on the account page while a response streams.
	stream := open("/stream")
	body := bufio.NewReader(stream.Body)
	if line, err := body.ReadString('\n'); line != want {
		t.Fatalf("the stream began with %q, %v", line, err)
	}
	if page, err = browser.Open(ctx, account.AuthURL+"/account"); err != nil {
		t.Fatal(err)
	}
	if page, err = browser.Submit(ctx, page, "grant", nil); err != nil || page.Status != http.StatusOK || strings.Contains(page.Body, "Pocket Notes") {
		t.Fatalf("revoking: %+v, %v", page, err)
	}
	began := time.Now()
	refused(token.RefreshToken, "access_denied")
	if _, err := body.ReadByte(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v, as if it were whole", err)
	}
	resp := open("/")
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
		t.Errorf("after the revocation: %s", resp.Status)
	}
	t.Logf("shut out %v after the revocation", time.Since(began).Round(time.Millisecond))

	// The owner's own browser is not concerned.
	link, err := h.owner.Open(ctx, "notes")
	if err != nil {
		t.Fatal(err)
	}
	if page, err := browser.Open(ctx, link.URL); err != nil || page.Status != http.StatusOK || page.Body != want {
		t.Errorf("the owner: %+v, %v", page, err)
	}
}

// allowClient has somebody allow a remote client of their own, without the pages
// for it, and returns the client's access token.
func (r *running) allowClient(t *testing.T, email string) (token, grantID string) {
	t.Helper()
	ctx, service := t.Context(), r.plane.Service
	const back = "https://client.example/callback"
	registered, clientSecret, err := service.Clients.Add(ctx, "Pocket Notes", []string{back})
	if err != nil {
		t.Fatal(err)
	}
	account, err := service.Accounts.ByEmail(ctx, email)
	if err != nil {
		t.Fatal(err)
	}
	verifier := oauth2.GenerateVerifier()
	code, err := service.Grants.Authorize(ctx, control.Authorization{
		ClientID: registered.ID, RedirectURI: back, Challenge: oauth2.S256ChallengeFromVerifier(verifier),
	}, account, r.agent.Account().Name)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := service.Grants.Exchange(ctx, control.Credentials{ID: registered.ID, Secret: clientSecret},
		control.Exchange{Code: code, RedirectURI: back, Verifier: verifier})
	if err != nil {
		t.Fatal(err)
	}
	grants, err := service.Grants.OfAccount(ctx, account.ID)
	if err != nil || len(grants) != 1 {
		t.Fatalf("%d grants, %v", len(grants), err)
	}
	return tokens.Access, grants[0].ID
}

package local

import (
	"net/http"
	"testing"

	"golang.org/x/oauth2"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// Weakness: a client that had logged in twice went on with one of its logins
// after the person had revoked it. Two clients log in twice each; one row of the
// two that are listed is revoked: both of its access tokens and both refresh
// tokens are dead, and the other client notices nothing.
func TestRevokingAClientShutsOutAllItsLogins(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	ctx, service := t.Context(), h.plane.Service
	address := h.publish(t)
	account := h.agent.Account()
	person, err := service.Accounts.ByEmail(ctx, account.Email)
	if err != nil {
		t.Fatal(err)
	}
	const back = "https://client.example/callback"
	var clients [2]control.Credentials
	var logins [2][2]control.Tokens
	for i := range clients {
		c, secret, err := service.Clients.Add(ctx, "Client", []string{back})
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = control.Credentials{ID: c.ID, Secret: secret}
		for j := range logins[i] {
			verifier := oauth2.GenerateVerifier()
			code, err := service.Grants.Authorize(ctx, control.Authorization{
				ClientID: c.ID, RedirectURI: back, Challenge: oauth2.S256ChallengeFromVerifier(verifier),
			}, person, account.Name)
			if err != nil {
				t.Fatal(err)
			}
			logins[i][j], err = service.Grants.Exchange(ctx, clients[i], control.Exchange{Code: code, RedirectURI: back, Verifier: verifier})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	transport := controlapi.NewTransport(h.plane.ca.Pool()) // finds *.localhost
	t.Cleanup(transport.CloseIdleConnections)
	open := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for i := range clients {
		for _, login := range logins[i] {
			if got := open(login.Access); got != http.StatusOK {
				t.Fatalf("client %d gets %d", i, got)
			}
		}
	}
	rows, err := h.owner.Grants(ctx)
	if err != nil || len(rows) != 2 {
		t.Fatalf("listed %+v, %v", rows, err)
	}
	gone := 0
	if rows[1].ClientID == clients[1].ID {
		gone = 1
	}
	if _, err := h.owner.RevokeGrant(ctx, rows[1].ID); err != nil {
		t.Fatal(err)
	}
	for i := range clients {
		for j, login := range logins[i] {
			want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusOK}[i == gone]
			if got := open(login.Access); got != want {
				t.Errorf("login %d of client %d gets %d, want %d", j, i, got, want)
			}
			_, err := service.Grants.Refresh(ctx, clients[i], login.Refresh)
			if i == gone != control.IsRefusal(err, controlapi.CodeAccessDenied) || i != gone && err != nil {
				t.Errorf("login %d of client %d refreshes: %v", j, i, err)
			}
		}
	}
}

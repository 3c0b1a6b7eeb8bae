package local

import (
	"testing"

	"golang.org/x/oauth2"

	"porchlight/control"
)

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

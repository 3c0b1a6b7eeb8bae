//go:build clients

package clients

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"porchlight/test/internet"
	"porchlight/test/programs"
)

// A program that nobody registered, whose id is the address at which it describes itself,
// goes the whole way by a library that signs each request (private_key_jwt).
func TestClientThatSignsByALibrary(t *testing.T) {
	if !internet.Inside() {
		binDir(t)
		err := internet.Again(t.Context(), nil, "-test.run=^TestClientThatSignsByALibrary$", "-test.v")
		if errors.Is(err, internet.ErrMayNot) {
			t.Skip(err)
		}
		programs.Must(t, err)
		return
	}
	in := programs.Got(internet.Open(t.Context(), t.TempDir()))(t)
	h := newHouse(t, "SSL_CERT_FILE="+in.CA)
	key := jose.JSONWebKey{Key: programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t), KeyID: "one", Use: "sig", Algorithm: "ES256"}
	programs.Must(t, in.Serve(t.Context(), "assistant.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		about := map[string]any{
			"client_id": "https://assistant.example/client.json", "client_name": "Assistant", "redirect_uris": []string{"http://127.0.0.1/callback"},
			"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://assistant.example/keys",
		}
		if r.URL.Path == "/keys" {
			about = map[string]any{"keys": []jose.JSONWebKey{key.Public()}}
		}
		json.NewEncoder(w).Encode(about)
	})))
	client := registered{
		AuthURL: h.account.AuthURL, ClientID: "https://assistant.example/client.json", RedirectURI: h.back,
		Authentication: "private_key_jwt", Key: key,
	}
	library := h.start(t, "node/oauth4webapi.mjs", client)
	s := story{house: h, t: t, client: client, library: library, step: func(string, string) {}}
	h.signIn(t)
	if page, err := h.browser.Open(t.Context(), library.begin(t)); err != nil || page.Status != http.StatusBadRequest {
		t.Fatalf("of a host that is not allowed: %+v, %v", page, err)
	}
	programs.Must(t, h.agent.Node().Run(nil, "client", "allow", "assistant.example"))

	got, refused := library.finish(t, h.allow(t, library.begin(t), "assistant.example"))
	s.whole(got, refused)
	next, refused := library.refresh(t, got.RefreshToken)
	s.whole(next, refused)
	s.want("replay", func() (tokens, *refusal) { return library.refresh(t, got.RefreshToken) }, "invalid_grant", http.StatusBadRequest)
	if status, body := library.call(t, h.app); status != http.StatusOK || body != h.answer() {
		t.Fatalf("the app answered %d, %q; want %q", status, body, h.answer())
	}
	public := client
	public.Authentication, public.Key = "none", nil
	s.want("unsigned", func() (tokens, *refusal) {
		return h.start(t, "node/oauth4webapi.mjs", public).refresh(t, next.RefreshToken)
	}, "invalid_client", http.StatusBadRequest)

	if a := library.order(t, map[string]any{"do": "revoke", "token": next.RefreshToken}); a.Status != http.StatusOK {
		t.Errorf("giving it back: %+v", a)
	}
	s.want("revoked", func() (tokens, *refusal) { return library.refresh(t, next.RefreshToken) }, "access_denied", http.StatusBadRequest)
	s.shutOut()
}

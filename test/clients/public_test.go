//go:build clients

package clients

import (
	"net/http"
	"testing"
)

// A program that keeps no secret, and listens at another port than the one registered,
// goes the whole way by a library of its own, and gives its tokens back at the end.
func TestPublicClientByALibrary(t *testing.T) {
	h := newHouse(t)
	h.signIn(t)
	client := h.issuePublic(t, "Editor", "http://127.0.0.1:1/callback", h.back)
	library := h.start(t, "node/oauth4webapi.mjs", client)
	s := story{house: h, t: t, client: client, library: library, step: func(string, string) {}}

	got, refused := library.finish(t, h.allow(t, library.begin(t), "Editor"))
	s.whole(got, refused)
	next, refused := library.refresh(t, got.RefreshToken)
	s.whole(next, refused)
	s.want("replay", func() (tokens, *refusal) { return library.refresh(t, got.RefreshToken) }, "invalid_grant", http.StatusBadRequest)
	if status, body := library.call(t, h.app); status != http.StatusOK || body != h.answer() {
		t.Fatalf("the app answered %d, %q; want %q", status, body, h.answer())
	}

	liar := client
	liar.Authentication, liar.ClientSecret = "form", "not-a-secret-of-its-own"
	s.want("secret", func() (tokens, *refusal) {
		return h.start(t, "node/oauth4webapi.mjs", liar).refresh(t, next.RefreshToken)
	}, "invalid_client", http.StatusBadRequest)

	if a := library.order(t, map[string]any{"do": "revoke", "token": next.RefreshToken}); a.Status != http.StatusOK {
		t.Errorf("giving it back: %+v", a)
	}
	s.want("revoked", func() (tokens, *refusal) { return library.refresh(t, next.RefreshToken) }, "access_denied", http.StatusBadRequest)
	s.shutOut()
}

package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"

	"porchlight/control"
	"porchlight/control/clientdoc"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

const signingID = "https://assistant.example/client.json"

// signing is a client that describes itself and signs with each request (RFC 7523).
type signing struct {
	*remote
	key *ecdsa.PrivateKey
	set []byte // what is at its jwks_uri, nothing while it is away
}

func newSigning(t *testing.T) *signing { t.Helper(); return newSigningOn(t, openStore(t, "memory:")) }

func newSigningOn(t *testing.T, store kv.Store) *signing {
	t.Helper()
	s := &signing{key: programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)}
	r := newRigOn(t, store, func(c *control.Config) { c.Fetch = s.fetch })
	s.remote = r.remote(0)
	programs.Must(t, r.svc.Clients.Allow(t.Context(), "assistant.example"))
	programs.Must(t, r.svc.Clients.Describe(t.Context(), r.owner.Computer.ID, signingID))
	s.client.ID, s.config.ClientID, s.config.ClientSecret, s.config.RedirectURL = signingID, signingID, "", "http://127.0.0.1:49152/cb"
	return s
}

func (s *signing) fetch(_ context.Context, address string) ([]byte, time.Duration, error) {
	switch {
	case address == signingID:
		return fmt.Appendf(nil, `{"client_id":%q,"client_name":"Assistant","redirect_uris":["http://127.0.0.1/cb"],
			"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"https://assistant.example/keys"}`, address), time.Hour, nil
	case s.set == nil:
		return nil, 0, clientdoc.ErrAway
	}
	return s.set, time.Hour, nil
}

// publish puts the key where the document says.
func (s *signing) publish() {
	s.set = must(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.key.Public(), KeyID: "one", Use: "sig", Algorithm: "ES256"}}}))
}

// sign are the parameters that prove who the client is, once.
func (s *signing) sign() []string {
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: s.key}, (&jose.SignerOptions{}).WithHeader("kid", "one").WithType("JWT")))
	claims := josejwt.Claims{
		Issuer: signingID, Subject: signingID, Audience: josejwt.Audience{authURL}, ID: rand.Text(),
		IssuedAt: josejwt.NewNumericDate(time.Now()), Expiry: josejwt.NewNumericDate(time.Now().Add(time.Minute)),
	}
	return []string{"client_assertion_type", control.AssertionType, "client_assertion", must(josejwt.Signed(signer).Claims(claims).Serialize())}
}

// code is one that the owner allowed.
func (s *signing) code() string {
	s.t.Helper()
	account := control.Account{ID: s.owner.AccountID}
	return programs.Got(s.svc.Grants.Authorize(s.t.Context(), control.Authorization{
		ClientID: signingID, RedirectURI: s.config.RedirectURL, Challenge: challenge(),
	}, account, "maya"))(s.t)
}

// A client whose document says private_key_jwt signs each request, once, and is nobody
// without that.
func TestClientThatSigns(t *testing.T) {
	t.Parallel()
	s := newSigning(t)
	code := s.code()
	a := s.exchange(code, s.sign()...)
	if a.refused(t, http.StatusServiceUnavailable, "temporarily_unavailable"); a.Header.Get("Retry-After") != "5" {
		t.Errorf("while its keys are away: %v", a.Header)
	}
	s.publish()
	s.exchange(code, s.sign()...).refused(t, http.StatusServiceUnavailable, "temporarily_unavailable") // its host was asked a moment ago

	s = newSigning(t)
	s.publish()
	code = s.code()
	s.exchange(code).refused(t, http.StatusBadRequest, "invalid_client")
	s.exchange(code, "client_secret", "x").refused(t, http.StatusBadRequest, "invalid_client")
	s.exchange(code, append(s.sign(), "client_secret", "x")...).refused(t, http.StatusBadRequest, "invalid_client")
	s.exchange(code, append(s.sign(), "client_id", s.rig.remote(0).client.ID)...).refused(t, http.StatusBadRequest, "invalid_client")
	used := s.sign()
	tokens := s.exchange(code, used...).want(t, http.StatusOK).tokens(t)
	if claims(t, tokens.AccessToken)["client_id"] != signingID {
		t.Errorf("a token of %v", claims(t, tokens.AccessToken))
	}
	s.refresh(tokens.RefreshToken, used...).refused(t, http.StatusBadRequest, "invalid_client")
	s.refresh(tokens.RefreshToken).refused(t, http.StatusBadRequest, "invalid_client")
	tokens = s.refresh(tokens.RefreshToken, append(s.sign(), "client_id", "")...).want(t, http.StatusOK).tokens(t)

	// What went wrong has used it up as well.
	used = s.sign()
	s.refresh("unknown", used...).refused(t, http.StatusBadRequest, "invalid_grant")
	s.refresh(tokens.RefreshToken, used...).refused(t, http.StatusBadRequest, "invalid_client")

	s.revoke(tokens.RefreshToken, used...).refused(t, http.StatusBadRequest, "invalid_client")
	s.revoke(tokens.RefreshToken).refused(t, http.StatusBadRequest, "invalid_client")
	used = s.sign()
	s.revoke("unknown", used...).want(t, http.StatusOK)
	s.refresh(tokens.RefreshToken, used...).refused(t, http.StatusBadRequest, "invalid_client")
	s.revoke(tokens.RefreshToken, s.sign()...).want(t, http.StatusOK)
	s.refresh(tokens.RefreshToken, s.sign()...).refused(t, http.StatusBadRequest, "access_denied")

	// With HTTP Basic beside it, it is told so with 401.
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.RefreshToken}}
	proof := s.sign()
	form.Set(proof[0], proof[1])
	form.Set(proof[2], proof[3])
	req := s.tokenRequest(form.Encode())
	req.SetBasicAuth(signingID, "x")
	s.browser().do(req).refused(t, http.StatusUnauthorized, "invalid_client")
	form.Add(proof[2], proof[3])
	s.browser().do(s.tokenRequest(form.Encode())).refused(t, http.StatusBadRequest, "invalid_grant")

	// Its host is allowed no more.
	programs.Must(t, s.svc.Clients.Disallow(t.Context(), "assistant.example"))
	s.refresh(tokens.RefreshToken, s.sign()...).refused(t, http.StatusBadRequest, "invalid_client")
}

// Weakness: what one node has taken another one might take again. Checked on PostgreSQL, by
// both at once.
func TestAssertionAtAnotherNode(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	one, two := newSigningOn(t, openStore(t, database)), newSigningOn(t, openStore(t, database))
	one.publish()
	two.key = one.key
	one.revoke("unknown", one.sign()...).want(t, http.StatusOK) // has the keys fetched
	for range 3 {
		proof := one.sign()
		var turn atomic.Int32
		if n := race(8, func() bool {
			at := []*signing{one, two}[turn.Add(1)%2]
			a := at.revoke("unknown", proof...)
			if a.StatusCode != http.StatusOK && !a.says("invalid_client") {
				t.Errorf("%s %s", a.Status, a.body)
			}
			return a.StatusCode == http.StatusOK
		}); n != 1 {
			t.Errorf("taken %d times", n)
		}
	}
}

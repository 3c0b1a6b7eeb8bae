package web

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/control"
	"porchlight/test/programs"
)

// Weakness: after a rotation the tokens that everybody accepts did not verify with the key
// that is published, and did not say which is theirs. Checked: whoever has nothing but the
// key set verifies each token by its kid, of before and after, as long as it lives.
func TestKeySetAcrossARotation(t *testing.T) {
	t.Parallel()
	var clock lateClock
	r := newRig(t, func(c *control.Config) { c.Now = clock.Now })
	c := r.remote(0)
	verify := func(token string) error {
		var set struct{ Keys []map[string]string }
		programs.Must(t, json.Unmarshal([]byte(r.browser().get("/auth/jwks.json").want(t, http.StatusOK).body), &set))
		_, err := jwt.Parse(token, func(token *jwt.Token) (any, error) {
			for _, k := range set.Keys {
				if k["kid"] == token.Header["kid"] && k["kty"] == "OKP" && k["crv"] == "Ed25519" && k["use"] == "sig" && k["alg"] == "EdDSA" {
					return ed25519.PublicKey(must(base64.RawURLEncoding.DecodeString(k["x"]))), nil
				}
			}
			return nil, fmt.Errorf("no key %v in %v", token.Header["kid"], set.Keys)
		}, jwt.WithTimeFunc(clock.Now), jwt.WithLeeway(time.Second))
		return err
	}
	_, before := c.granted()
	programs.Must(t, r.svc.Keys.Rotate(t.Context()))
	clock.Add(2*time.Minute + time.Second)
	after := c.refresh(before.RefreshToken).tokens(t)
	if kid := func(token string) any { return claimsHeader(t, token)["kid"] }; kid(before.AccessToken) == kid(after.AccessToken) {
		t.Error("the new key does not sign")
	}
	for _, ahead := range []time.Duration{0, 470 * time.Second} { // 600 s in all
		clock.Add(ahead)
		for what, token := range map[string]string{"before": before.AccessToken, "after": after.AccessToken} {
			if err := verify(token); err != nil {
				t.Errorf("of %s the rotation, %v later: %v", what, ahead, err)
			}
		}
	}
	clock.Add(5 * time.Minute)
	if err := verify(before.AccessToken); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Errorf("the former key is still there: %v", err)
	}
}

func claimsHeader(t *testing.T, token string) map[string]any {
	t.Helper()
	parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
	programs.Must(t, err)
	return parsed.Header
}

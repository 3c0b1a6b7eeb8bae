//go:build linux

package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"porchlight/test/issuer"
)

// forge is a token of these parts, signed by who knows no key of the club's.
func forge(head map[string]any, body string, sign func(text string) []byte) string {
	raw, _ := json.Marshal(head) // strings
	text := base64.RawURLEncoding.EncodeToString(raw) + "." + body
	return text + "." + base64.RawURLEncoding.EncodeToString(sign(text))
}

func nothing(string) []byte { return nil }

// forgeries are tokens of a good one's claims, by what is wrong with them.
func (c *clubbed) forgeries(ctx context.Context, good string) (map[string]string, error) {
	parts := strings.Split(good, ".")
	if len(parts) != 3 {
		return nil, errors.New("no token to forge")
	}
	shown, err := c.shown(ctx)
	if err != nil || len(shown.Keys) != 1 {
		return nil, fmt.Errorf("the club shows no key: %w", err)
	}
	key := shown.Keys[0]
	der, err := x509.MarshalPKIXPublicKey(key.Key)
	if err != nil {
		return nil, err
	}
	asJSON, err := key.MarshalJSON()
	if err != nil {
		return nil, err
	}
	out := map[string]string{"a signature left out": parts[0] + "." + parts[1] + ".", "a signature of another": parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64))}
	for _, alg := range []string{"none", "None", "NONE", "nOnE", ""} {
		out["alg "+alg] = forge(map[string]any{"alg": alg, "kid": key.KeyID}, parts[1], nothing)
	}
	for alg, hashed := range map[string]func() hash.Hash{"HS256": sha256.New, "HS384": sha512.New384, "HS512": sha512.New} {
		for what, secret := range map[string][]byte{
			"DER": der, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "JWK": asJSON, "its id": []byte(key.KeyID), "the client's secret": []byte(issuer.Secret), "nothing": nil,
		} {
			out[alg+" by the public key, "+what] = forge(map[string]any{"alg": alg, "kid": key.KeyID}, parts[1], func(text string) []byte {
				mac := hmac.New(hashed, secret)
				io.WriteString(mac, text)
				return mac.Sum(nil)
			})
		}
	}
	claims := map[string]any{}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err := errors.Join(err, json.Unmarshal(body, &claims)); err != nil {
		return nil, err
	}
	out["another provider's key"] = c.evil.Sign("JWT", claims)
	evil := strings.Split(out["another provider's key"], ".")
	head := map[string]any{}
	raw, _ := base64.RawURLEncoding.DecodeString(evil[0])
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	for what, more := range map[string]map[string]any{
		"the club's key id": {"kid": key.KeyID}, "a key in the token": {"jwk": json.RawMessage(asJSON)}, "an address of keys": {"jku": c.evil.URL + "/keys"}, "a certificate": {"x5c": []string{"AA=="}},
		"what must be understood": {"crit": []string{"x"}, "x": 1},
	} {
		wrong := maps.Clone(head)
		maps.Copy(wrong, more)
		signature, _ := base64.RawURLEncoding.DecodeString(evil[2])
		out["another's key with "+what] = forge(wrong, parts[1], func(string) []byte { return signature })
	}
	return out, nil
}

func (c *clubbed) shown(ctx context.Context) (keys jose.JSONWebKeySet, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.club.URL+"/keys", nil)
	if err != nil {
		return keys, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return keys, err
	}
	defer res.Body.Close()
	return keys, json.NewDecoder(res.Body).Decode(&keys)
}

// signatures are ID tokens with all the right claims that the club did not sign.
func (c *clubbed) signatures(ctx context.Context) error {
	names, err := c.forgeries(ctx, c.club.Sign("JWT", owners()))
	if err != nil {
		return err
	}
	for what := range names {
		var failed error
		err := c.told(ctx, what, "token", func(answer map[string]any) {
			good, _ := answer["id_token"].(string)
			forged, err := c.forgeries(ctx, good)
			answer["id_token"], failed = forged[what], err
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// logouts sign the owner out by what is no logout token.
func (c *clubbed) logouts(ctx context.Context) error {
	victim := c.browser()
	defer victim.CloseIdleConnections()
	address, err := victim.begin(ctx, "club")
	if err != nil {
		return err
	}
	if _, _, err := victim.get(ctx, c.club.SignIn(address, owners("sid", "s1"))); err != nil {
		return err
	}
	of := func(change map[string]any) string {
		all := map[string]any{"sub": "owner", "sid": "s1"}
		maps.Copy(all, change)
		return c.club.Logout(all)
	}
	now := time.Now()
	wrong := map[string]string{
		"an ID token": c.club.Sign("JWT", map[string]any{
			"iss": c.club.URL, "aud": issuer.ClientID, "sub": "owner", "sid": "s1", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "nonce": "n", "jti": "j",
		}),
		"an ID token without a nonce": of(map[string]any{"events": nil}), "a nonce": of(map[string]any{"nonce": "n"}), "another event": of(map[string]any{"events": map[string]any{"x": map[string]any{}}}),
		"another client": of(map[string]any{"aud": "another"}), "another issuer": of(map[string]any{"iss": c.evil.URL}), "over": of(map[string]any{"exp": now.Add(-time.Minute).Unix()}),
		"of tomorrow": of(map[string]any{"iat": now.AddDate(0, 0, 1).Unix()}), "no id": of(map[string]any{"jti": nil}), "nobody": of(map[string]any{"sub": nil, "sid": nil}), "no token": "",
		"another provider's": c.evil.Logout(map[string]any{"sub": "owner", "sid": "s1"}),
		"an access token":    c.club.LogoutAs("at+jwt", map[string]any{"sub": "owner", "sid": "s1"}),
	}
	forged, err := c.forgeries(ctx, of(nil))
	if err != nil {
		return err
	}
	for what, token := range forged {
		if strings.HasPrefix(what, "alg ") || strings.HasPrefix(what, "HS256") {
			wrong[what] = token
		}
	}
	for what, token := range wrong {
		b := c.browser()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.AuthURL+"/signin/with/club/logout", strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := b.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		b.CloseIdleConnections()
		in, err := victim.in(ctx)
		if c.t.try(1); err != nil || !in || res.StatusCode != http.StatusBadRequest {
			c.t.got("a logout token: %s: HTTP %d, %v", what, res.StatusCode, err)
		}
		if !in {
			return errors.New("the owner was signed out")
		}
	}
	return nil
}

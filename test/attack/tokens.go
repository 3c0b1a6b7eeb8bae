//go:build linux

package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// claims of an access token, changed as an attack likes.
type claims map[string]any

// signer makes tokens, with the control plane's own key or without it.
type signer struct {
	key    ed25519.PrivateKey
	honest claims
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of words and numbers
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (s signer) sign(header, body claims) string { return signWith(s.key, header, body) }

func signWith(key ed25519.PrivateKey, header, body claims) string {
	text := encode(header) + "." + encode(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(text)))
}

// but is the honest claims with changes; nil takes one out.
func (s signer) but(changes claims) claims {
	out := maps.Clone(s.honest)
	for name, value := range changes {
		if out[name] = value; value == nil {
			delete(out, name)
		}
	}
	return out
}

var eddsa = claims{"alg": "EdDSA", "typ": "JWT"}

// forgeries are tokens that must open nothing, by what is wrong with them.
func (s signer) forgeries(honest string) map[string]string {
	now := time.Now().Unix()
	_, other, _ := ed25519.GenerateKey(rand.Reader)
	parts := strings.Split(honest, ".")
	public, _ := x509.MarshalPKIXPublicKey(s.key.Public()) // of a key that is one
	mac := func(key []byte) string {
		text := encode(claims{"alg": "HS256", "typ": "JWT"}) + "." + parts[1]
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	}
	sub := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(must64(parts[1])), `"sub":"`, `"sub":"x`, 1)))
	all := map[string]string{
		"alg none":                         encode(claims{"alg": "none"}) + "." + parts[1] + ".",
		"alg None with the signature":      encode(claims{"alg": "None"}) + "." + parts[1] + "." + parts[2],
		"no alg":                           encode(claims{"typ": "JWT"}) + "." + parts[1] + "." + parts[2],
		"no signature":                     parts[0] + "." + parts[1] + ".",
		"HS256 with the public key as PEM": mac(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"HS256 with the public key as DER": mac(public),
		"HS256 with the raw public key":    mac(s.key.Public().(ed25519.PublicKey)),
		"HS256 with no key":                mac(nil),
		"another subject, same signature":  parts[0] + "." + sub + "." + parts[2],
		"another key":                      signWith(other, eddsa, s.honest),
		"another key in jwk":               signWith(other, claims{"alg": "EdDSA", "jwk": claims{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(other.Public().(ed25519.PublicKey))}}, s.honest),
		"another key in jku":               signWith(other, claims{"alg": "EdDSA", "jku": "https://evil.example/keys"}, s.honest),
		"a kid that is a path":             signWith(other, claims{"alg": "EdDSA", "kid": "../../../../dev/null"}, s.honest),
		"a kid that is SQL":                signWith(other, claims{"alg": "EdDSA", "kid": "x' UNION SELECT 'y"}, s.honest),
		"an empty kid":                     signWith(other, claims{"alg": "EdDSA", "kid": ""}, s.honest),
		"a signature cut off":              honest[:len(honest)-4],
		"a signature of zeroes":            parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"padding":                          honest + "==",
		"a fourth part":                    honest + "." + parts[2],
		"another header, same signature":   encode(claims{"alg": "EdDSA", "typ": "x"}) + "." + parts[1] + "." + parts[2],
		"the claims of the refresh token":  encode(eddsa) + "." + encode(claims{"iss": "service-control"}) + "." + parts[2],
	}
	// These are signed with the right key.
	for what, changes := range map[string]claims{
		"expired":                 {"iat": now - 900, "exp": now - 300},
		"of tomorrow":             {"iat": now + 86400, "exp": now + 87000},
		"for a year":              {"exp": now + 365*86400},
		"without an end":          {"exp": nil},
		"without a beginning":     {"iat": nil},
		"for another computer":    {"aud": "evil.localhost:1"},
		"for a name below":        {"aud": "x." + fmt.Sprint(s.honest["aud"])},
		"for two computers":       {"aud": []any{s.honest["aud"], "evil.localhost"}},
		"for nobody":              {"aud": nil},
		"by another issuer":       {"iss": "evil"},
		"of another scope":        {"scope": "owner"},
		"without a scope":         {"scope": nil},
		"without a grant":         {"grant": nil},
		"without a client":        {"client_id": nil},
		"without a subject":       {"sub": nil},
		"of somebody unknown":     {"sub": "nobody-at-all"},
		"without a mail address":  {"email": nil},
		"without a jti":           {"jti": nil},
		"with an end that is odd": {"exp": "tomorrow"},
		"with a negative end":     {"exp": -1},
	} {
		all["signed, "+what] = s.sign(eddsa, s.but(changes))
	}
	all["signed, alg of another curve"] = s.sign(claims{"alg": "ES256"}, s.honest)
	return all
}

func must64(text string) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		panic(err) // of a token that was handed out
	}
	return raw
}

// signingKey reads the control plane's key out of a backup.
func (c *computer) signingKey(ctx context.Context, s *stage) (ed25519.PrivateKey, error) {
	file := filepath.Join(s.dir, "backup")
	if err := c.Node().Run(nil, "backup", file); err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var line struct{ Row struct{ Key, Value []byte } }
		if json.Unmarshal(lines.Bytes(), &line) != nil || string(line.Row.Key) != "keys" {
			continue
		}
		var keys struct{ Signing []struct{ Seed []byte } }
		if err := json.Unmarshal(line.Row.Value, &keys); err != nil || len(keys.Signing) == 0 {
			return nil, errors.New("the keys in the backup cannot be read")
		}
		return ed25519.NewKeyFromSeed(keys.Signing[0].Seed), nil
	}
	return nil, errors.New("the backup holds no keys")
}

// attackTokens shows the agent access tokens that are forged, changed, expired or
// for somebody else, some of them signed with the true key.
func attackTokens(ctx context.Context, s *stage, t *tally) error {
	c, b, err := s.startWithNotes(ctx)
	if err != nil {
		return err
	}
	r, err := c.newRemote(ctx, s, "Pocket Notes", callback)
	if err != nil {
		return err
	}
	defer r.browser.Close()
	granted, err := r.granted(ctx)
	if err != nil {
		return err
	}
	key, err := c.signingKey(ctx, s)
	if err != nil {
		return err
	}
	sign := signer{key: key}
	if err := json.Unmarshal(must64(strings.Split(granted.Access, ".")[1]), &sign.honest); err != nil {
		return err
	}
	show := func(fields string) (int, error) {
		got, err := c.exchange(ctx, b.host, "GET / HTTP/1.1\r\nHost: "+b.host+"\r\n"+fields+"Connection: close\r\n\r\n")
		if err != nil || len(got) == 0 {
			return 0, err
		}
		return got[0].status, nil
	}
	ours := "Authorization: Bearer " + sign.sign(eddsa, sign.honest) + "\r\n" // so that the key is the right one
	for _, good := range []string{"Authorization: Bearer " + granted.Access + "\r\n", ours} {
		if status, err := show(good); err != nil || status != 200 {
			return fmt.Errorf("an honest token gets %d, %v", status, err)
		}
	}
	forgeries := sign.forgeries(granted.Access)
	shapes := []string{"Authorization: Bearer TOKEN\r\n", "authorization: bearer TOKEN\r\n", "Authorization: Bearer TOKEN\r\nAuthorization: Bearer TOKEN\r\n", "Authorization: Bearer  TOKEN\r\n"}
	fmt.Printf("   forgeries %d × shapes %d = %d, + places %d\n", len(forgeries), len(shapes), len(forgeries)*len(shapes), 4)
	for what, token := range forgeries {
		for _, shape := range shapes {
			status, err := show(strings.Replace(shape, "TOKEN", token, 1))
			if err != nil {
				return err
			}
			t.try(1)
			if status == 200 {
				t.got("a token %s in %.30q opens the app", what, shape)
			}
		}
	}
	for _, fields := range []string{
		"Cookie: access_token=" + granted.Access + "\r\n", "X-Access-Token: " + granted.Access + "\r\n",
		"Proxy-Authorization: Bearer " + granted.Access + "\r\n", "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(granted.Access+":")) + "\r\n",
	} {
		status, err := show(fields)
		if err != nil {
			return err
		}
		t.try(1)
		if status == 200 {
			t.got("a good token opens the app in %.30q", fields)
		}
	}
	return nil
}

//go:build linux

package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"porchlight/test/internet"
)

// assertionsTried is how many are tried at least.
const assertionsTried = 600

// Clients that describe themselves: one that signs, another one at the same host, whose keys
// are its own, and one that does not.
const (
	signsAt  = "https://assistant.example/client.json"
	otherAt  = "https://assistant.example/other.json"
	publicAt = "https://assistant.example/public.json"
)

// signing is a client that proves by private_key_jwt who it is (RFC 7523), and who would
// like to be it.
type signing struct {
	*remote
	keys     map[string]crypto.Signer // by kid: its own, and those of others
	asked    atomic.Int32             // how often for its keys
	audience string
}

// answer is the host of the documents.
func (g *signing) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	about := map[string]any{"client_id": "https://" + r.Host + r.URL.Path, "client_name": "Assistant", "redirect_uris": []string{callback}}
	switch r.URL.Path {
	case "/client.json":
		about["token_endpoint_auth_method"], about["jwks_uri"] = "private_key_jwt", "https://assistant.example/keys"
	case "/other.json":
		about["token_endpoint_auth_method"], about["jwks"] = "private_key_jwt", g.set("other")
	case "/public.json":
		about["token_endpoint_auth_method"] = "none"
	case "/keys":
		g.asked.Add(1)
		json.NewEncoder(w).Encode(g.set("ec", "rsa"))
		return
	}
	json.NewEncoder(w).Encode(about)
}

func (g *signing) set(kids ...string) (set jose.JSONWebKeySet) {
	for _, kid := range kids {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: g.keys[kid].Public(), KeyID: kid, Use: "sig"})
	}
	return set
}

// claims are honest ones, changed; what is nil goes.
func (g *signing) claims(change map[string]any) []byte {
	now := time.Now().Unix()
	claims := map[string]any{"iss": signsAt, "sub": signsAt, "aud": g.audience, "jti": rand.Text(), "iat": now, "exp": now + 60}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	raw, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return raw
}

// sign signs by a key of this kid, whatever header it is given.
func (g *signing) sign(kid string, header map[string]any, payload []byte) string {
	alg := map[bool]jose.SignatureAlgorithm{true: jose.RS256, false: jose.ES256}[kid == "rsa"]
	opts := (&jose.SignerOptions{}).WithHeader("kid", kid)
	for name, value := range header {
		opts.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: g.keys[kid]}, opts)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return compact
}

func (g *signing) honest() string { return g.sign("ec", nil, g.claims(nil)) }

// byAnybody puts a token together: what is signed is signed by whatever mac does.
func byAnybody(header map[string]any, payload []byte, mac func([]byte) []byte) string {
	raw, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	head := encode(raw) + "." + encode(payload)
	return head + "." + encode(mac([]byte(head)))
}

// forged are assertions that nobody may take, by what is wrong with them.
func (g *signing) forged() map[string]string {
	all := map[string]string{}
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for what, change := range map[string]map[string]any{
		"for another": {"aud": "https://evil.example"}, "for us and another": {"aud": []string{g.audience, "https://evil.example"}},
		"for us with a slash": {"aud": g.audience + "/"}, "for the authorization endpoint": {"aud": g.audience + "/oauth/authorize"}, "for the revocation endpoint": {"aud": g.audience + "/oauth/revoke"},
		"for us in capitals": {"aud": strings.ToUpper(g.audience)}, "for our prefix": {"aud": g.audience[:len(g.audience)-1]}, "for nobody": {"aud": nil}, "for an empty list": {"aud": []string{}},
		"for a list in a list": {"aud": [][]string{{g.audience}}}, "for an object": {"aud": map[string]any{g.audience: 1}}, "for a token's issuer": {"aud": "service-control"},
		"expired": {"exp": in(-time.Minute)}, "expired long ago": {"exp": 1}, "far ahead": {"exp": in(time.Hour)}, "six minutes ahead": {"exp": in(6 * time.Minute)}, "for ever": {"exp": 1e300},
		"around the end of numbers": {"exp": -1e18}, "no end": {"exp": nil}, "an end as text": {"exp": fmt.Sprint(in(time.Minute))}, "an end in a list": {"exp": []int64{in(time.Minute)}},
		"not yet": {"nbf": in(time.Hour)}, "made tomorrow": {"iat": in(24 * time.Hour)}, "made yesterday": {"iat": in(-24 * time.Hour)},
		"of another client": {"iss": otherAt, "sub": otherAt}, "about another": {"sub": otherAt}, "by another": {"iss": otherAt}, "of nobody": {"iss": nil, "sub": nil},
		"of a client of a like name": {"iss": signsAt + "/", "sub": signsAt + "/"}, "in capitals": {"iss": strings.ToUpper(signsAt), "sub": strings.ToUpper(signsAt)},
		"no jti": {"jti": nil}, "an empty jti": {"jti": ""}, "a jti of a number": {"jti": 1}, "a long jti": {"jti": strings.Repeat("j", 257)},
		"8 KiB": {"x": strings.Repeat("x", 8<<10)},
	} {
		all["a claim: "+what] = g.sign("ec", nil, g.claims(change))
	}
	spki, err := x509.MarshalPKIXPublicKey(g.keys["rsa"].Public())
	if err != nil {
		panic(err)
	}
	set, _ := json.Marshal(g.set("ec", "rsa"))
	secrets := map[string][]byte{
		"the RSA key": spki, "the RSA key as PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki}), "the modulus": g.keys["rsa"].Public().(*rsa.PublicKey).N.Bytes(),
		"the key set": set, "nothing": nil, "the client's id": []byte(signsAt),
	}
	for what, secret := range secrets {
		for _, alg := range []string{"HS256", "RS256", "ES256"} {
			all["as a secret for "+alg+": "+what] = byAnybody(map[string]any{"alg": alg, "kid": "rsa"}, g.claims(nil), func(signed []byte) []byte {
				mac := hmac.New(sha256.New, secret)
				mac.Write(signed)
				return mac.Sum(nil)
			})
		}
	}
	unsigned := func([]byte) []byte { return nil }
	for _, alg := range []any{"none", "None", "nOnE", "", "HS256", "dir", nil, 0, []string{"ES256"}, "RS256\x00", "EdDSA", "ES256K", "PS256", "RS1"} {
		all[fmt.Sprintf("unsigned, alg %#v", alg)] = byAnybody(map[string]any{"alg": alg, "kid": "ec"}, g.claims(nil), unsigned)
	}
	all["a signature of zeros"] = byAnybody(map[string]any{"alg": "ES256", "kid": "ec"}, g.claims(nil), func([]byte) []byte { return make([]byte, 64) })
	stranger := func(header map[string]any) string { return g.sign("stranger", header, g.claims(nil)) }
	public := jose.JSONWebKey{Key: g.keys["stranger"].Public(), KeyID: "ec"}
	for what, header := range map[string]map[string]any{
		"its own kid": nil, "the client's kid": {"kid": "ec"}, "no kid": {"kid": ""}, "its key in jwk": {"kid": "ec", "jwk": public}, "its keys at jku": {"kid": "ec", "jku": "https://evil.example/keys"},
		"its certificate at x5u": {"kid": "ec", "x5u": "https://evil.example/cert"}, "a kid that is a path": {"kid": "../../../../dev/null"}, "a kid that is an address": {"kid": "https://evil.example/keys"},
		"crit": {"kid": "ec", "crit": []string{"exp"}, "exp": 1}, "not base64": {"kid": "ec", "b64": false, "crit": []string{"b64"}},
	} {
		all["a stranger's signature: "+what] = stranger(header)
	}
	all["another client's key"] = g.sign("other", nil, g.claims(nil))
	all["another client's key under this kid"] = g.sign("other", map[string]any{"kid": "ec"}, g.claims(nil))
	all["a token of another kind"] = g.sign("ec", map[string]any{"typ": "at+jwt"}, g.claims(nil))
	for name, second := range map[string]string{"aud": `"https://evil.example"`, "sub": `"` + otherAt + `"`, "exp": "1", "jti": `"x"`, "iss": `"x"`} {
		once := g.claims(nil)
		all["twice: "+name] = g.sign("ec", nil, fmt.Appendf(once[:len(once)-1:len(once)-1], `,%q:%s}`, name, second))
		all["twice, the wrong one first: "+name] = g.sign("ec", nil, fmt.Appendf(nil, `{%q:%s,%s`, name, second, once[1:]))
	}
	parts := strings.Split(g.honest(), ".")
	for what, raw := range map[string]string{
		"empty": "", "dots": "..", "two parts": parts[0] + "." + parts[1], "no signature": parts[0] + "." + parts[1] + ".", "four parts": strings.Join(parts, ".") + ".x", "five parts": "a.b.c.d.e",
		"another's claims": parts[0] + "." + strings.Split(g.sign("other", nil, g.claims(nil)), ".")[1] + "." + parts[2], "a line": "\n" + strings.Join(parts, "."), "spaces": strings.Join(parts, " . "),
		"as JSON": `{"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`, "a list as claims": g.sign("ec", nil, []byte(`[]`)), "nothing as claims": g.sign("ec", nil, nil),
		"more behind the claims": g.sign("ec", nil, append(g.claims(nil), '}')), "deep": g.sign("ec", nil, []byte(`{"x":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`)),
		"15 KiB": strings.Repeat("A", 15<<10), "1 MiB": strings.Repeat("A", 1<<20),
	} {
		all["the form: "+what] = raw
	}
	return all
}

// attackAssertions has somebody who knows a client's document, and saw assertions of
// its, try to be that client.
func attackAssertions(ctx context.Context, s *stage, t *tally) error {
	g, grant, err := s.startSigning(ctx)
	if err != nil {
		return err
	}
	defer g.browser.Close()
	if grant, err = g.useForged(ctx, t, grant); err != nil {
		return err
	}
	if grant, err = g.useOddForms(ctx, t, grant); err != nil {
		return err
	}
	if err := g.replay(ctx, t, grant); err != nil {
		return err
	}
	if n := g.asked.Load(); n > 2 { // for the first, and for a key that nobody knows
		t.got("the client's host was asked for keys %d times", n)
	}
	return nil
}

// startSigning has a control plane that knows the clients, and a grant of maya's.
func (s *stage) startSigning(ctx context.Context) (*signing, tokens, error) {
	in, err := internet.Open(ctx, s.dir)
	if err != nil {
		return nil, tokens{}, err
	}
	g := &signing{keys: map[string]crypto.Signer{}}
	for _, kid := range []string{"ec", "other", "stranger"} {
		if g.keys[kid], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, tokens{}, err
		}
	}
	if g.keys["rsa"], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return nil, tokens{}, err
	}
	if err := in.Serve(ctx, "assistant.example", http.HandlerFunc(g.answer)); err != nil {
		return nil, tokens{}, err
	}
	if err := os.Setenv("SSL_CERT_FILE", in.CA); err != nil {
		return nil, tokens{}, err
	}
	p, err := s.startPlane(ctx, s.dir+"/plane")
	if err != nil {
		return nil, tokens{}, err
	}
	maya, err := p.newTenant(ctx, "maya")
	if err != nil {
		return nil, tokens{}, err
	}
	if err := p.Run(nil, "client", "allow", "assistant.example"); err != nil {
		return nil, tokens{}, err
	}
	g.audience = p.AuthURL
	g.remote = &remote{authURL: p.AuthURL, id: signsAt, back: callback, browser: maya.browser}
	public := &remote{authURL: p.AuthURL, id: publicAt, back: callback, browser: maya.browser}
	if _, err := public.grantedFor(ctx, "https://"+maya.app.host); err != nil {
		return nil, tokens{}, fmt.Errorf("a public client: %w", err)
	}
	if err := g.allowFor(ctx, "https://"+maya.app.host); err != nil {
		return nil, tokens{}, err
	}
	grant, err := g.honestly(ctx, g.exchange())
	return g, grant, err
}

// with is a form of the client's with an assertion.
func (g *signing) with(form url.Values, assertion string) url.Values {
	form = maps.Clone(form)
	form.Del("client_secret")
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", assertion)
	return form
}

// honestly is what the client itself gets.
func (g *signing) honestly(ctx context.Context, form url.Values) (tokens, error) {
	status, got, err := g.token(ctx, g.with(form, g.honest()))
	if err == nil && (status != http.StatusOK || got.Refresh == "") {
		err = errors.New("an honest assertion is refused: " + got.Error)
	}
	return got, err
}

// revoke posts to the revocation endpoint.
func (g *signing) revoke(ctx context.Context, form url.Values) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.authURL+"/oauth/revoke", strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := g.browser.Once(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// everywhere sends what proves nothing to both endpoints, changed into each request there is.
func (g *signing) everywhere(ctx context.Context, t *tally, what string, grant tokens, change func(url.Values) url.Values) error {
	for _, form := range []url.Values{g.exchange(), g.refreshing(grant.Refresh)} {
		t.try(1)
		sent := change(form)
		status, got, err := g.token(ctx, sent)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		// Whatever else it may answer is told to the client alone, and may have used a code up.
		twice := got.Error == "invalid_grant" && len(sent["client_assertion"])+len(sent["client_assertion_type"]) > 2
		if got.Error != "invalid_client" && !twice && status != http.StatusRequestEntityTooLarge {
			t.got("%s, %s: HTTP %d %s", what, form.Get("grant_type"), status, got.Error)
		}
	}
	for _, token := range []string{grant.Refresh, grant.Access} {
		t.try(1)
		status, err := g.revoke(ctx, change(url.Values{"token": {token}, "client_id": {g.id}}))
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if status < 400 || status >= 500 {
			t.got("%s, revocation: HTTP %d", what, status)
		}
	}
	return nil
}

// useForged sends what is forged, and looks that the grant is untouched.
func (g *signing) useForged(ctx context.Context, t *tally, grant tokens) (tokens, error) {
	all := g.forged()
	fmt.Printf("   assertions %d × a code, a refresh token, revocation of both = %d\n", len(all), 4*len(all))
	for what, assertion := range all {
		if err := g.everywhere(ctx, t, what, grant, func(form url.Values) url.Values { return g.with(form, assertion) }); err != nil {
			return grant, err
		}
	}
	return g.honestly(ctx, g.refreshing(grant.Refresh))
}

// useOddForms sends good assertions in requests that must not be taken.
func (g *signing) useOddForms(ctx context.Context, t *tally, grant tokens) (tokens, error) {
	own := func(form url.Values) url.Values { return g.with(form, g.honest()) }
	set := func(name string, values ...string) func(url.Values) url.Values {
		return func(form url.Values) url.Values {
			form = own(form)
			if form[name] = values; len(values) == 0 {
				form.Del(name)
			}
			return form
		}
	}
	other := func(id string) func(url.Values) url.Values {
		return func(form url.Values) url.Values {
			form = g.with(form, g.sign("other", nil, g.claims(map[string]any{"iss": id, "sub": id})))
			form.Set("client_id", id)
			return form
		}
	}
	odd := map[string]func(url.Values) url.Values{
		"the id alone": func(form url.Values) url.Values { form = maps.Clone(form); form.Del("client_secret"); return form },
		"a secret":     func(form url.Values) url.Values { form = maps.Clone(form); form.Set("client_secret", "x"); return form },
		"the assertion as secret": func(form url.Values) url.Values {
			form = maps.Clone(form)
			form.Set("client_secret", g.honest())
			return form
		},
		"an assertion and a secret":  set("client_secret", "x"),
		"no type":                    set("client_assertion_type"),
		"an empty type":              set("client_assertion_type", ""),
		"SAML":                       set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"),
		"the type of a grant":        set("client_assertion_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
		"two assertions":             set("client_assertion", g.honest(), g.honest()),
		"two types":                  set("client_assertion_type", "x", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
		"another id in the form":     set("client_id", otherAt),
		"the public one's id":        set("client_id", publicAt),
		"an id that nobody has":      set("client_id", "https://assistant.example/nobody.json"),
		"as the public one":          other(publicAt),
		"as somebody whom none knew": other("https://evil.example/client.json"),
	}
	fmt.Printf("   requests that are odd %d × 4 = %d\n", len(odd), 4*len(odd))
	for what, change := range odd {
		if err := g.everywhere(ctx, t, what, grant, change); err != nil {
			return grant, err
		}
	}
	// Another client's own assertion is good, and opens nothing of this one's.
	for _, form := range []url.Values{g.exchange(), g.refreshing(grant.Refresh)} {
		t.try(1)
		if status, got, err := g.token(ctx, other(otherAt)(form)); err != nil || status == http.StatusOK {
			t.got("another client with %s: HTTP %d %s, %v", form.Get("grant_type"), status, got.Error, err)
		}
	}
	t.try(1)
	if _, err := g.revoke(ctx, other(otherAt)(url.Values{"token": {grant.Refresh}})); err != nil {
		return grant, err
	}
	return g.honestly(ctx, g.refreshing(grant.Refresh))
}

// replay sends assertions a second time, and one many times at once.
func (g *signing) replay(ctx context.Context, t *tally, grant tokens) error {
	for range 5 {
		used := g.honest()
		status, next, err := g.token(ctx, g.with(g.refreshing(grant.Refresh), used))
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("an honest refresh: HTTP %d %s, %v", status, next.Error, err)
		}
		grant = next
		if err := g.everywhere(ctx, t, "used before", grant, func(form url.Values) url.Values { return g.with(form, used) }); err != nil {
			return err
		}
	}
	const atOnce = 20
	for range 5 {
		form := g.with(url.Values{"token": {"of nobody"}, "client_id": {g.id}}, g.honest())
		var taken atomic.Int32
		failed := make(chan error, atOnce)
		for range atOnce {
			go func() {
				status, err := g.revoke(ctx, form)
				if status == http.StatusOK {
					taken.Add(1)
				}
				failed <- err
			}()
		}
		for range atOnce {
			if err := <-failed; err != nil {
				return err
			}
		}
		t.try(atOnce)
		if n := taken.Load(); n != 1 {
			t.got("one assertion was taken %d times", n)
		}
	}
	_, err := g.honestly(ctx, g.refreshing(grant.Refresh))
	return err
}

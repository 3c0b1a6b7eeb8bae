package control

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// longestAssertion is how long an assertion may be good.
const longestAssertion = assertionLife

const signingClient = "https://assistant.example/client.json"

// signingKeys are one of each kind, by its algorithm.
var signingKeys = sync.OnceValue(func() map[string]crypto.Signer {
	p256, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, err2 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rsa2048, err3 := rsa.GenerateKey(rand.Reader, 2048)
	_, ed, err4 := ed25519.GenerateKey(rand.Reader)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		panic(err)
	}
	return map[string]crypto.Signer{"ES256": p256, "ES384": p384, "RS256": rsa2048, "PS256": rsa2048, "EdDSA": ed}
})

// keySet is the set of these keys, each by the name of its algorithm, with what is changed
// in all of them.
func keySet(t testing.TB, change map[string]any, algs ...string) []byte {
	t.Helper()
	var keys []map[string]any
	for _, alg := range algs {
		var key map[string]any
		raw := ok[[]byte](t)(json.Marshal(jose.JSONWebKey{Key: signingKeys()[alg].Public(), KeyID: alg}))
		programs.Must(t, json.Unmarshal(raw, &key))
		maps.Copy(key, change)
		keys = append(keys, key)
	}
	return ok[[]byte](t)(json.Marshal(map[string]any{"keys": keys}))
}

// claimsAt are those of an assertion that is taken at now.
func claimsAt(now time.Time) map[string]any {
	return map[string]any{
		"iss": signingClient, "sub": signingClient, "aud": "https://control.localhost:8443", "jti": anID(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	}
}

// signed is an assertion by the key of alg.
func signed(t testing.TB, alg string, head, claims map[string]any) string {
	t.Helper()
	return signedBytes(t, alg, head, ok[[]byte](t)(json.Marshal(claims)))
}

func signedBytes(t testing.TB, alg string, head map[string]any, payload []byte) string {
	t.Helper()
	opts := (&jose.SignerOptions{}).WithHeader("kid", alg)
	for name, value := range head {
		opts.WithHeader(jose.HeaderKey(name), value)
	}
	signer := ok[jose.Signer](t)(jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(alg), Key: signingKeys()[alg]}, opts))
	return ok[string](t)(ok[*jose.JSONWebSignature](t)(signer.Sign(payload)).CompactSerialize())
}

// believed is what becomes of an assertion beside these keys.
func believed(raw string, set []byte, now time.Time) error {
	keys, err := clientKeys(set)
	if err != nil {
		return err
	}
	a, err := parseAssertion(raw)
	if err == nil {
		err = a.check(signingClient, []string{"https://control.localhost:8443", "https://control.localhost:8443/oauth/token"}, now)
	}
	if err == nil {
		err = a.signedBy(keys)
	}
	return err
}

// RFC 7523, section 3: whom an assertion is of, for whom, and when.
func TestClaimsOfAssertions(t *testing.T) {
	t.Parallel()
	now := newClock().Now()
	in := func(d time.Duration) int64 { return now.Add(d).Unix() }
	set := keySet(t, nil, "ES256")
	for what, tt := range map[string]struct {
		change map[string]any // nil takes it out
		fine   bool
	}{
		"as it should be":          {nil, true},
		"without iat and nbf":      {map[string]any{"iat": nil, "nbf": nil}, true},
		"for the token endpoint":   {map[string]any{"aud": "https://control.localhost:8443/oauth/token"}, true},
		"for one in a list":        {map[string]any{"aud": []string{"https://control.localhost:8443"}}, true},
		"for both of our names":    {map[string]any{"aud": []string{"https://control.localhost:8443", "https://control.localhost:8443/oauth/token"}}, true},
		"five minutes":             {map[string]any{"exp": in(longestAssertion)}, true},
		"a clock a little behind":  {map[string]any{"exp": in(-20 * time.Second), "iat": in(-80 * time.Second)}, true},
		"a clock a little ahead":   {map[string]any{"nbf": in(20 * time.Second), "iat": in(20 * time.Second)}, true},
		"the longest jti":          {map[string]any{"jti": strings.Repeat("a", maxAssertionID)}, true},
		"what is not known":        {map[string]any{"htm": "POST"}, true},
		"of another":               {map[string]any{"iss": "https://other.example/client.json"}, false},
		"about another":            {map[string]any{"sub": "https://other.example/client.json"}, false},
		"of nobody":                {map[string]any{"iss": nil, "sub": nil}, false},
		"for nobody":               {map[string]any{"aud": nil}, false},
		"for an empty list":        {map[string]any{"aud": []string{}}, false},
		"for another":              {map[string]any{"aud": "https://control.localhost:8443.evil.example"}, false},
		"for us with a slash":      {map[string]any{"aud": "https://control.localhost:8443/"}, false},
		"for us and another":       {map[string]any{"aud": []string{"https://control.localhost:8443", "https://evil.example"}}, false},
		"for a number":             {map[string]any{"aud": []any{"https://control.localhost:8443", 7}}, false},
		"for the issuer of tokens": {map[string]any{"aud": controlapi.TokenIssuer}, false},
		"without an end":           {map[string]any{"exp": nil}, false},
		"an end that is no number": {map[string]any{"exp": fmt.Sprint(in(time.Minute))}, false},
		"ended":                    {map[string]any{"exp": in(-31 * time.Second)}, false},
		"ends too late":            {map[string]any{"exp": in(longestAssertion + 31*time.Second)}, false},
		"never ends":               {map[string]any{"exp": 1e300}, false},
		"ends as numbers end":      {map[string]any{"exp": int64(1)<<62 - 1}, false},
		"from tomorrow on":         {map[string]any{"nbf": in(31 * time.Second)}, false},
		"made tomorrow":            {map[string]any{"iat": in(31 * time.Second)}, false},
		"made long ago":            {map[string]any{"iat": in(-longestAssertion - 31*time.Second)}, false},
		"without jti":              {map[string]any{"jti": nil}, false},
		"an empty jti":             {map[string]any{"jti": ""}, false},
		"a jti that is no text":    {map[string]any{"jti": 7}, false},
		"too long a jti":           {map[string]any{"jti": strings.Repeat("a", maxAssertionID+1)}, false},
		"too long":                 {map[string]any{"more": strings.Repeat("a", maxAssertion)}, false},
	} {
		claims := claimsAt(now)
		maps.Copy(claims, tt.change)
		maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
		err := believed(signed(t, "ES256", nil, claims), set, now)
		if (err == nil) != tt.fine || err != nil && !IsRefusal(err, controlapi.CodeInvalidClient) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Which key verifies an assertion is said by the client's document and a kid alone.
func TestKeysOfAssertions(t *testing.T) {
	t.Parallel()
	now := newClock().Now()
	all := []string{"ES256", "ES384", "RS256", "PS256", "EdDSA"}
	small := ok[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 1024))
	for what, tt := range map[string]struct {
		set     []byte
		head    map[string]any
		fine    bool
		unknown bool
	}{
		"all of them":           {set: keySet(t, nil, all...), fine: true},
		"for signatures":        {set: keySet(t, map[string]any{"use": "sig"}, all...), fine: true},
		"to verify":             {set: keySet(t, map[string]any{"key_ops": []string{"verify"}}, all...), fine: true},
		"beside unknown kinds":  {set: []byte(`{"keys":[{"kty":"AKP","alg":"ML-DSA-44"},{"kty":"oct","k":"AAAA"},{},7,` + string(keySet(t, nil, all...))[len(`{"keys":[`):]), fine: true},
		"the type of RFC":       {set: keySet(t, nil, all...), head: map[string]any{"typ": "client-authentication+jwt"}, fine: true},
		"a header nobody knows": {set: keySet(t, nil, all...), head: map[string]any{"x5t#S256": "AAAA"}, fine: true},

		"to encrypt":               {set: keySet(t, map[string]any{"use": "enc"}, all...), unknown: true},
		"to wrap keys":             {set: keySet(t, map[string]any{"key_ops": []string{"wrapKey", "sign"}}, all...), unknown: true},
		"for nothing":              {set: keySet(t, map[string]any{"key_ops": []string{}}, all...), unknown: true},
		"for another alg":          {set: keySet(t, map[string]any{"alg": "ES512"}, all...), unknown: true},
		"other names":              {set: keySet(t, map[string]any{"kid": "other"}, all...), unknown: true},
		"none":                     {set: []byte(`{"keys":[]}`), unknown: true},
		"twice the same":           {set: keySet(t, nil, append(all, all...)...)},
		"an access token":          {set: keySet(t, nil, all...), head: map[string]any{"typ": "at+jwt"}},
		"no text as typ":           {set: keySet(t, nil, all...), head: map[string]any{"typ": 7}},
		"what is to be understood": {set: keySet(t, nil, all...), head: map[string]any{"crit": []string{"exp"}, "exp": 1}},
		"not a list":               {set: []byte(`{"keys":7}`)},
		"no JSON":                  {set: []byte(`keys`)},
		"too many":                 {set: []byte(`{"keys":[` + strings.Repeat(`{},`, maxClientKeys) + `{}]}`)},
		"too large":                {set: []byte(`{"keys":[]` + strings.Repeat(" ", maxClientKeySet) + `}`)},
		"keys twice":               {set: []byte(`{"keys":[],"keys":[` + string(keySet(t, nil, all...))[len(`{"keys":[`):])},
	} {
		for _, alg := range all {
			err := believed(signed(t, alg, tt.head, claimsAt(now)), tt.set, now)
			if (err == nil) != tt.fine || isUnknownKey(err) != tt.unknown || err != nil && !IsRefusal(err, controlapi.CodeInvalidClient) {
				t.Errorf("%s, %s: %v", what, alg, err)
			}
		}
	}
	weak := ok[[]byte](t)(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: small.Public(), KeyID: "RS256"}}}))
	private := ok[[]byte](t)(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: signingKeys()["ES256"], KeyID: "ES256"}}}))
	if keys := ok[[]jose.JSONWebKey](t)(clientKeys(private)); len(keys) != 0 {
		t.Errorf("%d keys that are not kept secret are read", len(keys))
	}
	for alg, set := range map[string][]byte{"RS256": weak, "ES256": private} {
		if err := believed(signed(t, alg, nil, claimsAt(now)), set, now); !isUnknownKey(err) {
			t.Errorf("a key of 1,024 bits, or one that is not kept secret: %v", err)
		}
	}
}

// An assertion without kid is of the one key that fits its alg.
func TestAssertionWithoutKeyID(t *testing.T) {
	t.Parallel()
	now := newClock().Now()
	raw := signed(t, "ES256", map[string]any{"kid": ""}, claimsAt(now))
	programs.Must(t, believed(raw, keySet(t, nil, "ES384", "RS256", "ES256"), now))
	if err := believed(raw, keySet(t, map[string]any{"kid": "x"}, "ES256", "ES256"), now); err == nil || isUnknownKey(err) {
		t.Errorf("of two keys that fit: %v", err)
	}
}

// Weakness: libraries have taken unsigned tokens, public keys for secrets, keys out of the
// token, and the second of two claims of one name (RFC 8725, section 2).
func TestForgedAssertions(t *testing.T) {
	t.Parallel()
	now := newClock().Now()
	set := keySet(t, nil, "ES256", "RS256")
	encode := base64.RawURLEncoding.EncodeToString
	object := func(v any) string { return encode(ok[[]byte](t)(json.Marshal(v))) }
	head := func(alg string) string { return object(map[string]any{"alg": alg, "kid": "RS256"}) }
	fine := signed(t, "ES256", nil, claimsAt(now))
	programs.Must(t, believed(fine, set, now))
	parts := strings.Split(fine, ".")
	claims := object(claimsAt(now))

	public := signingKeys()["RS256"].Public()
	spki := ok[[]byte](t)(x509.MarshalPKIXPublicKey(public))
	byHMAC := func(secret []byte) string {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(head("HS256") + "." + claims))
		return head("HS256") + "." + claims + "." + encode(mac.Sum(nil))
	}
	sign := func(s jose.Signer) string {
		return ok[string](t)(ok[*jose.JSONWebSignature](t)(s.Sign(ok[[]byte](t)(json.Marshal(claimsAt(now))))).CompactSerialize())
	}
	stranger := ok[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	embedded := ok[jose.Signer](t)(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: stranger}, &jose.SignerOptions{EmbedJWK: true}))
	by := func(key *ecdsa.PrivateKey, name jose.HeaderKey, value any) string {
		opts := (&jose.SignerOptions{}).WithHeader("kid", "ES256").WithHeader(name, value)
		return sign(ok[jose.Signer](t)(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, opts)))
	}
	twice := func(name, second string) string {
		payload := ok[[]byte](t)(json.Marshal(claimsAt(now)))
		return signedBytes(t, "ES256", nil, fmt.Appendf(payload[:len(payload)-1], `,%q:%s}`, name, second))
	}
	forged := map[string]string{
		"nothing":                    "",
		"two parts":                  parts[0] + "." + parts[1],
		"four parts":                 fine + ".AA",
		"JSON instead":               `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"a space before":             " " + fine,
		"a line before":              "\n" + fine,
		"lines in it":                strings.ReplaceAll(fine, ".", "\r\n."),
		"padding":                    fine + "==",
		"no signature":               parts[0] + "." + parts[1] + ".",
		"a signature of zeros":       parts[0] + "." + parts[1] + "." + encode(make([]byte, 64)),
		"another's signature":        parts[0] + "." + claims + "." + parts[2],
		"the public key as secret":   byHMAC(spki),
		"the same as PEM":            byHMAC(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})),
		"the key set as secret":      byHMAC(set),
		"an empty secret":            byHMAC(nil),
		"its own key in the token":   sign(embedded),
		"a stranger's key":           by(stranger, "typ", "JWT"),
		"a key in its jwk":           by(stranger, "jwk", jose.JSONWebKey{Key: stranger.Public(), KeyID: "ES256"}),
		"keys at its jku":            by(stranger, "jku", "https://evil.example/keys"),
		"a certificate at its x5u":   by(stranger, "x5u", "https://evil.example/cert"),
		"another alg than signed by": head("PS256") + "." + strings.SplitN(signed(t, "RS256", nil, claimsAt(now)), ".", 2)[1],
		"aud twice":                  twice("aud", `"https://evil.example"`),
		"iss twice":                  twice("iss", `"`+signingClient+`"`),
		"exp twice":                  twice("exp", "1"),
		"jti twice":                  twice("jti", `"again"`),
		"no object":                  signedBytes(t, "ES256", nil, []byte(`["iss"]`)),
		"more behind it":             signedBytes(t, "ES256", nil, append(ok[[]byte](t)(json.Marshal(claimsAt(now))), `{}`...)),
		"nothing signed":             signedBytes(t, "ES256", nil, nil),
	}
	for _, alg := range []string{"none", "None", "NONE", "", "HS256", "HS384", "HS512", "RS1", "RS512", "ES512", "ES256K", "es256", "Ed25519", "dir"} {
		forged["alg "+alg] = head(alg) + "." + claims + "."
		forged["alg "+alg+", signed"] = head(alg) + "." + claims + "." + parts[2]
	}
	for _, head := range []string{`{"alg":"ES256","alg":"none","kid":"ES256"}`, `{"ALG":"ES256","kid":"ES256"}`, `{"alg":["ES256"]}`, `null`, `7`, `{}`} {
		forged["header "+head] = encode([]byte(head)) + "." + parts[1] + "." + parts[2]
	}
	for what, raw := range forged {
		if err := believed(raw, set, now); !IsRefusal(err, controlapi.CodeInvalidClient) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Claims of the same name in other letters are others (RFC 7519, section 10.1.1).
func TestClaimsInOtherLetters(t *testing.T) {
	t.Parallel()
	now := newClock().Now()
	claims := claimsAt(now)
	delete(claims, "exp")
	claims["EXP"], claims["Exp"] = now.Add(time.Minute).Unix(), now.Add(time.Minute).Unix()
	if err := believed(signed(t, "ES256", nil, claims), keySet(t, nil, "ES256"), now); !IsRefusal(err, controlapi.CodeInvalidClient) {
		t.Errorf("taken with %v: %v", claims, err)
	}
}

// An assertion is used once, at whichever of several nodes and whoever asks at once, and
// its row goes when no node would take it any more.
func TestAssertionIsUsedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	nodes := []*Service{b.Service, b.node()}
	a := ok[assertion](t)(parseAssertion(signed(t, "ES256", nil, claimsAt(b.clock.Now()))))
	var wg sync.WaitGroup
	var mu sync.Mutex
	used := 0
	for n := range 20 {
		wg.Go(func() {
			err := nodes[n%2].Clients.useUp(t.Context(), a)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				used++
			} else if !IsRefusal(err, controlapi.CodeInvalidClient) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if used != 1 {
		t.Errorf("used %d times", used)
	}
	b.clock.Add(longestAssertion + 2*assertionsDiffer)
	wantRefusal(t, nodes[1].Clients.useUp(t.Context(), a), controlapi.CodeInvalidClient)
	other := ok[assertion](t)(parseAssertion(signed(t, "ES256", nil, claimsAt(b.clock.Now()))))
	programs.Must(t, b.Clients.useUp(t.Context(), other))
	other.ID, other.Subject = a.ID, "https://other.example/client.json" // the jti of another client is another
	programs.Must(t, b.Clients.useUp(t.Context(), other))
	b.clock.Add(usedAssertionLife)
	b.sweep(context.Background())
	if left := b.rows("assertion/"); left != 0 {
		t.Errorf("%d rows are left", left)
	}
}

// FuzzAssertion: whatever is believed says what was signed.
func FuzzAssertion(f *testing.F) {
	payload := ok[[]byte](f)(json.Marshal(claimsAt(newClock().Now())))
	keys := ok[[]jose.JSONWebKey](f)(clientKeys(keySet(f, nil, "ES256", "EdDSA")))
	for _, alg := range []string{"ES256", "EdDSA"} {
		f.Add(signedBytes(f, alg, nil, payload))
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := parseAssertion(raw)
		if err == nil && a.signedBy(keys) == nil && !bytes.Equal(a.jws.UnsafePayloadWithoutVerification(), payload) {
			t.Errorf("%q was never signed", raw)
		}
	})
}

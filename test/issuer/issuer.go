// Package issuer is an OpenID provider for tests, which signs in whoever a test names and
// can be made to lie, be slow, be away, or change its keys. It holds clients to what they
// have to do: secret, redirect URI, PKCE, each code once.
package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"porchlight/control/provider"
)

// ClientID and Secret are those of the one client.
const (
	ClientID = "porchlight"
	Secret   = "a secret + of/the client"
)

// Issuer is a provider. Its fields may be changed between requests of one test.
type Issuer struct {
	URL    string
	Now    func() time.Time
	server *httptest.Server

	mu sync.Mutex // guards what follows
	// change has the last word on what is sent: "discovery", "id_token", "userinfo".
	change map[string]func(map[string]any)
	away   bool
	hang   bool
	key    jose.SigningKey
	shown  []jose.JSONWebKey
	codes  map[string]asked
	asked  map[string]int // requests, by path
	leads  map[string]string
}

type asked struct {
	url.Values
	claims map[string]any
}

// Start starts one on a free port.
func Start() *Issuer {
	i := &Issuer{Now: time.Now, change: map[string]func(map[string]any){}, codes: map[string]asked{}, asked: map[string]int{}, leads: map[string]string{}}
	i.Rotate(true)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /me", i.me)
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		away, hang, leads := i.away, i.hang, i.leads[r.URL.Path]
		i.asked[r.URL.Path]++
		i.mu.Unlock()
		switch {
		case hang:
			_, _ = io.Copy(io.Discard, r.Body) // else nobody hears that the client went away
			<-r.Context().Done()
		case away:
			w.WriteHeader(http.StatusBadGateway)
		case leads != "":
			http.Redirect(w, r, leads, http.StatusTemporaryRedirect)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	i.URL = i.server.URL
	return i
}

// Close ends it.
func (i *Issuer) Close() { i.server.CloseClientConnections(); i.server.Close() }

// Config is how an operator writes it down.
func (i *Issuer) Config(name, label string, domains ...string) provider.Config {
	return provider.Config{Name: name, Issuer: i.URL, ClientID: ClientID, Secret: Secret, Label: label, Domains: domains, Private: true}
}

// Away has it answer nothing that helps, and Hang nothing at all.
func (i *Issuer) Away(is bool) { i.mu.Lock(); defer i.mu.Unlock(); i.away = is }

// Hang has it answer nothing at all.
func (i *Issuer) Hang(is bool) { i.mu.Lock(); defer i.mu.Unlock(); i.hang = is }

// Change has the last word on what is sent of a kind: "discovery", "id_token" or "userinfo".
func (i *Issuer) Change(kind string, to func(map[string]any)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.change[kind] = to
}

// Asked is how often a path was asked for.
func (i *Issuer) Asked(path string) int { i.mu.Lock(); defer i.mu.Unlock(); return i.asked[path] }

// Lead has a path lead elsewhere.
func (i *Issuer) Lead(path, to string) { i.mu.Lock(); defer i.mu.Unlock(); i.leads[path] = to }

// Rotate has it sign with another key from now on, and show that key alone, or not.
func (i *Issuer) Rotate(show bool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	jwk := jose.JSONWebKey{Key: key, KeyID: rand.Text(), Algorithm: string(jose.ES256), Use: "sig"}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key = jose.SigningKey{Algorithm: jose.ES256, Key: jwk}
	if show {
		i.shown = []jose.JSONWebKey{jwk.Public()}
	}
}

// SignIn is where the provider leads a browser that came by an address, once the person of
// these claims has signed in there.
func (i *Issuer) SignIn(address string, claims map[string]any) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	q, code := u.Query(), rand.Text()
	i.mu.Lock()
	i.codes[code] = asked{q, claims}
	i.mu.Unlock()
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}.Encode()
}

// Sign signs claims as a token of a type, "" for one without.
func (i *Issuer) Sign(kind string, claims map[string]any) string {
	i.mu.Lock()
	key := i.key
	i.mu.Unlock()
	options := &jose.SignerOptions{}
	if kind != "" {
		options = options.WithType(jose.ContentType(kind))
	}
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		panic(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

// Logout is a logout token with these claims besides those that each has.
func (i *Issuer) Logout(claims map[string]any) string { return i.LogoutAs("logout+jwt", claims) }

// LogoutAs is Logout with another typ.
func (i *Issuer) LogoutAs(typ string, claims map[string]any) string {
	all := map[string]any{
		"iss": i.URL, "aud": ClientID, "iat": i.Now().Unix(), "exp": i.Now().Add(2 * time.Minute).Unix(), "jti": rand.Text(),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	for name, value := range claims {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return i.Sign(typ, all)
}

func (i *Issuer) write(w http.ResponseWriter, kind string, v map[string]any) {
	i.mu.Lock()
	change := i.change[kind]
	i.mu.Unlock()
	if change != nil {
		change(v)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	i.write(w, "discovery", map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"userinfo_endpoint": i.URL + "/me", "id_token_signing_alg_values_supported": []string{"ES256"},
		"authorization_response_iss_parameter_supported": true,
	})
}

func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	shown := i.shown
	i.mu.Unlock()
	i.write(w, "keys", map[string]any{"keys": shown})
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	i.mu.Lock()
	code := r.PostFormValue("code")
	of, found := i.codes[code]
	delete(i.codes, code)
	i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !found || id != ClientID || secret != Secret || r.PostFormValue("redirect_uri") != of.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != of.Get("code_challenge") || of.Get("code_challenge_method") != "S256" {
		w.WriteHeader(http.StatusBadRequest)
		i.write(w, "error", map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{
		"iss": i.URL, "aud": ClientID, "iat": i.Now().Unix(), "exp": i.Now().Add(5 * time.Minute).Unix(), "nonce": of.Get("nonce"),
	}
	for name, value := range of.claims {
		claims[name] = value
	}
	i.mu.Lock()
	change := i.change["id_token"]
	i.mu.Unlock()
	if change != nil {
		change(claims)
	}
	sub, _ := claims["sub"].(string)
	i.write(w, "token", map[string]any{"access_token": "at " + sub, "token_type": "Bearer", "id_token": i.Sign("JWT", claims)})
}

func (i *Issuer) me(w http.ResponseWriter, r *http.Request) {
	i.write(w, "userinfo", map[string]any{"sub": r.Header.Get("Authorization")[len("Bearer at "):]})
}

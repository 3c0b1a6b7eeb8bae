package reach

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"porchlight/assets/style"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// page is shown in the end, of a title, a sentence and a style sheet, all our own words.
const page = `<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>%[1]s</title><style>%[3]s</style>
<main class="sheet"><h1>%[1]s</h1><p>%[2]s</p></main>
`

// styleDigest has browsers take that style sheet and no other.
var styleDigest = func() string {
	sum := sha256.Sum256([]byte(style.Pages()))
	return base64.StdEncoding.EncodeToString(sum[:])
}()

// signInWithin is how long a person has for their browser.
const signInWithin = 10 * time.Minute

// server is who signs people in for an app, as far as it said so itself.
type server struct {
	Issuer    string `json:"issuer"`
	Authorize string `json:"authorization_endpoint"`
	Token     string `json:"token_endpoint"`
	Revoke    string `json:"revocation_endpoint"`
}

func (s *server) config(redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: controlapi.ReachClient, RedirectURL: redirect, Scopes: []string{controlapi.TokenScope},
		Endpoint: oauth2.Endpoint{AuthURL: s.Authorize, TokenURL: s.Token, AuthStyle: oauth2.AuthStyleInParams},
	}
}

// authority asks the app's address who signs people in for it (RFC 9728), and that one where
// (RFC 8414). Each may speak for itself alone. a.mu is held.
func (a *App) authority(ctx context.Context) (*server, error) {
	if a.server != nil {
		return a.server, nil
	}
	var about struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	if err := a.get(ctx, a.origin+"/.well-known/oauth-protected-resource", &about); err != nil {
		return nil, err
	}
	if about.Resource != a.origin || len(about.Servers) != 1 {
		return nil, fmt.Errorf("%s does not say who signs people in for it", a.host)
	}
	var s server
	if err := a.get(ctx, about.Servers[0]+"/.well-known/oauth-authorization-server", &s); err != nil {
		return nil, err
	}
	own := func(endpoint string) bool { return strings.HasPrefix(endpoint, s.Issuer+"/") }
	if !strings.HasPrefix(s.Issuer, "https://") || s.Issuer != about.Servers[0] || !own(s.Authorize) || !own(s.Token) || !own(s.Revoke) {
		return nil, fmt.Errorf("%s is not described as a server that signs people in", about.Servers[0])
	}
	a.server = &s
	return a.server, nil
}

// get reads a document of JSON.
func (a *App) get(ctx context.Context, address string, into any) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return fmt.Errorf("%q is no address of a server", address)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", u.Host, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return said(u.Host, answer)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxSaid)).Decode(into); err != nil {
		return fmt.Errorf("%s does not answer as Porchlight does", u.Host)
	}
	return nil
}

func (s *server) revoke(ctx context.Context, client *http.Client, token string) error {
	form := url.Values{"token": {token}, "client_id": {controlapi.ReachClient}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Revoke, strings.NewReader(form))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return said(s.Issuer, answer)
	}
	return nil
}

// askPerson has the person sign in by their browser, which comes back to this computer (RFC
// 8252, section 7.3). a.mu is held.
func (a *App) askPerson(ctx context.Context) (*oauth2.Token, error) {
	s, err := a.authority(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, signInWithin)
	defer cancel()
	back, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("nothing can listen on this computer for the browser: %w", err)
	}
	config := s.config("http://" + back.Addr().String() + "/")
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	address := config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", a.origin))
	if err := a.knows(ctx, s, address); err != nil {
		_ = back.Close()
		return nil, err
	}
	came := make(chan url.Values, 1)
	callback := &http.Server{
		Handler: s.callback(back.Addr().String(), state, came), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: maxSaid,
	}
	go func() { _ = callback.Serve(back) }()
	defer callback.Close()
	a.cfg.Tell("Sign in by your browser, at: " + address)
	if err := a.cfg.Browse(ctx, address); err != nil {
		a.cfg.Tell("Open that address yourself in a browser on this computer.")
	}
	var answer url.Values
	select {
	case answer = <-came:
	case <-ctx.Done():
		return nil, errors.New("nobody signed in by the browser")
	}
	graceful, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	_ = callback.Shutdown(graceful) // the browser gets its page first
	switch {
	case answer.Get("error") == controlapi.CodeAccessDenied:
		return nil, errors.New("it was denied in the browser")
	case answer.Get("error") == controlapi.CodeInvalidTarget:
		return nil, a.noApp()
	case answer.Get("code") == "":
		return nil, fmt.Errorf("%s said no: %s", s.Issuer, answer.Get("error_description"))
	}
	token, err := config.Exchange(a.with(ctx), answer.Get("code"), oauth2.VerifierOption(verifier), oauth2.SetAuthURLParam("resource", a.origin))
	if err != nil {
		return nil, fmt.Errorf("the sign-in was not taken: %w", err)
	}
	return token, nil
}

func (a *App) noApp() error {
	return fmt.Errorf("%s is no app that you can reach this way: it is a web app, or not shared with whom you signed in as", a.host)
}

// knows says whether the server knows this client, before a person is sent there.
func (a *App) knows(ctx context.Context, s *server, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	answer, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", s.Issuer, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	var body struct {
		Error string `json:"error"`
	}
	if answer.StatusCode == http.StatusBadRequest && json.NewDecoder(io.LimitReader(answer.Body, maxSaid)).Decode(&body) == nil && body.Error == controlapi.CodeInvalidClient {
		return fmt.Errorf("%s is too old to let programs in this way. Whoever runs it has to update it", s.Issuer)
	}
	return nil
}

// callback takes what the browser brings back, once, and shows a page.
func (s *server) callback(host, state string, came chan<- url.Values) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := url.ParseQuery(r.URL.RawQuery)
		once := func(name string) bool { return len(answer[name]) <= 1 }
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+styleDigest+"'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		if err != nil || r.Method != http.MethodGet || r.URL.Path != "/" || r.Host != host ||
			slices.ContainsFunc([]string{"state", "iss", "code", "error", "error_description"}, func(name string) bool { return !once(name) }) ||
			subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(state)) != 1 || answer.Get("iss") != s.Issuer {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		select {
		case came <- answer:
		default: // it came already
		}
		language := words.Accepted(r.Header.Get("Accept-Language"))
		_, _ = fmt.Fprintf(w, page, language.Say("You can close this page"), language.Say("The program goes on in its terminal."), style.Pages())
	})
}

//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"porchlight/test/visitor"
)

const callback = "http://127.0.0.1:9/callback" // nothing listens there, and nobody goes there

// remote is an OAuth client, and the browser of the person it asks.
type remote struct {
	authURL        string
	id, secret     string
	back           string // its redirect URI
	browser        *visitor.Visitor
	verifier, code string // of the latest authorization
}

// tokens answers the token endpoint; Error is set when it refuses.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
}

// newRemote adds a client to the control plane of a computer and signs the owner
// in there; newRemoteOf signs anybody in.
func (c *computer) newRemote(ctx context.Context, s *stage, name, back string) (*remote, error) {
	return c.newRemoteOf(ctx, s, name, back, c.account.Email)
}

func (c *computer) newRemoteOf(ctx context.Context, s *stage, name, back, email string) (*remote, error) {
	var made struct{ ClientID, ClientSecret string }
	if err := c.Node().Run(&made, "client", "add", "--name", name, "--redirect-uri", back); err != nil {
		return nil, err
	}
	r := &remote{authURL: c.account.AuthURL, id: made.ClientID, secret: made.ClientSecret, back: back, browser: visitor.New(c.roots)}
	page, err := r.browser.SignIn(ctx, r.authURL+"/account", email, c.mails)
	if err != nil {
		return nil, err
	}
	if page.Status != http.StatusOK {
		return nil, fmt.Errorf("signing in ends with HTTP %d at %s", page.Status, page.URL)
	}
	return r, nil
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// query is an honest authorization request.
func (r *remote) query(verifier string) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {r.id}, "redirect_uri": {r.back}, "state": {"state"}, "scope": {"connect"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"},
	}
}

// ask sends the browser to the authorization endpoint and returns the answer
// before anybody decided; a redirect is not followed.
func (r *remote) ask(ctx context.Context, query string) (*visitor.Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.authURL+"/oauth/authorize?"+query, nil)
	if err != nil {
		return nil, err
	}
	return r.once(req)
}

// once sends a request of the browser's and does not follow a redirect.
func (r *remote) once(req *http.Request) (*visitor.Page, error) {
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	resp, err := r.browser.Once(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return &visitor.Page{URL: req.URL, Status: resp.StatusCode, Header: resp.Header, Body: string(body)}, err
}

// allow asks and has the person allow it; the code is kept.
func (r *remote) allow(ctx context.Context) error {
	r.verifier = rand.Text() + rand.Text()
	page, err := r.ask(ctx, r.query(r.verifier).Encode())
	if err != nil {
		return err
	}
	if page.Status != http.StatusOK {
		return fmt.Errorf("asking for consent ends with HTTP %d", page.Status)
	}
	form := url.Values{"decision": {"allow"}}
	if _, rest, found := strings.Cut(page.Body, `name="computer" value="`); found {
		form.Set("computer", rest[:strings.IndexByte(rest, '"')])
	}
	page, err = r.decide(ctx, page, form)
	if err == nil && r.code == "" {
		err = fmt.Errorf("allowing ends with HTTP %d at %s", page.Status, page.Header.Get("Location"))
	}
	return err
}

// decide sends the form of a consent page, and keeps the code, "" for none.
func (r *remote) decide(ctx context.Context, page *visitor.Page, form url.Values) (*visitor.Page, error) {
	if version := valueOf(page.Body, "client"); version != "" { // of one that describes itself
		form.Set("client", version)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, page.URL.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", r.authURL)
	if page, err = r.once(req); err != nil {
		return nil, err
	}
	back, err := url.Parse(page.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	r.code = back.Query().Get("code")
	return page, nil
}

// exchange is an honest request for the latest code.
func (r *remote) exchange() url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "client_id": {r.id}, "client_secret": {r.secret},
		"code": {r.code}, "redirect_uri": {r.back}, "code_verifier": {r.verifier},
	}
}

func (r *remote) refreshing(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {r.id}, "client_secret": {r.secret}, "refresh_token": {token}}
}

// token calls the token endpoint as a program does.
func (r *remote) token(ctx context.Context, form url.Values) (status int, got tokens, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.authURL+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return 0, got, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := r.browser.Once(req)
	if err != nil {
		return 0, got, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&got)
	return resp.StatusCode, got, err
}

// granted is an honest grant's tokens.
func (r *remote) granted(ctx context.Context) (tokens, error) {
	if err := r.allow(ctx); err != nil {
		return tokens{}, err
	}
	status, got, err := r.token(ctx, r.exchange())
	if err == nil && (status != http.StatusOK || got.Access == "") {
		err = errors.New("an honest code is refused: " + got.Error)
	}
	return got, err
}

//go:build clients

package clients

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// goDriver is golang.org/x/oauth2.
type goDriver struct {
	config   oauth2.Config
	http     *http.Client
	verifier string
	token    *oauth2.Token
}

func (h *house) goDriver(t testing.TB, client registered) driver {
	transport := controlapi.NewTransport(h.roots) // finds *.localhost
	t.Cleanup(transport.CloseIdleConnections)
	style := map[string]oauth2.AuthStyle{
		"basic": oauth2.AuthStyleInHeader, "form": oauth2.AuthStyleInParams, "detected": oauth2.AuthStyleAutoDetect,
	}[client.Authentication]
	return &goDriver{
		config: oauth2.Config{
			ClientID: client.ClientID, ClientSecret: client.ClientSecret, RedirectURL: client.RedirectURI, Scopes: []string{"connect"},
			Endpoint: oauth2.Endpoint{
				AuthURL: client.AuthURL + "/oauth/authorize", TokenURL: client.AuthURL + "/oauth/token", AuthStyle: style,
			},
		},
		http:     &http.Client{Transport: transport, Timeout: 20 * time.Second},
		verifier: oauth2.GenerateVerifier(),
	}
}

func (d *goDriver) context(t testing.TB) context.Context {
	return context.WithValue(t.Context(), oauth2.HTTPClient, d.http)
}

func (d *goDriver) begin(testing.TB) string {
	return d.config.AuthCodeURL("the state", oauth2.S256ChallengeOption(d.verifier))
}

func (d *goDriver) finish(t testing.TB, callback string) (tokens, *refusal) {
	t.Helper()
	back, err := url.Parse(callback)
	if err != nil || back.Query().Get("state") != "the state" {
		t.Fatalf("the browser came back with %s", callback)
	}
	return d.tokens(t, func() (*oauth2.Token, error) {
		return d.config.Exchange(d.context(t), back.Query().Get("code"), oauth2.VerifierOption(d.verifier))
	})
}

func (d *goDriver) refresh(t testing.TB, refreshToken string) (tokens, *refusal) {
	t.Helper()
	return d.tokens(t, d.config.TokenSource(d.context(t), &oauth2.Token{RefreshToken: refreshToken}).Token)
}

func (d *goDriver) tokens(t testing.TB, ask func() (*oauth2.Token, error)) (tokens, *refusal) {
	t.Helper()
	token, err := ask()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return tokens{}, &refusal{refused.ErrorCode, refused.Response.StatusCode}
	}
	programs.Must(t, err)
	d.token = token
	text := func(name string) string { s, _ := token.Extra(name).(string); return s }
	return tokens{
		AccessToken: token.AccessToken, TokenType: token.TokenType, ExpiresIn: int(token.ExpiresIn), RefreshToken: token.RefreshToken,
		Scope: scope(text("scope")), Address: text("address"), Host: text("host"),
	}, nil
}

func (d *goDriver) call(t testing.TB, url string) (int, string) {
	t.Helper()
	resp := programs.Got(oauth2.NewClient(d.context(t), oauth2.StaticTokenSource(d.token)).Get(url))(t)
	defer resp.Body.Close()
	body := programs.Got(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(body)
}

// Package provider asks an OpenID provider who somebody is: discovery, the authorization
// code flow with PKCE (OpenID Connect Core 1.0, RFC 7636, RFC 9207), keys, and what
// Back-Channel Logout 1.0 tells of. What comes in is a provider as its operator wrote it
// down, and what browsers bring back from it; what goes out is Claims, or a refusal whose
// sentence can be shown to a person. Each request is bounded in time and size.
//
// It knows no accounts, rows or pages, and keeps nothing of a sign-in.
package provider

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

const (
	// askAgain is how long after a provider did not answer it is asked anew, and at most how
	// often, whoever waits for it.
	askAgain = 10 * time.Second
	// readAgain is how often what it says of itself is read.
	readAgain = time.Hour
)

// Provider is one of those people can sign in with. It is safe for concurrent use.
type Provider struct {
	Config
	client *http.Client
	now    func() time.Time
	log    *slog.Logger
	found  atomic.Pointer[found]

	asking chan struct{} // has room for who asks the provider for what it says of itself
	asked  time.Time     // guarded by asking
	away   error         // guarded by asking: why it said nothing then
}

// found is a provider as it says it is.
type found struct {
	*oidc.Provider
	endpoint oauth2.Endpoint
	keys     oidc.KeySet
	verifier *oidc.IDTokenVerifier
	names    bool // it names itself where it leads browsers back (RFC 9207)
}

// New starts nothing; call Run. Both may be nil.
func New(cfg Config, now func() time.Time, log *slog.Logger) *Provider {
	if now == nil {
		now = time.Now
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler)).With("provider", cfg.Name)
	return &Provider{Config: cfg, client: cfg.client(now), now: now, log: log, asking: make(chan struct{}, 1)}
}

// Run reads what the provider says of itself, again and again, until ctx is done. It may be
// down meanwhile, and as long as it likes.
func (p *Provider) Run(ctx context.Context) error {
	for {
		wait := readAgain
		if _, err := p.read(ctx); err != nil {
			wait = askAgain
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Away is why nobody can sign in with the provider now, as far as that is known, or nil.
func (p *Provider) Away() error {
	if p.found.Load() != nil {
		return nil
	}
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
		return p.away
	default:
		return nil
	}
}

// as is the provider as it says it is.
func (p *Provider) as(ctx context.Context) (*found, error) {
	if f := p.found.Load(); f != nil {
		return f, nil
	}
	return p.read(ctx)
}

// read asks the provider for what it says of itself, unless somebody did a moment ago. What
// it said before counts on while it says nothing.
func (p *Provider) read(ctx context.Context) (*found, error) {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, p.refusal("discovery", ctx.Err())
	}
	if age := p.now().Sub(p.asked); age >= askAgain || age < 0 {
		f, err := p.discover(ctx)
		if ctx.Err() != nil {
			return nil, p.refusal("discovery", err)
		}
		if err == nil {
			p.found.Store(f)
		} else if p.away == nil {
			p.log.Warn("a provider does not say what it is; people cannot sign in with it until it does", "err", err)
		}
		p.asked, p.away = p.now(), nil
		if err != nil {
			p.away = p.refusal("discovery", err)
		}
	}
	if f := p.found.Load(); f != nil {
		return f, nil
	}
	return nil, p.away
}

func (p *Provider) discover(ctx context.Context) (*found, error) {
	ctx = oidc.ClientContext(ctx, p.client)
	provider, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return nil, err
	}
	var said struct {
		Keys    string   `json:"jwks_uri"`
		Names   bool     `json:"authorization_response_iss_parameter_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&said); err != nil {
		return nil, err
	}
	f := &found{Provider: provider, endpoint: provider.Endpoint(), names: said.Names}
	for _, address := range []string{f.endpoint.AuthURL, f.endpoint.TokenURL, said.Keys} {
		if u, err := url.Parse(address); err != nil || u.Host == "" || !p.scheme(u) {
			return nil, errors.New("one of its addresses is missing, or not https://")
		}
	}
	f.endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if len(said.Methods) > 0 && !slices.Contains(said.Methods, "client_secret_basic") {
		f.endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	f.keys = oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), p.client), said.Keys)
	f.verifier = provider.Verifier(&oidc.Config{ClientID: p.ClientID, Now: p.now})
	return f, nil
}

// oauth is how the provider is asked by x/oauth2.
func (p *Provider) oauth(f *found, redirectURI string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.Secret, Endpoint: f.endpoint, RedirectURL: redirectURI,
		Scopes: []string{oidc.ScopeOpenID, oidc.ScopeEmail},
	}
}

// Refusals. Each has a sentence of its own, so that a person knows whom to tell.

func (p *Provider) down() error {
	return controlapi.Refuse(controlapi.CodeUnavailable, words.Of("%s does not answer just now. Try again in a moment, or sign in another way.", p.Label))
}

func (p *Provider) slow() error {
	return controlapi.Refuse(controlapi.CodeUnavailable, words.Of("%s took longer than ten seconds to answer. Try again in a moment, or sign in another way.", p.Label))
}

func (p *Provider) rotated() error {
	return controlapi.Refuse(controlapi.CodeUnavailable, words.Of("%s signed with a key that it does not show. It may just be changing its keys: try again in a minute.", p.Label))
}

func (p *Provider) clock() error {
	return controlapi.Refuse(controlapi.CodeUnavailable, words.Of("The clocks of %s and of this server differ, so nobody can sign in with it. Tell whoever runs this server.", p.Label))
}

func (p *Provider) wrong() error {
	return controlapi.Refuse(controlapi.CodeForbidden, words.Of("What %s answered was not for this sign-in, so nobody was signed in. Try again, or sign in another way.", p.Label))
}

// refusal is what a person is told of an error; the log has the rest.
func (p *Provider) refusal(doing string, err error) error {
	var said *controlapi.Error
	if errors.As(err, &said) {
		return err
	}
	p.log.Info("a provider's answer did not do", "doing", doing, "err", err)
	_, expired := errors.AsType[*oidc.TokenExpiredError](err)
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errClock) || expired:
		return p.clock()
	case errors.Is(err, errKey):
		return p.rotated()
	case errors.As(err, &timeout) && timeout.Timeout():
		return p.slow()
	case errors.Is(err, errAway):
		return p.down()
	}
	if doing == "discovery" {
		return p.down()
	}
	return p.wrong()
}

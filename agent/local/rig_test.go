package local

import (
	"context"
	"crypto/x509"
	"log/slog"
	"sync"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/sync/errgroup"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/localapi"
	"porchlight/agent/ownersecret"
	"porchlight/control"
	"porchlight/test/programs"
)

const secret = "a test's owner secret"

// newServer is a loopback API of its own.
func newServer(dataDir, address string) *localapi.Server {
	return localapi.NewServer(localapi.ServerConfig{
		DataDir: dataDir, Address: address,
		OwnerSecretHash: ownersecret.Hash(secret),
	})
}

// configOf is for one run on a data directory.
func configOf(dataDir string) Config {
	return Config{
		Agent: agent.Config{
			DataDir: dataDir, Server: newServer(dataDir, "127.0.0.1:0"), Mode: agentapi.ModeHeadless, Log: slog.New(slog.DiscardHandler),
		},
		HTTPS: "127.0.0.1:0",
	}
}

// running is a Local that serves.
type running struct {
	*Local
	*localapi.Server
	end func() error // stops it and says how it ended
}

func start(t testing.TB, cfg Config) *running {
	t.Helper()
	l := programs.Got(New(t.Context(), cfg))(t)
	r := &running{Local: l, Server: cfg.Agent.Server}
	r.serve(t, l.Run)
	return r
}

// account is whose computer this is, and roots whom its visitors trust.
func (r *running) account() agentapi.Account { return r.agent.Account() }

func (r *running) roots() *x509.CertPool { return r.controlPlane.ca.Pool() }

// serve returns when visitors can come.
func (r *running) serve(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.Server.Run(ctx) })
	g.Go(func() error { return run(ctx) })
	r.end = sync.OnceValue(func() error { cancel(); return g.Wait() })
	select {
	case <-r.agent.Ready():
	case <-ctx.Done():
		t.Fatalf("it did not start: %v", r.end())
	}
}

// allowClient has somebody allow a remote client of their own, without the pages
// for it, and returns the client's access token.
func (r *running) allowClient(t *testing.T, email string) (token, grantID string) {
	t.Helper()
	ctx, service := t.Context(), r.controlPlane.Service
	const back = "https://client.example/callback"
	registered, clientSecret, err := service.Clients.Add(ctx, "Pocket Notes", []string{back})
	programs.Must(t, err)
	account := programs.Got(service.Accounts.ByEmail(ctx, email))(t)
	verifier := oauth2.GenerateVerifier()
	code := programs.Got(service.Grants.Authorize(ctx, control.Authorization{
		ClientID: registered.ID, RedirectURI: back, Challenge: oauth2.S256ChallengeFromVerifier(verifier),
	}, account, r.account().Name))(t)
	tokens := programs.Got(service.Grants.Exchange(ctx, control.Credentials{ID: registered.ID, Secret: clientSecret},
		control.Exchange{Code: code, RedirectURI: back, Verifier: verifier}))(t)
	grants, err := service.Grants.OfAccount(ctx, account.ID)
	if err != nil || len(grants) != 1 {
		t.Fatalf("%d grants, %v", len(grants), err)
	}
	return tokens.Access, grants[0].ID
}

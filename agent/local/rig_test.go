package local

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/localapi"
	"porchlight/agent/ownersecret"
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
	l, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Local: l, Server: cfg.Agent.Server}
	r.serve(t, l.Run)
	return r
}

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

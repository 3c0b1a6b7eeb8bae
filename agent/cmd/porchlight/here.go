package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/agent/local"
)

// here is an agent in the process of a command that needed one and found none: it is
// what `porchlight agent` is, and ends with the command.
type here struct {
	running *host.Host
	secret  string
	stop    context.CancelFunc
	ended   chan error
}

// startHere starts an agent of the data directory, as whoever that is: connected, or
// on its own. It returns once visitors can come. Its life is not ctx's: what the
// command has to put back when ctx ends, it puts back there.
func startHere(ctx context.Context, where *location) (*here, error) {
	dir, err := where.dataDir()
	if err != nil {
		return nil, err
	}
	cfg := host.Config{
		DataDir: dir,
		API:     cmp.Or(where.given(), agentapi.DefaultAddress),
		Local:   !host.Connected(dir),
		HTTPS:   local.DefaultHTTPS,
		Mode:    agentapi.ModeHeadless,
	}
	running, secret, err := newHost(ctx, cfg, slog.LevelWarn)
	if err != nil && ctx.Err() == nil {
		// Another user's Porchlight may have the usual addresses.
		cfg.HTTPS = freeOr(cfg.HTTPS)
		if where.given() == "" {
			cfg.API = freeOr(cfg.API)
		}
		running, secret, err = newHost(ctx, cfg, slog.LevelWarn)
	}
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	h := &here{running: running, secret: secret, stop: stop, ended: make(chan error, 1)}
	go func() { h.ended <- running.Run(life) }()
	select {
	case <-running.Ready():
		return h, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), h.end())
	case err := <-h.ended:
		stop()
		return nil, err
	}
}

// freeOr is the usual address, or a free one where that is taken.
func freeOr(usual string) string {
	l, err := net.Listen("tcp", usual)
	if err != nil {
		return "127.0.0.1:0"
	}
	l.Close()
	return usual
}

// end stops the agent and waits for it. A nil one was not needed.
func (h *here) end() error {
	if h == nil {
		return nil
	}
	h.stop()
	return <-h.ended
}

func (h *here) owner() *agentapi.Client {
	return agentapi.NewOwner(h.running.OwnerSocket(), h.secret)
}

package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// readyWithin is how long the store may take to answer.
const readyWithin = 2 * time.Second

// health answers how the node is, on an address of its own that is not for the
// public.
type health struct {
	store    kv.Store
	registry *prometheus.Registry
	draining atomic.Bool
	// certified says whether the auth host has its certificate; nil means always.
	certified func() bool
	// nobody says that neither the store nor another node answers, and no computer is
	// connected here; nil means never.
	nobody func() bool
}

// serve answers until ctx is done.
func (h *health) serve(ctx context.Context, l net.Listener, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "It runs.")
	})
	mux.HandleFunc("GET /livez", h.live)
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	srv := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// closed is why visitors should not be sent here, or "".
func (h *health) closed() string {
	switch {
	case h.draining.Load():
		return "It is shutting down."
	case h.certified != nil && !h.certified():
		return "The certificate authority has not issued a certificate yet."
	case h.nobody != nil && h.nobody():
		return "Neither the database nor any other node answers, and no computer is connected here."
	}
	return ""
}

// live says whether visitors of computers can be served here, which needs no store:
// what a balancer in front asks.
func (h *health) live(w http.ResponseWriter, _ *http.Request) {
	if why := h.closed(); why != "" {
		answer(w, http.StatusServiceUnavailable, why)
		return
	}
	answer(w, http.StatusOK, "It serves visitors.")
}

// ready says whether people can sign in and change things here as well.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	if why := h.closed(); why != "" {
		answer(w, http.StatusServiceUnavailable, why)
		return
	}
	ctx, cancel := context.WithTimeout(kv.First(r.Context()), readyWithin)
	defer cancel()
	err := h.store.View(ctx, func(tx kv.Tx) error {
		_, err := tx.Scan("", "", 1)
		return err
	})
	if err != nil {
		answer(w, http.StatusServiceUnavailable, "The store does not answer.")
		return
	}
	answer(w, http.StatusOK, "It serves.")
}

func answer(w http.ResponseWriter, status int, sentence string) {
	controlapi.WriteJSON(w, status, map[string]any{"ok": status == http.StatusOK, "message": sentence})
}

package health

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
	"porchlight/internal/broadcast"
)

// Run asks the apps that are due, a few at a time, until ctx ends.
func (h *Health) Run(ctx context.Context) error {
	var asking errgroup.Group
	asking.SetLimit(atOnce)
	defer func() { _ = asking.Wait() }()
	for {
		id, next := h.nextDue()
		if id != "" {
			asking.Go(func() error { h.ask(ctx, id); return nil })
			continue
		}
		if !h.sleep(ctx, next) {
			return ctx.Err()
		}
	}
}

// sleep waits until something may be due; next is when, zero for not before
// somebody wants it. It is false when ctx ended.
func (h *Health) sleep(ctx context.Context, next time.Time) bool {
	var timer <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(next.Sub(h.cfg.Now()))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-timer:
	case <-h.wake:
	}
	return ctx.Err() == nil
}

// nextDue returns the app to be asked now, or when the next one is due: the latest that
// is wanted first, because for that somebody may be waiting.
func (h *Health) nextDue() (id string, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.cfg.Now()
	var first *entry
	for of, e := range h.apps {
		switch {
		case e.due.IsZero() || e.running:
		case e.due.After(now):
			if next.IsZero() || e.due.Before(next) {
				next = e.due
			}
		case first == nil || e.due.After(first.due):
			first, id = e, of
		}
	}
	if first != nil {
		first.due, first.running = time.Time{}, true
	}
	return id, next
}

// ask probes one app and notes the result, unless the app is another by then, or
// gone: what was asked is what is told.
func (h *Health) ask(ctx context.Context, id string) {
	app, ok := h.find(id)
	var r result
	if ok = ok && h.cfg.On(); ok {
		r = h.probe(ctx, app, h.checks(ctx, app))
		r.at = h.cfg.Now()
		if r.state == agentapi.HealthNothing && h.cfg.Elsewhere(ctx, app.Name, app.Target()) {
			h.Changed(id)
		}
		now, still := h.find(id)
		ok = still && now.same(app) && r.conclusive && ctx.Err() == nil
	}
	socket := uint64(0)
	if ok {
		socket = h.cfg.Socket(app.Target())
	}
	if h.conclude(id, app, socket, r, ok) {
		h.cfg.Log.Info("asked an app", "app", id, "health", string(r.state))
		h.cfg.Changes.Raise()
	}
	broadcast.Raise(h.wake) // it may be due again
}

// checks are those of a visitor's connection, and that the app is still asked the same:
// a probe makes several connections, and the owner may pause the app between two.
func (h *Health) checks(ctx context.Context, app asked) (c upstream.Checks) {
	c.Peer = func(l agentapi.Listener) bool {
		now, ok := h.find(app.ID)
		return ok && now.same(app) && h.cfg.On() && h.cfg.Welcomes(app.Name, app.Target(), l)
	}
	c.Key = func(key string) bool { return h.cfg.ShowedKey(ctx, app.Name, key) }
	return c
}

// conclude notes what a probe found; it is false where nothing changed that anybody
// is told.
func (h *Health) conclude(id string, app asked, socket uint64, r result, conclusive bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.apps[id]
	if e == nil {
		return false
	}
	e.running = false
	if r.sent {
		e.asked = h.cfg.Now()
	}
	if conclusive {
		if socket != e.socket && e.about.ID != "" {
			e.learnt.kinds, e.learnt.vain = nil, false // another program, or one with other settings
		}
		e.probed, e.met, e.about, e.socket = r.verdict, verdict{}, app, socket
		if e.suspect.state == r.state && r.option == nil {
			e.met = e.suspect
		}
		e.suspect = verdict{}
		if mayRecover(r.verdict) || r.note {
			h.await(e, true)
		}
		if r.state == agentapi.HealthAnswers && e.well.IsZero() {
			e.well = h.cfg.Now()
		}
	}
	if e.due.IsZero() {
		e.end()
	}
	return conclusive
}

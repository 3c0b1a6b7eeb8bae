package engine

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
)

// watch begins to wait for a row's process, when Run is running. mu is held.
func (r *Registry) watch(row *registrant) {
	switch {
	case row.process == nil:
		row.stop = func() {}
	case r.run == nil:
		row.stop = row.process.Close
	default:
		ctx, cancel := context.WithCancel(r.run)
		row.stop = cancel
		r.watchers.Go(func() {
			defer cancel()
			if row.process.Wait(ctx) == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.remove(row, "its process has ended")
			}
		})
	}
}

// remove ends a registration, unless it has ended. mu is held.
func (r *Registry) remove(row *registrant, why string) {
	key := registrantKey{row.AppID, row.PID}
	if r.rows[key] != row {
		return
	}
	delete(r.rows, key)
	row.stop()
	if len(r.rows) == 0 {
		r.aloneSince = r.cfg.Now()
	}
	r.notify()
	r.cfg.Log.Info("an app is detached", "app", row.AppID, "pid", row.PID, "why", why, "registrants", len(r.rows))
}

// notify tells Run and the owner's side. mu is held.
func (r *Registry) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
	r.changes.Raise()
}

func (r *Registry) ofApp(appID string) []*registrant {
	var rows []*registrant
	for key, row := range r.rows {
		if key.appID == appID {
			rows = append(rows, row)
		}
	}
	return rows
}

// Run ends registrations whose time has come, until ctx ends; then it lets go of
// every process. It returns nil.
func (r *Registry) Run(ctx context.Context) error {
	r.mu.Lock()
	r.run = ctx
	if r.cfg.FirstWithin > 0 && len(r.rows) == 0 && r.aloneSince.IsZero() {
		r.aloneSince = r.cfg.Now().Add(r.cfg.FirstWithin - r.cfg.Grace)
	}
	for _, row := range r.rows {
		r.watch(row)
	}
	r.mu.Unlock()
	defer r.letGo()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
		if next := r.sweep(); next > 0 {
			timer.Reset(next)
		}
	}
}

// sweep ends what is over and says how long nothing else can be; 0 for ever.
// A heartbeat moves a deadline later, so the timer can be early and never late.
func (r *Registry) sweep() (next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	sooner := func(left time.Duration) {
		if next == 0 || left < next {
			next = left
		}
	}
	for _, row := range r.rows {
		if left := agentapi.ReapAfter - now.Sub(row.LastSeenAt); left > 0 {
			sooner(left)
		} else {
			r.remove(row, "no heartbeat")
		}
	}
	if r.cfg.Grace > 0 && len(r.rows) == 0 && !r.aloneSince.IsZero() && !r.stopped {
		if left := r.cfg.Grace - now.Sub(r.aloneSince); left > 0 {
			sooner(left)
		} else {
			r.stopped = true
			close(r.idle)
		}
	}
	return next
}

func (r *Registry) letGo() {
	r.mu.Lock()
	for _, row := range r.rows {
		row.stop()
	}
	r.stopped = true
	r.mu.Unlock()
	r.watchers.Wait()
}

// goneProcess stands for a pid that no process had: it is counted, and reaped
// like one that died a moment later.
type goneProcess struct{}

func (goneProcess) Ended() bool                { return true }
func (goneProcess) Wait(context.Context) error { return nil }
func (goneProcess) Close()                     {}

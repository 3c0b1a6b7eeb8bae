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
		process := row.process
		r.watchers.Go(func() {
			defer cancel()
			defer process.Close()
			if process.Wait(ctx) != nil {
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if ctx.Err() == nil { // else it is not the row's process any more
				r.remove(row, "its process has ended")
			}
		})
	}
}

// remove ends a registration, unless it has ended. mu is held.
func (r *Registry) remove(row *registrant, why string) {
	key := registrantKey{row.AppID, row.PID, row.asker}
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
	r.wake.Raise()
	r.cfg.Changes.Raise()
}

// ofApp are the registrations of an appId that by may end: those of its own user, or,
// where there are none and by is no Stranger, all. mu is held.
func (r *Registry) ofApp(by Caller, appID string) (own []*registrant) {
	var all []*registrant
	for key, row := range r.rows {
		switch {
		case key.appID != appID:
			continue
		case key.asker == by.registers():
			own = append(own, row)
		}
		all = append(all, row)
	}
	if len(own) == 0 && !by.Stranger {
		return all
	}
	return own
}

func (r *Registry) checkRoom(by Caller) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkFull(by)
}

// checkFull refuses where there are too many registrations for another. mu is held.
func (r *Registry) checkFull(by Caller) error {
	if len(r.rows) >= maxRegistrants {
		return full()
	}
	if !by.Stranger {
		return nil
	}
	var others, theirs int
	for key := range r.rows {
		if key.asker != "" {
			others++
		}
		if key.asker == by.registers() {
			theirs++
		}
	}
	if theirs >= maxRegistrantsOfUser || others >= maxRegistrantsOfOthers {
		return full()
	}
	return nil
}

// endUser ends the registrations of another user's programs: the owner does not
// let them in any more.
func (r *Registry) endUser(userID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, row := range r.rows {
		if key.asker == userID && userID != "" {
			r.remove(row, "its user was shut out")
		}
	}
}

// Run ends registrations whose time has come, until ctx ends; then it lets go of
// every process. It returns nil.
func (r *Registry) Run(ctx context.Context) error {
	woken, cancel := r.wake.Subscribe()
	defer cancel()
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
		case <-woken:
		case <-timer.C:
		}
		timer.Stop()
		if next := r.sweep(); next > 0 {
			timer.Reset(next)
		}
	}
}

// sweep ends what is over and returns how long it is until something else can be; 0
// for never. A heartbeat moves a deadline later, so the timer can only be early.
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

// goneProcess stands for a pid that no process had: the registration counts, and ends
// like that of a process that died a moment later.
type goneProcess struct{}

func (goneProcess) Ended() bool                { return true }
func (goneProcess) Wait(context.Context) error { return nil }
func (goneProcess) Close()                     {}

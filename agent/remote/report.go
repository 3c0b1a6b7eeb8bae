package remote

import (
	"context"

	"porchlight/control/controlapi"
)

// Report tells the control plane the approved apps as they are now, unless it
// has that list already. It returns once the control plane has taken it, or when
// ctx ends, also while another report is under way.
func (r *Remote) Report(ctx context.Context) error {
	select {
	case r.report <- struct{}{}:
		defer func() { <-r.report }()
	case <-ctx.Done():
		return ctx.Err()
	}
	apps := controlapi.Apps{Apps: r.cfg.Apps(), Knocks: r.cfg.Knocks()}
	digest := apps.Digest()
	if r.knows(digest) {
		return nil
	}
	r.has, r.put = "", true // until it is certain again what the control plane has
	if err := r.cfg.Control.PutApps(ctx, apps); err != nil {
		return err
	}
	r.has = digest
	return nil
}

// knows says whether the control plane has the apps of this digest. A snapshot may have
// been made before the last put, so after the first one it counts only where it says that
// something else is there: then they are put again.
func (r *Remote) knows(digest string) bool {
	switch said := r.said.Swap(nil); {
	case said == nil || *said == r.has:
	case r.put:
		r.has = ""
	default:
		r.has = *said
	}
	return r.has == digest
}

// reportForever reports after every change, until it is taken, and where a snapshot says
// that the control plane has something else. It waits for the first one: mostly that says
// that nothing changed since the last run, and the tunnel brings it, so that no other
// connection is needed.
func (r *Remote) reportForever(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-r.answered:
	}
	failures := 0
	for ctx.Err() == nil {
		woken := r.wakeups()
		if err := r.Report(ctx); err != nil && ctx.Err() == nil {
			failures++
			r.cfg.Log.Warn("could not tell the control plane which apps are published", "err", err)
			wait, woken := pause(woken, err, failures)
			sleep(ctx, woken, wait)
			continue
		}
		failures = 0
		select {
		case <-ctx.Done():
		case <-r.answered:
		case <-r.cfg.AppsChanged:
		}
	}
	return ctx.Err()
}

// signal leaves a token, where there is none yet.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

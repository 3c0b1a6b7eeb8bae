package remote

import (
	"context"
	"math/rand/v2"
	"time"

	"porchlight/control/controlapi"
)

// Where a snapshot says that the control plane has other apps than were put, that may be
// from before the put, or a restored store: so the next one is waited for, and then the apps
// are put again. It may as well be that another computer uses a copy of this one's data and
// puts its own apps: so each further time waits longer, or the two would never rest. Each
// wait is up to half of it longer, by chance.
const (
	firstAgain = 4 * time.Second
	leastAgain = time.Minute
	mostAgain  = time.Hour
	// manyAgain, in a row, is no restored store.
	manyAgain = 3
)

// again is when to put what was put before, because snapshots say that it is not there.
type again struct {
	due      time.Time // zero for not
	earliest time.Time // the next one may be due
	times    int       // in a row
}

// wanted makes it due, unless it is already.
func (a *again) wanted() {
	if !a.due.IsZero() {
		return
	}
	if time.Since(a.earliest) > mostAgain {
		a.times = 0
	}
	a.due = time.Now().Add(stretched(firstAgain))
	if a.due.Before(a.earliest) {
		a.due = a.earliest
	}
}

// done notes that it is put now.
func (a *again) done() {
	a.earliest = time.Now().Add(stretched(min(mostAgain, leastAgain<<min(a.times, 8))))
	a.times++
}

func stretched(wait time.Duration) time.Duration { return wait + rand.N(wait/2) }

// Report tells the control plane the approved apps as they are now, unless it
// has that list already. It returns once the control plane has taken it, or when
// ctx ends, also while another report is under way.
func (r *Remote) Report(ctx context.Context) error {
	_, err := r.tell(ctx, true)
	return err
}

// tell is Report; where not at once, and only a snapshot asks for it, it does so when that
// is due, and says how long that is from now.
func (r *Remote) tell(ctx context.Context, atOnce bool) (wait time.Duration, err error) {
	select {
	case r.report <- struct{}{}:
		defer func() { <-r.report }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	apps := controlapi.Apps{Apps: r.cfg.Apps(), Knocks: r.cfg.Knocks(), TellOff: r.cfg.TellOff != nil && r.cfg.TellOff()}
	if r.cfg.Groups != nil {
		apps.Groups = r.cfg.Groups()
	}
	if r.cfg.Fills != nil {
		apps.Fills = r.cfg.Fills()
	}
	if r.cfg.Ends != nil {
		apps.CertificateEnds = r.cfg.Ends().UTC().Truncate(time.Second)
	}
	digest := apps.Digest()
	r.hear()
	if r.has == digest {
		if r.again.due.IsZero() {
			return 0, nil
		}
		if wait := time.Until(r.again.due); wait > 0 && !atOnce {
			return wait, nil
		}
		r.again.done()
		if r.again.times == manyAgain {
			r.cfg.Log.Warn("the control plane keeps telling other apps than this computer reported; another computer may use a copy of this one's data, or the control plane is of another version")
		}
	}
	r.has = "" // until it is certain again what the control plane has
	r.put, r.again.due = true, time.Time{}
	if err := r.cfg.Control.PutApps(ctx, apps); err != nil {
		return 0, err
	}
	r.has = digest
	return 0, nil
}

// hear takes in what the last snapshot says that the control plane has. It may have been
// made before the last put, so after the first one it counts only where it says that
// something else is there: then they are put again.
func (r *Remote) hear() {
	switch said := r.said.Swap(nil); {
	case said == nil:
	case !r.put:
		r.has = *said
	case *said == r.has || r.has == "": // what is not certain is put anyway
		r.again.due = time.Time{}
	default:
		r.again.wanted()
	}
}

// reportForever reports after every change, until it is taken, and where snapshots say
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
		wait, err := r.tell(ctx, false)
		if err != nil && ctx.Err() == nil {
			failures++
			r.cfg.Log.Warn("could not tell the control plane which apps are published", "err", err)
			wait, woken := pause(woken, err, failures)
			sleep(ctx, woken, wait)
			continue
		}
		failures = 0
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-ctx.Done():
		case <-r.answered:
		case <-r.cfg.AppsChanged:
		case <-due:
		}
	}
	return ctx.Err()
}

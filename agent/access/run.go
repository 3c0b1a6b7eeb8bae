package access

import (
	"context"
	"time"
)

// Run writes the last use of sessions to the disk, removes those that are over, ends access when the control plane has been silent for too long and shares when
// their end has come, and raises the signal when the number of live connections changes.
// It blocks until ctx ends.
func (a *Access) Run(ctx context.Context) error {
	const (
		flushEvery = time.Minute
		keepEvery  = 5 * time.Minute
		sweepEvery = time.Hour
		reportGap  = 500 * time.Millisecond
	)
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	report := time.NewTimer(time.Hour) // armed only between reports
	report.Stop()
	defer report.Stop()
	expiry := time.NewTimer(a.untilExpiry())
	defer expiry.Stop()
	ending := time.NewTimer(a.endShares())
	defer ending.Stop()
	mayEnd, cancelMayEnd := a.endsWake.Subscribe()
	defer cancelMayEnd()
	counted, cancelCounted := a.live.wake.Subscribe()
	defer cancelCounted()
	changed, cancelChanged := a.changes.Subscribe()
	defer cancelChanged()
	connections := counted // nil while report is waited for
	failStatic := a.failStatic()
	a.sweepSessions()
	for {
		select {
		case <-connections:
			a.changes.Raise()
			connections = nil
			report.Reset(reportGap)
		case <-report.C:
			connections = counted
		case <-flush.C:
			a.flushSessions()
			a.observe(a.now())
			a.keepSilence(keepEvery)
			a.expire() // the clock may have been set meanwhile
			a.keepTime()
			ending.Reset(a.endShares())
		case <-mayEnd:
			ending.Reset(a.endShares())
		case <-ending.C:
			ending.Reset(a.endShares())
		case <-changed:
			if now := a.failStatic(); now != failStatic {
				failStatic = now
				a.expire()
				expiry.Reset(a.untilExpiry())
			}
		case <-expiry.C:
			a.observe(a.now())
			a.expire()
			expiry.Reset(a.untilExpiry())
		case <-sweep.C:
			a.sweepSessions()
		case <-ctx.Done():
			a.flushSessions()
			a.observe(a.now())
			a.keepSilence(0)
			a.keepTime()
			return nil
		}
	}
}

// Woke has Run look whether a share has ended: the computer slept, and timers with it,
// or its clock was set.
func (a *Access) Woke() { a.endsWake.Raise() }

// untilExpiry is how long Run may sleep before access can end. Each answer of the
// control plane only moves the end further away, so the timer may fire too early and
// never too late.
func (a *Access) untilExpiry() time.Duration {
	left := a.failStatic() - a.silentFor(a.now())
	if left < 0 {
		return minFailStatic // nothing is open now, and no setting lets access end sooner
	}
	return left + time.Millisecond // Decide lets the last moment pass
}

// expire closes what no state in force allows any more.
func (a *Access) expire() {
	if n := a.closeRefused(); n > 0 {
		a.log.Warn("the control plane has been away too long, connections closed", "closed", n)
		a.changes.Raise()
	}
}

package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/internal/broadcast"
)

// errSyncEnded is where a session ended, and with it its sync.
var errSyncEnded = errors.New("the connection to the relay has ended")

// errAnswers says that the relay sent what belongs to no sync.
var errAnswers = errors.New("the relay told a snapshot that makes no sense")

// knows is what the control plane is told of this agent.
var knows = []string{tunnelwire.KnowsAppGrants}

// askAgainAfter is how long a relay that could not carry the sync is not asked again
// because the other one could not either.
const askAgainAfter = 10 * time.Second

// syncing is the sync of one session.
type syncing struct {
	answers chan answer // has room for the newest

	mu        sync.Mutex // protects what follows
	under     bool       // the relay was asked, and has not said that it ended
	answered  bool       // since it was asked
	begun     bool       // the relay was asked once
	has       string     // the version that the relay takes us to have
	parts     []byte     // of the snapshot that is coming
	failed    time.Time  // when it last ended
	contacted time.Time  // when OnContact was last called
}

type answer struct {
	snapshot controlapi.Snapshot
	err      error
}

// Sync waits until the computer's snapshot is another one than version and gives it to
// take, or to have answered that it still is: the first call says so at once, the next
// one waits for as long as it takes. Between them OnContact tells that the control plane
// is there. An error of take ends the sync by that relay, and the next call asks the other
// one; the connection stays, for visitors. Where none stands, why the last one ended or
// could not be made is an error: what a relay refused is a *controlapi.Error. One call at a
// time.
func (t *Tunnel) Sync(ctx context.Context, version string, receive func(controlapi.Snapshot) error) error {
	for {
		changed := t.Changes()
		s := t.carrier()
		if s == nil {
			select {
			case <-changed:
				continue
			case err := <-t.failed:
				return asRefusal(err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		answer, err := s.wait(ctx, version)
		if errors.Is(err, errSyncEnded) || unavailable(err) && t.mayCarry(s) {
			continue // the other relay's may carry it
		}
		if unavailable(err) {
			broadcast.Raise(s.seeks)
		}
		if err != nil {
			return err
		}
		if err := receive(answer); err != nil {
			s.sync.disown()
			return err
		}
		return nil
	}
}

// tellFailed has Sync learn why no slot is connected: the newest reason counts.
func (t *Tunnel) tellFailed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(err, errBetter) || slices.ContainsFunc(t.sessions[:slots], func(s *session) bool { return s != nil }) {
		return
	}
	t.forgetFailed()
	t.failed <- err
}

// forgetFailed is called with mu held, by everybody who changes what there is.
func (t *Tunnel) forgetFailed() {
	select {
	case <-t.failed:
	default:
	}
}

// asRefusal is what a relay refused as the control plane's word. How long it asked to be
// left alone the slots obey.
func asRefusal(err error) error {
	if refused, ok := errors.AsType[*refusal](err); ok {
		return &controlapi.Error{Code: refused.Code, Message: refused.Message}
	}
	return err
}

// carrier is the slot's session that carries the sync, or is to: one at a time, and neither the
// one that could not just now nor one whose relay asks to be left.
func (t *Tunnel) carrier() (carrier *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var failed time.Time // the carrier's
	for _, s := range t.sessions[:slots] {
		if s == nil || s.ctx.Err() != nil {
			continue
		}
		under, at := s.sync.state()
		if under {
			return s
		}
		if carrier == nil || carrier.draining && !s.draining || carrier.draining == s.draining && at.Before(failed) {
			carrier, failed = s, at
		}
	}
	return carrier
}

// mayCarry says whether the other relay's session may carry the sync that this one could
// not: each is asked once before a refusal counts.
func (t *Tunnel) mayCarry(refused *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	other := t.sessions[1-refused.slot]
	if other == nil || other == refused || other.draining || other.ctx.Err() != nil {
		return false
	}
	_, failed := other.sync.state()
	return time.Since(failed) > askAgainAfter
}

// unavailable says whether a relay could not carry the sync, and another one may.
func unavailable(err error) bool {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	return ok && refusal.Code == controlapi.CodeUnavailable
}

// wait asks unless the relay was asked before, and waits for the next answer.
func (s *session) wait(ctx context.Context, version string) (controlapi.Snapshot, error) {
	if s.sync.begin(version) {
		if s.send(tunnelwire.Frame{Type: tunnelwire.Sync, Version: version, Knows: knows}) != nil || s.ping() != nil {
			_ = s.conn.Close() // ends read
		}
	}
	select {
	case answer := <-s.sync.answers:
		return answer.snapshot, answer.err
	case <-s.ctx.Done():
		return controlapi.Snapshot{}, errSyncEnded
	case <-ctx.Done():
		return controlapi.Snapshot{}, ctx.Err()
	}
}

// synced takes one frame of an answer.
func (s *session) synced(f tunnelwire.Frame) error {
	y := &s.sync
	y.mu.Lock()
	defer y.mu.Unlock()
	if !y.begun {
		return errAnswers
	}
	if len(y.parts)+len(f.Part) > tunnelwire.MaxSnapshot {
		return fmt.Errorf("%w: it is too large", errAnswers)
	}
	y.parts = append(y.parts, f.Part...)
	if f.More {
		return nil
	}
	if !y.under { // of a sync that is over for us
		y.parts = nil
		return nil
	}
	var a answer
	switch {
	case f.Code != "":
		y.under, y.failed = false, time.Now()
		a.err = &controlapi.Error{Code: f.Code, Message: f.Message, RetryAfter: controlapi.RetryAfter(f.RetryAfter)}
	case f.Unchanged:
		a.snapshot = controlapi.Snapshot{Version: y.has, Unchanged: true}
	default:
		if err := json.Unmarshal(y.parts, &a.snapshot); err != nil || a.snapshot.Version == "" {
			return fmt.Errorf("%w: %d bytes", errAnswers, len(y.parts))
		}
		y.has = a.snapshot.Version
	}
	y.parts, y.answered, y.contacted = nil, true, time.Now()
	for { // the newest one counts
		select {
		case y.answers <- a:
			return nil
		case <-y.answers:
		}
	}
}

func (y *syncing) state() (under bool, failed time.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.under, y.failed
}

// begin reports whether the relay is to be asked.
func (y *syncing) begin(version string) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.under && (y.has == version || len(y.answers) > 0) {
		return false
	}
	y.under, y.begun, y.answered, y.has = true, true, false, version
	return true
}

// disown ends the sync for us, because the relay told what is not believed. What it goes
// on telling is not looked at.
func (y *syncing) disown() {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.under {
		y.under, y.failed = false, time.Now()
	}
	select {
	case <-y.answers:
	default:
	}
}

// due reports whether the control plane's answer is to be told now.
func (y *syncing) due(now time.Time) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if !y.under || !y.answered || now.Sub(y.contacted) < contactEvery-time.Second {
		return false
	}
	y.contacted = now
	return true
}

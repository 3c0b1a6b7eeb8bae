package tunnel

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
)

// Visitors who land on a relay without a tunnel of this computer are passed on to one that
// has, which costs both. Where that happens again and again, the one that has says so, and
// this computer comes to the other as well, until nobody comes by it any more. Such an extra
// session is like the slots' but for three things: it carries no sync, stands in for no
// other, and ends where a slot connects to the same node. Which relays there are the control
// plane says: who asks to come can name one of them, and no other address.

const (
	// extras is how many relays a computer comes to at a time, besides its slots.
	extras = 4
	// comeAgainAfter is how long a relay is not come to again, whoever asks for it.
	comeAgainAfter = time.Minute
)

var (
	errIdle  = errors.New("nobody has come by the relay for a while")
	errTaken = errors.New("the computer is connected to the relay's node for good")
)

// come has the relay at address come to, if it is listed and there is room.
func (t *Tunnel) come(address string) {
	list := t.cfg.Relays()
	i := slices.IndexFunc(list, func(r controlapi.Relay) bool { return r.Address == address })
	if i < 0 {
		t.log.Debug("a relay asked to come to one that is not listed; it is left alone", "asked", address)
		return
	}
	select {
	case t.comes <- list[i]:
	default: // as many are waiting as there may be in all
	}
}

// keepExtras keeps the extra sessions until ctx ends.
func (t *Tunnel) keepExtras(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case relay := <-t.comes:
			if slot, ok := t.reserve(relay); ok {
				wg.Go(func() {
					defer t.release(slot)
					t.stay(ctx, slot, relay)
				})
			}
		}
	}
}

// reserve notes that an extra session's slot uses relay, if there is one, nobody else uses
// the relay, and nothing is known against it.
func (t *Tunnel) reserve(relay controlapi.Relay) (slot int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, now, free := t.of(relay), t.now(), slices.Index(t.inUse[slots:], nil)
	if free < 0 || t.taken(relay) || uses(t.inUse[slots:], relay) || now.Before(k.until) || now.Before(k.comeAt) {
		return 0, false
	}
	k.comeAt = now.Add(comeAgainAfter)
	t.inUse[slots+free], t.visits[free] = &relay, &visits{last: now}
	return slots + free, true
}

// stay has a session with relay. One that is lost is followed by another while the relay
// may have to be told of visits that came by it and were aborted since.
func (t *Tunnel) stay(ctx context.Context, slot int, relay controlapi.Relay) {
	backoff := firstBackoff
	for {
		woken, began := t.wakeups(), time.Now()
		err := t.session(ctx, slot, relay)
		if ctx.Err() != nil {
			return
		}
		t.log.Info("the extra connection to a relay ended", "relay", relay.Address, "err", err)
		wait, ok := t.again(slot, relay, err)
		if !ok {
			return
		}
		if time.Since(began) >= steadyAfter {
			backoff = firstBackoff
		}
		wait += jitter(backoff)
		backoff = min(2*backoff, lastBackoff)
		if sleep(ctx, woken, wait) {
			backoff = firstBackoff
		}
	}
}

// again says whether another is to follow slot's extra session with relay, which ended for
// err, and what the relay asked to wait. That is kept apart from what slots know of relays:
// strangers can have an extra session refused, and must not hold a slot back.
func (t *Tunnel) again(slot int, relay controlapi.Relay, err error) (wait time.Duration, ok bool) {
	listed := t.listed(relay)
	t.mu.Lock()
	defer t.mu.Unlock()
	if refused, is := errors.AsType[*refusal](err); is {
		wait = refused.after()
		if k, until := t.of(relay), t.now().Add(wait); until.After(k.comeAt) {
			k.comeAt = until
		}
	}
	return wait, listed && !final(err) && !t.taken(relay) && t.visits[slot-slots].lately(t.now(), abortedFor)
}

// final says of a session's end that one side wanted it, or that trying again is of no use.
func final(err error) bool {
	if refused, is := errors.AsType[*refusal](err); is {
		return refused.patient()
	}
	return slices.ContainsFunc([]error{errIdle, errTaken, errSameNode, errDraining, errUnlisted}, func(why error) bool { return errors.Is(err, why) })
}

// extra says whether the session is one besides the slots'.
func (s *session) extra() bool { return s.slot >= slots }

// roomOf is where the session of slot counts tickets, and visits where it is an extra one.
func (t *Tunnel) roomOf(slot int) (places chan struct{}, visits *visits) {
	if slot < slots {
		return make(chan struct{}, ticketsAtOnce(t.cfg.Files)), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return make(chan struct{}, extraTickets(t.cfg.Files)), t.visits[slot-slots]
}

// idle ends an extra session by which nobody has come for as long as computers stay awake.
func (s *session) idle() {
	t := s.tunnel
	for s.ctx.Err() == nil {
		woken := t.wakeups()
		rest := tunnelwire.AsleepAfter - s.visits.unused(t.now())
		if rest <= 0 {
			s.quit(errIdle)
			return
		}
		sleep(s.ctx, woken, rest)
	}
}

// yield ends the extra sessions with nodes that slots are connected to: what has come by
// them stays, and what comes next has the slot's. Each session asks for it once it is noted:
// a slot's may have settled after an extra one did, and been noted before. A slot at the last
// relay leaves it likewise, once the other slot is connected to the same node or to the only
// relay that is listed.
func (t *Tunnel) yield() {
	ending := map[*session]error{}
	t.mu.Lock()
	for i, s := range t.sessions {
		switch {
		case s == nil:
		case i >= slots && t.nodes[i] != "" && slices.Contains(t.nodes[:slots], t.nodes[i]):
			ending[s] = errTaken
		case i < slots && t.atLast(i) && t.sessions[1-i] != nil && (t.holds(1-i, t.nodes[i]) || len(t.list) == 1):
			ending[s] = errBetter
		}
	}
	t.mu.Unlock()
	for s, why := range ending {
		s.quit(why)
	}
}

// visits are those that came by an extra session, and by those before it that were lost.
type visits struct {
	mu   sync.Mutex // protects what follows
	open int
	some bool
	last time.Time // when one came or ended; without any, when the relay was come to
}

// came counts a visit, until ended is called.
func (v *visits) came(now func() time.Time) (ended func()) {
	v.count(1, now())
	return sync.OnceFunc(func() { v.count(-1, now()) })
}

func (v *visits) count(n int, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open, v.some, v.last = v.open+n, true, now
}

// lately says whether one is open, or was within so long.
func (v *visits) lately(now time.Time, within time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.open > 0 || v.some && now.Sub(v.last) < within
}

// unused is for how long none has been open.
func (v *visits) unused(now time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open > 0 {
		return 0
	}
	return now.Sub(v.last)
}

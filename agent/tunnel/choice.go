package tunnel

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"porchlight/control/controlapi"
)

const (
	// drainedFor is how long a relay that goes away is left alone while there is another,
	// and sameNodeFor one that turned out to be the node of the other slot's.
	drainedFor  = 30 * time.Second
	sameNodeFor = 10 * time.Minute
	// A relay counts as far when connecting takes more than twice as long as to the
	// nearest and farBy besides: what is nearer by less does not move anybody.
	farBy = 20 * time.Millisecond
	// silentFor is how long a relay's address may be silent while there is another relay;
	// what its program does, which may be busy, is waited for as always.
	silentFor = 3 * time.Second
	// nearFor is how long a measured time counts before it is measured anew.
	nearFor = 6 * time.Hour
	// homeAfter is how long a slot waits, twice at most, before it asks a relay that comes
	// before its own and answers again whether it may come; doubled for each time that one
	// has refused, three times at most.
	homeAfter = time.Minute
)

var (
	errSameNode = errors.New("the relay is the node that this computer is connected to already")
	errBetter   = errors.New("a relay that comes before this one has welcomed this computer")
)

// tried is what is known of a relay.
type tried struct {
	comeAt time.Time // as an extra one it is not dialled before
	until  time.Time // another one is dialled before
	firmly bool      // and this one not even where there is no other: it asked for that
	fails  int       // in a row, refusals too
	near   time.Duration
	asOf   time.Time // when near was measured
}

// of is what is known of a relay. mu is held.
func (t *Tunnel) of(relay controlapi.Relay) *tried {
	k := t.known[relay]
	if k == nil {
		k = &tried{}
		t.known[relay] = k
	}
	return k
}

// ranked are relays in the order in which they are wanted: as the control plane put
// them, which spreads computers over nodes, and those that are far behind the others.
// mu is held.
func (t *Tunnel) ranked(list []controlapi.Relay) []controlapi.Relay {
	var nearest time.Duration
	for _, r := range list {
		if near := t.of(r).near; near > 0 && (nearest == 0 || near < nearest) {
			nearest = near
		}
	}
	far := func(r controlapi.Relay) time.Duration {
		if near := t.of(r).near; near > 2*nearest+t.farBy {
			return near
		}
		return 0
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b controlapi.Relay) int { return cmp.Compare(far(a), far(b)) })
	return list
}

// ready says that nothing is known against dialling a relay.
func (k *tried) ready(now time.Time) bool { return k.fails == 0 && !now.Before(k.until) }

// free are the relays that no slot uses, in the order in which slot is to dial them: those
// that did not fail as they are wanted, then the last one, then those that did fail, the one
// that was left alone for the longest time first; otherwise who comes back to a dead one, as
// often as its time has come, never gets to the living one behind it. The last one is for
// one slot, and while the other has no session. mu is held.
func (t *Tunnel) free(slot int, list []controlapi.Relay) []controlapi.Relay {
	list, now := t.ranked(list), t.now()
	last := t.cfg.Last
	if last.Address != "" && !slices.Contains(list, last) && slot == 0 && t.sessions[1] == nil {
		list = append(list, last)
	} else {
		last = controlapi.Relay{}
	}
	free := slices.DeleteFunc(list, t.taken)
	order := func(r controlapi.Relay) int {
		switch k := t.of(r); {
		case k.ready(now) && r != last:
			return 0
		case k.ready(now):
			return 1
		case k.firmly && now.Before(k.until):
			return 3
		}
		return 2
	}
	slices.SortStableFunc(free, func(a, b controlapi.Relay) int {
		if c := cmp.Compare(order(a), order(b)); c != 0 || order(a) == 0 {
			return c
		}
		return t.of(a).until.Compare(t.of(b).until)
	})
	return free
}

// pick chooses a relay for slot and notes it. With a wait none may be dialled sooner;
// without ok there is none.
func (t *Tunnel) pick(slot int) (chosen controlapi.Relay, wait time.Duration, ok bool) {
	if chosen, ok := t.pickHanded(slot); ok {
		return chosen, 0, true
	}
	if t.cfg.Credential() == "" {
		return controlapi.Relay{}, 0, false
	}
	list := t.cfg.Relays()
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.known {
		if r != t.cfg.Last && !slices.Contains(list, r) {
			delete(t.known, r)
		}
	}
	free := t.free(slot, list)
	if len(free) == 0 {
		return controlapi.Relay{}, 0, false
	}
	chosen = free[0]
	if k := t.of(chosen); k.firmly && t.now().Before(k.until) {
		return chosen, k.until.Sub(t.now()), true
	}
	t.inUse[slot] = &chosen
	return chosen, 0, true
}

// pickHanded notes the relay that welcomed slot already.
func (t *Tunnel) pickHanded(slot int) (chosen controlapi.Relay, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next[slot] == nil {
		return controlapi.Relay{}, false
	}
	chosen = t.next[slot].relay
	t.inUse[slot] = &chosen
	return chosen, true
}

// another says that there is a relay for slot to dial at once, instead of one that failed.
func (t *Tunnel) another(slot int) bool {
	list := t.cfg.Relays()
	t.mu.Lock()
	defer t.mu.Unlock()
	free := t.free(slot, list)
	return len(free) > 0 && t.of(free[0]).ready(t.now())
}

// reachWait is how long the address of a relay that is being dialled has to answer.
func (t *Tunnel) reachWait() time.Duration {
	if t.another(0) {
		return silentFor
	}
	return dialWait
}

// taken says that a slot uses relay. mu is held.
func (t *Tunnel) taken(relay controlapi.Relay) bool {
	return uses(t.inUse[:slots], relay) ||
		slices.ContainsFunc(t.next[:], func(w *welcomed) bool { return w != nil && w.relay == relay })
}

func uses(inUse []*controlapi.Relay, relay controlapi.Relay) bool {
	return slices.ContainsFunc(inUse, func(u *controlapi.Relay) bool { return u != nil && *u == relay })
}

// note keeps why a connection to relay ended, after it had lasted for so long.
func (t *Tunnel) note(relay controlapi.Relay, err error, lasted time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, now := t.of(relay), t.now()
	if k.firmly = false; lasted >= steadyAfter {
		k.fails = 0
	}
	failed := min(k.fails+1, 10)
	refused, wasRefused := errors.AsType[*refusal](err)
	switch {
	case errors.Is(err, errBetter), errors.Is(err, errUnlisted):
	case errors.Is(err, errDraining):
		k.until = now.Add(drainedFor)
	case errors.Is(err, errSameNode):
		k.until, k.firmly = now.Add(sameNodeFor), true
	case wasRefused && !refused.patient() && refused.after() > 0:
		k.until, k.firmly, k.fails = now.Add(refused.after()+jitter(firstBackoff)), true, failed
	default:
		k.until, k.fails = now.Add(min(firstBackoff<<failed, lastBackoff)), failed
	}
}

// claimNode notes which node slot is connected to, which must not be the other slot's, unless
// that is at the last relay, see yield; an extra session's must be nobody's.
func (t *Tunnel) claimNode(slot int, node string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes[slot] = "" // an extra session's, of the one before
	if slot < slots && t.holds(1-slot, node) && !t.atLast(1-slot) || slot >= slots && node != "" && slices.Contains(t.nodes[:], node) {
		return errSameNode
	}
	t.nodes[slot] = node
	return nil
}

// holds says whether slot is connected to a node, and atLast whether by the last relay, which
// may be a listed one by its other address. mu is held.
func (t *Tunnel) holds(slot int, node string) bool { return node != "" && t.nodes[slot] == node }

func (t *Tunnel) atLast(slot int) bool {
	return t.inUse[slot] != nil && *t.inUse[slot] == t.cfg.Last
}

// measured notes what connecting to relay took. The best counts: it is the way's own.
func (t *Tunnel) measured(relay controlapi.Relay, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.of(relay); k.near == 0 || took < k.near || t.now().Sub(k.asOf) > nearFor {
		k.near, k.asOf = took, t.now()
	}
}

// better is a relay that comes before one that slot is connected to, if neither slot uses
// it: the first two are wanted. One that asked for a wait is the last resort.
func (t *Tunnel) better(relay controlapi.Relay) (controlapi.Relay, bool) {
	list := t.cfg.Relays()
	t.mu.Lock()
	defer t.mu.Unlock()
	ranked := t.ranked(list)
	wanted := ranked[:min(slots, len(ranked))]
	if slices.Contains(wanted, relay) {
		return controlapi.Relay{}, false
	}
	wanted = slices.DeleteFunc(slices.Clone(wanted), t.taken)
	if len(wanted) == 0 {
		return controlapi.Relay{}, false
	}
	now := t.now()
	return slices.MinFunc(wanted, func(a, b controlapi.Relay) int {
		return cmp.Compare(t.of(a).asked(now), t.of(b).asked(now))
	}), true
}

// asked is how much longer a relay asked not to be dialled.
func (k *tried) asked(now time.Time) time.Duration {
	if !k.firmly {
		return 0
	}
	return max(0, k.until.Sub(now))
}

// unmeasured are listed relays of which it is not known how far they are, where there is
// a choice.
func (t *Tunnel) unmeasured() (relays []controlapi.Relay) {
	list := t.cfg.Relays()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(list) <= slots {
		return nil
	}
	for _, r := range list {
		if k := t.of(r); !t.taken(r) && (k.asOf.IsZero() || t.now().Sub(k.asOf) > nearFor) {
			k.near, k.asOf = 0, t.now() // also of one that does not answer: it is asked once
			relays = append(relays, r)
		}
	}
	return relays
}

// untilHome is how long to wait before a slot leaves its relay for a better one.
func (t *Tunnel) untilHome(better controlapi.Relay) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, some := t.of(better), jitter(t.homeAfter)
	return max((t.homeAfter+some)<<min(k.fails, 3), k.asked(t.now())+some)
}

// reach connects to a relay and closes again, and says whether it answered.
func (t *Tunnel) reach(ctx context.Context, relay controlapi.Relay) bool {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	conn, err := t.dial(ctx, relay)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// home finds out how far the other relays are, and ends the session when one that comes
// before its own has welcomed this computer. Once it is where it is wanted, only a Wake stirs it.
func (s *session) home() {
	t := s.tunnel
	var leaveAt time.Time
	for s.ctx.Err() == nil {
		woken := t.wakeups()
		if others := t.unmeasured(); len(others) > 0 {
			sleep(s.ctx, nil, jitter(t.homeAfter))
			for _, r := range others {
				t.reach(s.ctx, r)
			}
		}
		better, ok := t.better(s.relay)
		if !ok {
			leaveAt = time.Time{}
			select {
			case <-s.ctx.Done():
			case <-woken:
			case <-s.seeks:
				s.seek()
			}
			continue
		}
		if leaveAt.IsZero() {
			leaveAt = time.Now().Add(t.untilHome(better))
		}
		if sleep(s.ctx, woken, time.Until(leaveAt)) {
			continue
		}
		leaveAt = time.Time{}
		other := t.elsewhere(s)
		if (other != nil || s.relay == t.cfg.Last) && t.reach(s.ctx, better) && (other == nil || other.answers(s)) {
			s.move(better)
		}
	}
}

// seek moves to a spare relay: those that are connected cannot carry the sync, and the node
// of another may reach the store. That is not at once, as their other computers seek, too.
func (s *session) seek() {
	t := s.tunnel
	sleep(s.ctx, nil, jitter(t.homeAfter))
	if carrier := t.carrier(); carrier != nil {
		if under, _ := carrier.sync.state(); under {
			return
		}
	}
	if spare, ok := t.spare(); ok {
		s.move(spare)
	}
}

// spare is a listed relay that no slot uses and whose time has come.
func (t *Tunnel) spare() (controlapi.Relay, bool) {
	list := t.cfg.Relays()
	t.mu.Lock()
	defer t.mu.Unlock()
	ranked, now := t.ranked(list), t.now()
	i := slices.IndexFunc(ranked, func(r controlapi.Relay) bool { return !t.taken(r) && !now.Before(t.of(r).until) })
	if i < 0 {
		return controlapi.Relay{}, false
	}
	return ranked[i], true
}

// move has the slot connected to a better relay instead, once that has welcomed it: who
// answers may refuse, and until then the session stays.
func (s *session) move(better controlapi.Relay) {
	t := s.tunnel
	t.mu.Lock()
	instance := t.instanceOf(s.slot, t.moves[s.slot]+1)
	t.mu.Unlock()
	w, err := t.open(s.ctx, better, instance, false)
	if err == nil {
		if err = t.handOver(s.slot, w); err == nil {
			s.quit(errBetter)
			return
		}
		_ = w.conn.Close()
	}
	if s.ctx.Err() == nil {
		t.note(better, err, 0)
		s.log.Info("a relay that comes before this one answers, and cannot be used yet", "better", better.Address, "err", err)
	}
}

// handOver leaves a connection to the slot whose session ends for it.
func (t *Tunnel) handOver(slot int, w *welcomed) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds(1-slot, w.node) && !t.atLast(1-slot) || t.taken(w.relay) {
		return errSameNode
	}
	t.next[slot] = w
	t.moves[slot]++
	return nil
}

// handed is the connection that was left to slot, or nil; an extra session has none.
func (t *Tunnel) handed(slot int) *welcomed {
	if slot >= slots {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.next[slot]
	t.next[slot] = nil
	return w
}

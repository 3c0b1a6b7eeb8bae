package control

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// A sync of each agent waits here. A change in this process wakes the syncs of the
// computers it touched (core.update). A change by another node on a shared store is
// told by that node (Heard), and seen by reading the version keys of the computers
// whose syncs wait here: when something may have been missed, and now and then. What
// tells nobody, such as a command that opens the store itself, leaves the version of its
// change in one row, which every look reads (instep.go).

const (
	// readVersionsEvery is how often it is asked which versions are to be read.
	readVersionsEvery = 500 * time.Millisecond
	// readMissedEvery is how late another node's change may be noticed where the word of
	// it may have been missed.
	readMissedEvery = time.Second
	// sweepVersionsEvery is how often the version keys are read all the same, some at
	// a time.
	sweepVersionsEvery = 30 * time.Second
	// versionsAtOnce are read by one statement, of a sweep every readVersionsEvery.
	versionsAtOnce = kv.MaxRows
)

// syncsPerComputer bounds the syncs that wait for one computer. An agent that lost
// its connection leaves one behind until its time is over, so more than one is
// normal; beyond the bound the oldest gives way.
const syncsPerComputer = 4

// watchers are who is told by this process.
type watchers struct {
	mu         sync.Mutex
	byComputer map[string][]*telling // guarded by mu; oldest first
	step       context.Context       // guarded by mu; see inStep
	lose       func()                // guarded by mu; ends step
}

// add has who is told woken by each change of a computer. Changes before that wake nobody,
// so the snapshot is read afterwards.
func (ws *watchers) add(computerID string, t *telling) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byComputer == nil {
		ws.byComputer = map[string][]*telling{}
	}
	t.computer = computerID
	list := ws.byComputer[computerID]
	if len(list) >= syncsPerComputer {
		list[0].end(notHere())
		list = slices.Delete(list, 0, 1)
	}
	ws.byComputer[computerID] = append(list, t)
}

func (ws *watchers) remove(t *telling) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	list := slices.DeleteFunc(ws.byComputer[t.computer], func(o *telling) bool { return o == t })
	if len(list) == 0 {
		delete(ws.byComputer, t.computer)
		return
	}
	ws.byComputer[t.computer] = list
}

func (ws *watchers) wake(computerID string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, t := range ws.byComputer[computerID] {
		t.wake()
	}
}

// watched are the computers somebody watches, in order.
func (ws *watchers) watched() []string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ids := make([]string, 0, len(ws.byComputer))
	for id := range ws.byComputer {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// versions are those of the computers with these ids, read many at a time; that
// of a computer which is gone is empty.
func (s *Agents) versions(ctx context.Context, ids []string) (map[string]string, error) {
	out := make(map[string]string, len(ids))
	for some := range slices.Chunk(ids, versionsAtOnce) {
		keys := keysOf(some, keyVersion)
		values, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx kv.Tx) ([][]byte, error) { return tx.GetAll(keys...) })
		if err != nil {
			return nil, err
		}
		for i, id := range some {
			out[id] = string(values[i]) // compared only, so as it is stored
		}
	}
	return out, nil
}

// toldMail is told among the computers that changed, whose ids are longer, where a mail
// was put.
const toldMail = "mail"

// Heard wakes the watches of computers that another node says it changed, and who
// looks for ended credentials and for mails. What is told is not believed: they read the
// store.
func (s *Agents) Heard(told []string) {
	for _, id := range told {
		if id == toldMail {
			s.cfg.Mail.Look(false)
			continue
		}
		s.watchers.wake(id)
		s.lookForEnded()
	}
}

func (s *Agents) lookForEnded() {
	select {
	case s.endedWake <- struct{}{}:
	default: // it is to look already
	}
}

// missing is what the reader of versions knows of changes it may not have heard of.
type missing struct {
	seen map[string]string // the versions it has read, by computer
	read time.Time         // when it began to read them last
	owed bool              // something was missed, and is not looked for yet
	rest []string          // whose versions a sweep has still to read
}

// versionsDue are the computers whose version is to be read now: those of all where
// something may have been missed, and otherwise those whose turn it is in a sweep.
func (s *Agents) versionsDue(ctx context.Context, m *missing) (due []string, all bool) {
	if s.cfg.Missed != nil {
		m.owed = s.cfg.Missed() || m.owed
	}
	m.owed = s.untold.Swap(false) || m.owed
	since := time.Since(m.read)
	all = m.owed && since >= readMissedEvery
	if all {
		s.cfg.Mail.Look(false) // the word of a mail may have been missed
		// A node that has rotated the keys at once is not heard before they are known here.
		if stored, _, err := s.keysStored(ctx); err == nil {
			s.keys.readAgain(stored)
		}
	}
	if all || since >= s.sweepVersions && len(m.rest) == 0 {
		m.read = time.Now()
		s.lookForEnded()
		m.rest = s.watchers.watched()
		maps.DeleteFunc(m.seen, func(id, _ string) bool { _, still := slices.BinarySearch(m.rest, id); return !still })
	}
	due = m.rest
	if !all {
		due = due[:min(len(due), versionsAtOnce)]
	}
	m.rest = m.rest[len(due):]
	return due, all
}

// runVersionReader wakes the watches of computers whose version another node raised.
func (s *Agents) runVersionReader(ctx context.Context) error {
	m := missing{seen: map[string]string{}}
	return repeat(ctx, readVersionsEvery, func(ctx context.Context) { s.readVersions(ctx, &m) })
}

// readVersions reads the versions that are due, and wakes who is to look.
func (s *Agents) readVersions(ctx context.Context, m *missing) {
	due, all := s.versionsDue(ctx, m)
	now, err := s.versions(ctx, due)
	if err != nil {
		m.owed = true
		if ctx.Err() == nil {
			s.log.Warn("reading the versions of computers failed", "err", err)
		}
		return
	}
	for id, v := range now {
		// A computer not seen before may have changed between its sync's
		// look and this one, so that sync looks once more.
		if before, known := m.seen[id]; !known || before != v {
			s.watchers.wake(id)
		}
		m.seen[id] = v
	}
	if all {
		m.owed = false
	}
}

// watches says whether an agent of a computer is told here.
func (ws *watchers) watches(computerID string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.byComputer[computerID]) > 0
}

// relaysFor are the relays that the agent of a computer is given.
func (s *Agents) relaysFor(computerID string) []controlapi.Relay {
	if s.cfg.RelaysFor != nil {
		if relays := s.cfg.RelaysFor(computerID); len(relays) > 0 {
			return relays
		}
	}
	if s.cfg.Relays == nil {
		return []controlapi.Relay{}
	}
	return s.cfg.Relays
}

// RelaysChanged has every waiting sync look again, because Config.RelaysFor may
// answer something else by now.
func (s *Agents) RelaysChanged() { s.wakeAll() }

func (s *core) wakeAll() {
	for _, id := range s.watchers.watched() {
		s.watchers.wake(id)
	}
}

// Changed has the agent of a computer told what another part wrote about it.
func (s *Agents) Changed(ctx context.Context, computerID string) {
	err := s.update(ctx, func(tx *txn) error {
		_, found, err := get[computer](tx, keyComputer(computerID))
		if err != nil || !found { // removed meanwhile
			return err
		}
		return tx.touch(computerID)
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a computer is told of a change only when it asks again", "computer", computerID, "err", err)
	}
}

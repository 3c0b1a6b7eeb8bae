package control

import (
	"context"
	"maps"
	"slices"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/control/kv"
	"porchlight/internal/broadcast"
)

// A change in this process wakes who is told of the computers it touched (core.update). A
// change by another node on a shared store is told by that node (Heard), and seen by
// reading the version keys of the computers that are told of here: when something may have
// been missed, and now and then. What tells nobody, such as a command that opens the store
// itself, leaves the version of its change in one row, which every look reads (endedCredentials).

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

// versions are those of the computers with these ids, read many at a time; that
// of a computer which is gone is empty.
func (s *Agents) versions(ctx context.Context, ids []string) (map[string]string, error) {
	out := make(map[string]string, len(ids))
	for some := range slices.Chunk(ids, versionsAtOnce) {
		keys := keysOf(some, keyVersion)
		values, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx *txn) ([][]byte, error) { return tx.getAll(keys...), nil })
		if err != nil {
			return nil, err
		}
		for i, id := range some {
			out[id] = string(values[i]) // compared only, so as it is stored
		}
	}
	return out, nil
}

// Heard wakes the watches of computers that another node says it changed, and who
// looks for ended credentials and for mails. What is told is not believed: they read the
// store.
func (s *Agents) Heard(computers []string) {
	for _, id := range computers {
		if id == toldMail {
			s.cfg.Mail.Look(false)
			continue
		}
		s.Feed.Wake(id)
		broadcast.Raise(s.endedWake)
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
		broadcast.Raise(s.endedWake)
		m.rest = s.Feed.Watched()
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
			s.Feed.Wake(id)
		}
		m.seen[id] = v
	}
	if all {
		m.owed = false
	}
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

// Changed has the agent of a computer told what another part wrote about it.
func (s *Agents) Changed(ctx context.Context, computerID string) {
	err := s.update(ctx, func(tx *txn) error {
		if _, found := get[computer](tx, keyComputer(computerID)); found { // else it was removed meanwhile
			tx.touch(computerID)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a computer is told of a change only when it asks again", "computer", computerID, "err", err)
	}
}

// endedCredentials are the computers of those credentials that are not good any more. With none to
// look up it reads the store all the same, and what others may have changed for all: the
// line, the keys, and the last change that was told to nobody.
func (s *Agents) endedCredentials(ctx context.Context, credentials []feed.Credential) ([]string, error) {
	keys := []string{keyLine, keyKeys, keyUntold}
	for _, c := range credentials {
		keys = append(keys, keyCredential(c.Hash))
	}
	var line, last string
	var stored storedKeys
	ended, err := viewedOf(ctx, s.core, kv.Rows{Keys: keys}, func(tx *txn) (ended []string, err error) {
		line, _ = get[string](tx, keyLine)
		stored, _ = get[storedKeys](tx, keyKeys)
		last, _ = get[string](tx, keyUntold)
		for _, c := range credentials {
			if id, _ := get[string](tx, keyCredential(c.Hash)); id != c.Computer {
				ended = append(ended, c.Computer)
			}
		}
		return ended, nil
	})
	if err != nil {
		return nil, err
	}
	if line != "" && line != *s.line.Load() {
		s.line.Store(&line)
		s.log.Info("changes are counted in another line from now on")
	}
	s.keys.readAgain(stored)
	if last != s.lastUntold {
		s.lastUntold = last
		s.untold.Store(true)
	}
	return ended, nil
}

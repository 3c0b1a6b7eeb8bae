package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"porchlight/control/kv"
)

// The rows of an SMTP queue are "mail/TIME-ID", where TIME is when the mail is
// due, so that the first row is the next one. Taking a mail up moves it into the
// future by lease: a process that took it and died so gives it back.

const (
	queuePrefix = "mail/"
	// lease is longer than any conversation about one mail.
	lease = 5 * time.Minute
	// rowLife bounds rows that nobody looks at any more. It begins anew whenever
	// a row moves, so it is not what ends delivery.
	rowLife = giveUpAfter + slowestRetry
)

// queued is a mail as stored.
type queued struct {
	Message
	PutAt time.Time `json:"putAt"`
	Tries int       `json:"tries,omitempty"`
	Code  int       `json:"code,omitempty"` // the server's at the last try
}

// taken is a mail that this process has taken to send.
type taken struct {
	queued
	id  string
	key string // where it is kept meanwhile
}

func queueKey(due time.Time, id string) string {
	return fmt.Sprintf("%s%016x-%s", queuePrefix, uint64(due.UnixNano()), id)
}

// dueTime is when the row at key is due; at once where that cannot be read.
func dueTime(key string) time.Time {
	at, _, _ := strings.Cut(key[len(queuePrefix):], "-")
	nanos, err := strconv.ParseUint(at, 16, 63)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, int64(nanos))
}

// dueBy says whether the row at key is due, and whose it is.
func dueBy(key string, now time.Time) (id string, due bool) {
	_, id, _ = strings.Cut(key[len(queuePrefix):], "-")
	return id, !now.Before(dueTime(key))
}

func putQueued(tx kv.Tx, id string, q queued, due time.Time) error {
	return kv.PutJSON(tx, queueKey(due, id), q, rowLife)
}

// expired says whether a mail has waited too long to be of use.
func (q queued) expired(now time.Time) bool {
	life := giveUpAfter
	if q.Life > 0 {
		life = min(life, q.Life)
	}
	return now.Sub(q.PutAt) >= life
}

// due says when the first mail is due, if there is any, without writing.
func (s *SMTP) due(ctx context.Context) (at time.Time, there bool, err error) {
	err = s.store.ViewOf(ctx, kv.Rows{First: []string{queuePrefix}}, func(tx kv.Tx) error {
		items, err := tx.Scan(queuePrefix, "", 1)
		if err != nil || len(items) == 0 {
			return err
		}
		at, there = dueTime(items[0].Key), true
		return nil
	})
	return at, there, err
}

// takeNext takes up the next mail that is due. One that is of no use any more is given up
// instead, and found is false.
func (s *SMTP) takeNext(ctx context.Context) (m taken, found bool, err error) {
	now := s.now()
	var dropped bool
	err = s.store.Update(ctx, func(tx kv.Tx) error {
		m, found, dropped = taken{}, false, false
		items, err := tx.Scan(queuePrefix, "", 1)
		if err != nil || len(items) == 0 {
			return err
		}
		id, due := dueBy(items[0].Key, now)
		if !due {
			return nil
		}
		m.id = id
		if err := json.Unmarshal(items[0].Value, &m.queued); err != nil {
			return fmt.Errorf("decoding a mail: %w", err)
		}
		if err := tx.Delete(items[0].Key); err != nil {
			return err
		}
		if dropped = m.expired(now); dropped {
			return putFailure(tx, id, m.About, m.failure(now, reasonExpired, m.Code))
		}
		found, m.key = true, queueKey(now.Add(lease), id)
		return putQueued(tx, id, m.queued, now.Add(lease))
	})
	if err == nil && dropped {
		s.noteExpired(m.id, m.Tries)
		s.gaveUp(ctx, m.About)
	}
	return m, found, err
}

func (s *SMTP) noteExpired(id string, tries int) {
	s.expired.Add(1)
	s.log.Error("a mail was given up: it could not be delivered in time", "mail", id, "tries", tries)
}

// expireAtOnce bounds one transaction of expire, in mails.
const expireAtOnce = 100

// expire gives up the due mails that have waited too long. While the server can be
// reached that happens as they are taken up; while it is away nobody takes them
// up, and they would end with their rows without a word.
func (s *SMTP) expire(ctx context.Context) error {
	now := s.now()
	type old struct {
		queued
		id, key string
	}
	due := func(tx kv.Tx, after string) (late []old, last string, err error) {
		items, err := tx.Scan(queuePrefix, after, expireAtOnce)
		for _, it := range items {
			id, due := dueBy(it.Key, now)
			if !due {
				return late, "", err
			}
			m := old{id: id, key: it.Key}
			if err := json.Unmarshal(it.Value, &m.queued); err != nil {
				return nil, "", fmt.Errorf("decoding a mail: %w", err)
			}
			if m.expired(now) {
				late = append(late, m)
			}
		}
		if len(items) == expireAtOnce {
			last = items[expireAtOnce-1].Key
		}
		return late, last, err
	}
	for after, more := "", true; more; {
		var late []old
		var last string
		// Looked at first without writing: mostly there is nothing to do.
		err := s.store.View(ctx, func(tx kv.Tx) (err error) { late, last, err = due(tx, after); return err })
		if err == nil && len(late) > 0 {
			err = s.store.Update(ctx, func(tx kv.Tx) (err error) {
				if late, last, err = due(tx, after); err != nil {
					return err
				}
				for _, m := range late {
					if err := errors.Join(tx.Delete(m.key), putFailure(tx, m.id, m.About, m.failure(now, reasonExpired, m.Code))); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
		for _, m := range late {
			s.noteExpired(m.id, m.Tries)
			s.gaveUp(ctx, m.About)
		}
		after, more = last, last != ""
	}
	return nil
}

// note keeps a mail or lets it go, as the outcome says.
func (s *SMTP) note(ctx context.Context, m taken, o outcome) error {
	now := s.now()
	wait := backoff(firstRetry, slowestRetry, m.Tries)
	next := m.queued
	next.Tries, next.Code = next.Tries+1, o.code
	err := s.store.Update(ctx, func(tx kv.Tx) error {
		if _, err := tx.Get(m.key); errors.Is(err, kv.ErrNotFound) {
			return nil // the lease ran out, and somebody else has it
		} else if err != nil {
			return err
		}
		if err := tx.Delete(m.key); err != nil {
			return err
		}
		switch {
		case o.delivered:
			return nil
		case o.refused:
			return putFailure(tx, m.id, next.About, next.failure(now, ReasonRefused, o.code))
		}
		return putQueued(tx, m.id, next, now.Add(wait))
	})
	if err != nil {
		return err
	}
	switch {
	case o.delivered:
		s.delivered.Add(1)
		s.log.Info("a mail was delivered", "mail", m.id, "waited", now.Sub(m.PutAt).Round(time.Millisecond))
	case o.refused:
		s.refused.Add(1)
		s.gaveUp(ctx, m.About)
		s.log.Error("a mail was refused by the server and given up", "mail", m.id, "code", o.code)
	default:
		s.putOff.Add(1)
		s.log.Warn("a mail could not be handed over yet", "mail", m.id, "code", o.code, "tries", m.Tries+1, "retry_in", wait.Round(time.Second))
	}
	return nil
}

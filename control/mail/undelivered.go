package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"porchlight/control/kv"
)

// Bounds of the list of mails that were given up.
const (
	failuresSize = 500                // mails
	failuresLife = 7 * 24 * time.Hour // of each
)

var failures = newest[Failure]{prefix: "mail-failed/", size: failuresSize, life: failuresLife}

// Why a mail was given up.
const (
	ReasonRefused = "refused" // by the server, for good: 5xx
	reasonExpired = "expired" // it could not be handed over while it was of use
)

// Failure is a mail that was given up: who did not get what, and why. The text,
// which may let somebody in, is not kept.
type Failure struct {
	To       string    `json:"to"`
	Subject  string    `json:"subject"`
	At       time.Time `json:"at"` // when it was written
	FailedAt time.Time `json:"failedAt"`
	Reason   string    `json:"reason"`
	Code     int       `json:"code,omitempty"` // the server's last, where it gave one
	Tries    int       `json:"tries"`
}

// Waiting is a mail that is still to be delivered.
type Waiting struct {
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	At      time.Time `json:"at"`
	Next    time.Time `json:"next"` // when it is due; the server may be away then
	Tries   int       `json:"tries"`
}

// toldSize is how many mails that were given up the owner of a computer is told of.
const toldSize = 20

// failedAbout lists the failed mails about one computer.
func failedAbout(computer string) newest[string] {
	return newest[string]{prefix: "mail-failed-about/" + computer + "/", size: toldSize, life: failuresLife}
}

// UndeliveredRows is the prefix of all that Undelivered reads.
func UndeliveredRows(computer string) string { return failedAbout(computer).prefix }

// Undelivered are the addresses that mails about a computer did not reach in the last
// seven days, newest first, each once.
func Undelivered(tx kv.Tx, computer string) ([]string, error) {
	list, err := failedAbout(computer).list(tx, toldSize)
	var out []string
	for _, to := range list {
		if !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out, err
}

// ForgetUndelivered is for an address that is written to anew about a computer.
func ForgetUndelivered(tx kv.Tx, computer, to string) error {
	items, err := tx.Scan(failedAbout(computer).prefix, "", toldSize)
	if err != nil {
		return err
	}
	for _, it := range items {
		var was string
		if json.Unmarshal(it.Value, &was) != nil || was == to {
			if err := tx.Delete(it.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// putFailure notes that a mail was given up.
func putFailure(tx kv.Tx, id, about string, f Failure) error {
	if about != "" {
		if err := failedAbout(about).put(tx, id, f.FailedAt, f.To); err != nil {
			return err
		}
	}
	return failures.put(tx, id, f.FailedAt, f)
}

func (q queued) failure(now time.Time, reason string, code int) Failure {
	return Failure{
		To: q.To, Subject: q.Subject, At: q.PutAt, FailedAt: now.UTC(), Reason: reason, Code: code, Tries: q.Tries,
	}
}

// Failures are the mails that an SMTP queue on store gave up in the last seven
// days, newest first, at most failuresSize.
func Failures(ctx context.Context, store kv.Store) ([]Failure, error) {
	var out []Failure
	err := store.View(ctx, func(tx kv.Tx) (err error) {
		out, err = failures.list(tx, failuresSize)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the failed mails: %w", err)
	}
	return out, nil
}

// waitingSize bounds what Queued returns, in mails.
const waitingSize = 1000

// Queued are the mails that an SMTP queue on store has still to deliver, the one
// due first at the head, at most waitingSize.
func Queued(ctx context.Context, store kv.Store) ([]Waiting, error) {
	out := []Waiting{}
	err := store.View(ctx, func(tx kv.Tx) error {
		out = out[:0]
		items, err := tx.Scan(queuePrefix, "", waitingSize)
		for _, it := range items {
			var q queued
			if err := json.Unmarshal(it.Value, &q); err != nil {
				return fmt.Errorf("decoding a mail: %w", err)
			}
			out = append(out, Waiting{To: q.To, Subject: q.Subject, At: q.PutAt, Next: dueTime(it.Key).UTC(), Tries: q.Tries})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the mails to be delivered: %w", err)
	}
	return out, nil
}

// Stats counts what became of mails since the process began.
type Stats struct {
	Delivered   uint64
	Refused     uint64 // by the server for good, and given up
	Expired     uint64 // given up for their age
	PutOff      uint64 // tries that are repeated
	Unreachable uint64 // connections that did not come about
}

// Stats may be called at any time.
func (s *SMTP) Stats() Stats {
	return Stats{
		Delivered: s.delivered.Load(), Refused: s.refused.Load(), Expired: s.expired.Load(),
		PutOff: s.putOff.Load(), Unreachable: s.away.Load(),
	}
}

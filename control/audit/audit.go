// Package audit keeps what operators did and what happened to the security of accounts: a
// chain of rows for each node, each with the hash of the one before, so that Verify finds a
// row that was changed, removed, swapped or cut off.
//
// Events are taken in memory and written together, within a second: nothing is lost when a
// program stops, and a crash loses a second at most. Who can write to the store can write a
// chain anew, so the end of each is signed and told outside of it, every five minutes (heads.go).
// Rows name accounts by their ids, and hold no secret and no address.
package audit

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"porchlight/control/kv"
)

const (
	// writeEvery is how long an event is in memory only.
	writeEvery = time.Second
	// headEvery is how often the end of the chain is told outside of the store.
	headEvery = 5 * time.Minute
	// pruneEvery is how often old rows go.
	pruneEvery = time.Hour
	// maxPending bounds the events that wait for a store that is away. What comes then is
	// counted, and the count is a row.
	maxPending = 65_536
	// batch bounds the rows of one transaction.
	batch = 256
	// finishIn is how long the last rows may take when Run ends.
	finishIn = 5 * time.Second
	// maxWhat is how much of an event's text is kept, in bytes.
	maxWhat = 2048

	keyRows        = "audit/"
	keyEnds        = "audit-end/"
	keyCheckpoints = "audit-checkpoint/"
)

// Event is something that happened.
type Event struct {
	Kind string // as "sign-in"
	By   string // id of the account that did it, or a name such as "command-line"; "" for On itself
	On   string // id of the account, computer or client that it is about
	What string // more of it: no secret, no address of a person
}

// Row is an event in its chain.
type Row struct {
	Node string    `json:"node"`
	Seq  uint64    `json:"seq"` // 1 for the first
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	By   string    `json:"by,omitempty"`
	On   string    `json:"on,omitempty"`
	What string    `json:"what,omitempty"`
	Prev string    `json:"prev"` // Hash of the row before, "" for the first
	Hash string    `json:"hash"` // SHA-256 of this row as JSON without it, in hex
}

// sum is what Hash has to be.
func (r Row) sum() string {
	r.Hash = ""
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // it is made of strings, a number and a time
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Config of a Log. Store is required.
type Config struct {
	Store kv.Store
	Node  string // whose chain it is; "" for "alone"
	// Key signs heads and checkpoints; without one there are none, and no row goes.
	Key ed25519.PrivateKey
	// Head, if set, is told the signed end of the chain every five minutes and at the end.
	Head func(context.Context, Head) error
	// Keep is how long rows stay, zero for ever.
	Keep time.Duration
	Now  func() time.Time
	Log  *slog.Logger
}

// Log writes one chain. It is safe for concurrent use; a nil one keeps nothing.
type Log struct {
	cfg     Config
	writing sync.Mutex    // one batch at a time, so that they stay in order
	came    chan struct{} // of one: events came where none were pending

	checking sync.Mutex // held while Verify goes through the rows

	mu      sync.Mutex // protects what follows
	pending []Row      // without Seq, Prev and Hash
	lost    int
	state   State
}

// New starts nothing; call Run, or Flush.
func New(cfg Config) *Log {
	if cfg.Node == "" {
		cfg.Node = "alone"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Log{cfg: cfg, came: make(chan struct{}, 1)}
}

// Add takes events, and waits for nothing.
func (l *Log) Add(events ...Event) {
	if l == nil || len(events) == 0 {
		return
	}
	now := l.cfg.Now().UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		select {
		case l.came <- struct{}{}:
		default:
		}
	}
	for _, e := range events {
		if len(l.pending) >= maxPending {
			l.lost++
			continue
		}
		l.pending = append(l.pending, Row{Node: l.cfg.Node, At: now, Kind: e.Kind, By: e.By, On: e.On, What: e.What[:min(len(e.What), maxWhat)]})
	}
}

// Run writes what is taken until ctx is done, and then what is left. That it began and ended
// are rows, and the head of each is told at once: what a node wrote while it ran is proven
// from the first row on and to the last.
func (l *Log) Run(ctx context.Context) error {
	write, head, prune := time.NewTimer(writeEvery), time.NewTicker(headEvery), time.NewTicker(pruneEvery)
	defer func() { write.Stop(); head.Stop(); prune.Stop() }()
	l.Add(Event{Kind: "started"})
	for err := l.finish(ctx); ; {
		if err != nil && ctx.Err() == nil {
			l.cfg.Log.Warn("the audit log could not be written; it is tried again", "err", err)
			write.Reset(writeEvery)
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishIn)
			defer cancel()
			l.Add(Event{Kind: "stopped"})
			return l.finish(last)
		case <-l.came: // none else wakes an idle computer
			write.Reset(writeEvery)
			err = nil
		case <-write.C:
			err = l.Flush(ctx)
		case <-head.C:
			err = l.tellHeads(ctx)
		case <-prune.C:
			err = l.prune(ctx)
		}
	}
}

func (l *Log) finish(ctx context.Context) error {
	return errors.Join(l.Flush(ctx), l.tellHeads(ctx))
}

// Flush writes what is taken.
func (l *Log) Flush(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	for {
		l.mu.Lock()
		some, lost := l.pending[:min(len(l.pending), batch)], l.lost
		l.mu.Unlock()
		taken := len(some) // of pending, to which more comes meanwhile
		if lost > 0 && len(some) < batch {
			some = append(some[:len(some):len(some)], Row{
				Node: l.cfg.Node, At: l.cfg.Now().UTC(), Kind: "lost", What: strconv.Itoa(lost) + " events came while the store was away for too long",
			})
		} else {
			lost = 0
		}
		if len(some) == 0 {
			return nil
		}
		if err := l.write(ctx, some); err != nil {
			return fmt.Errorf("writing the audit log: %w", err)
		}
		l.mu.Lock()
		l.pending, l.lost = l.pending[taken:], l.lost-lost
		if len(l.pending) == 0 {
			l.pending = nil
		}
		l.mu.Unlock()
	}
}

// write appends rows to the chain in one transaction, with the end that it has then.
func (l *Log) write(ctx context.Context, some []Row) error {
	return l.cfg.Store.Update(ctx, func(tx kv.Tx) error {
		end, _, err := kv.GetJSON[Head](tx, keyEnds+l.cfg.Node)
		if err != nil {
			return err
		}
		for _, row := range some {
			row.Seq, row.Prev = end.Seq+1, end.Hash
			row.Hash = row.sum()
			if err := kv.PutJSON(tx, rowKey(row.Node, row.Seq), row, 0); err != nil {
				return err
			}
			end = Head{Node: row.Node, Seq: row.Seq, Hash: row.Hash, At: row.At}
		}
		return kv.PutJSON(tx, keyEnds+l.cfg.Node, end, 0)
	})
}

func rowKey(node string, seq uint64) string { return fmt.Sprintf("%s%s/%016x", keyRows, node, seq) }

// prune deletes rows that are older than Keep. A signed checkpoint says where the chain begins then.
func (l *Log) prune(ctx context.Context) error {
	if l.cfg.Keep == 0 || l.cfg.Key == nil {
		return nil
	}
	for before := l.cfg.Now().Add(-l.cfg.Keep); ; {
		n := 0
		err := l.cfg.Store.Update(ctx, func(tx kv.Tx) error {
			n = 0
			items, err := tx.Scan(keyRows+l.cfg.Node+"/", "", batch)
			if err != nil {
				return err
			}
			var last Row
			for _, it := range items {
				row, err := kv.ParseJSON[Row](it.Value)
				if err != nil || !row.At.Before(before) {
					break // what cannot be read stays, for Verify to find
				}
				if err := tx.Delete(it.Key); err != nil {
					return err
				}
				last, n = row, n+1
			}
			if n == 0 {
				return nil
			}
			return kv.PutJSON(tx, keyCheckpoints+l.cfg.Node, Head{Node: last.Node, Seq: last.Seq, Hash: last.Hash, At: l.cfg.Now().UTC()}.signed(l.cfg.Key), 0)
		})
		if err != nil || n < batch {
			return err
		}
	}
}

// Ends are the ends of all chains, by node.
func Ends(tx kv.Tx) (ends []Head, err error) {
	err = kv.EachJSON(tx, keyEnds, func(_ string, end Head) error {
		ends = append(ends, end)
		return nil
	})
	return ends, err
}

// Before are the rows of a node from a number down, at most so many, the oldest first.
func Before(tx kv.Tx, node string, last uint64, limit int) (rows []Row, err error) {
	first := last - min(last, uint64(limit))
	items, err := tx.Scan(keyRows+node+"/", rowKey(node, first), int(last-first)+1)
	for _, it := range items {
		row, err := kv.ParseJSON[Row](it.Value)
		if err != nil {
			return nil, err
		}
		if row.Seq <= last {
			rows = append(rows, row)
		}
	}
	return rows, err
}

// List calls fn for the rows of all chains, chain by chain, the oldest of each first.
func List(ctx context.Context, store kv.Store, fn func(Row) error) error {
	return each(ctx, store, keyRows, func(_ string, value []byte) error {
		row, err := kv.ParseJSON[Row](value)
		if err != nil {
			return err
		}
		return fn(row)
	})
}

// each goes through the rows below a prefix, some in each transaction.
func each(ctx context.Context, store kv.Store, prefix string, fn func(key string, value []byte) error) error {
	return eachWith(ctx, store, prefix, func(kv.Tx) error { return nil }, func() {}, fn)
}

// eachWith is each that calls with in each transaction, and then before its rows are gone through.
func eachWith(ctx context.Context, store kv.Store, prefix string, with func(kv.Tx) error, then func(), fn func(key string, value []byte) error) error {
	for after := ""; ; {
		var items []kv.Item
		err := store.View(ctx, func(tx kv.Tx) (err error) {
			if items, err = tx.Scan(prefix, after, batch); err == nil {
				err = with(tx)
			}
			return err
		})
		if err != nil {
			return err
		}
		then()
		for _, it := range items {
			if err := fn(it.Key, it.Value); err != nil {
				return err
			}
		}
		if len(items) < batch {
			return nil
		}
		after = items[len(items)-1].Key
	}
}

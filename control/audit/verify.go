package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"porchlight/control/kv"
)

// Chain is one node's rows, as Verify found them.
type Chain struct {
	Node  string `json:"node"`
	Rows  int    `json:"rows"`
	First uint64 `json:"first"` // number of the first that is still there
	Last  uint64 `json:"last"`
	// Proven is the last row that a head was told of, and ProvenAt when: of what came after it
	// nobody outside knows. Zero without a head.
	Proven   uint64    `json:"proven,omitzero"`
	ProvenAt time.Time `json:"proven_at,omitzero"`
}

// Report is what Verify found. The log is whole where there are no Problems.
type Report struct {
	Chains   []Chain  `json:"chains"`
	Heads    int      `json:"heads"` // that were compared
	Problems []string `json:"problems"`
}

// State is what a Log knows of its chains since it began.
type State struct {
	// Report is what Verify found last, 20 problems of it, and Verified when; zero for not yet.
	Report   Report
	Verified time.Time
	// Told is when the signed ends were told outside of the store last, and Untold why they were
	// not since then. Nowhere says that there is no such place.
	Told    time.Time
	Untold  string
	Nowhere bool
}

// State is that of now.
func (l *Log) State() State {
	if l == nil {
		return State{Nowhere: true}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.state
	out.Nowhere = l.cfg.Head == nil || l.cfg.Key == nil
	return out
}

// noteTold notes whether the signed ends were told.
func (l *Log) noteTold(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.state.Untold = err.Error()
		return
	}
	l.state.Told, l.state.Untold = l.cfg.Now().UTC(), ""
}

// maxProblems bounds those that State has.
const maxProblems = 20

// ErrVerifying says that the rows are gone through already.
var ErrVerifying = errors.New("the audit log is being verified already")

// Verify is Verify of all chains in the log's store, with what is taken written, and its State
// has what was found. It refuses with ErrVerifying: it reads every row.
func (l *Log) Verify(ctx context.Context, heads []Head) (Report, error) {
	if !l.checking.TryLock() {
		return Report{}, ErrVerifying
	}
	defer l.checking.Unlock()
	if err := l.Flush(ctx); err != nil {
		return Report{}, err
	}
	report, err := Verify(ctx, l.cfg.Store, heads)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.state.Report, l.state.Verified = report, l.cfg.Now().UTC()
		l.state.Report.Problems = report.Problems[:min(len(report.Problems), maxProblems)]
	}
	return report, err
}

// verifying is one chain on the way.
type verifying struct {
	Chain
	prev string            // Hash of the row before
	at   map[uint64]string // what heads, and the end as stored, say of rows, by their number
}

// Verify looks whether each row is as it was written and in its place: a row that was
// changed, removed, swapped or added is found. With heads that were told outside of the store,
// so is a tail that was cut off, and a chain that was written anew; their keys are then the only
// ones that checkpoints are believed of.
func Verify(ctx context.Context, store kv.Store, heads []Head) (Report, error) {
	out := Report{Chains: []Chain{}, Problems: []string{}, Heads: len(heads)}
	problem := func(format string, args ...any) { out.Problems = append(out.Problems, fmt.Sprintf(format, args...)) }
	chains := map[string]*verifying{}
	chain := func(node string) *verifying {
		if chains[node] == nil {
			chains[node] = &verifying{Chain: Chain{Node: node}, at: map[uint64]string{}}
		}
		return chains[node]
	}
	for _, h := range heads {
		if !h.good() {
			problem("%s: the signature of the head of row %d is not good", h.Node, h.Seq)
			continue
		}
		c := chain(h.Node)
		if was, known := c.at[h.Seq]; known && was != h.Hash {
			problem("%s: two heads of row %d differ", h.Node, h.Seq)
		}
		c.at[h.Seq] = h.Hash
		if h.Seq > c.Proven || h.Seq == c.Proven && h.At.After(c.ProvenAt) {
			c.Proven, c.ProvenAt = h.Seq, h.At
		}
	}
	// Rows are written meanwhile: those up to here have to be there, and none behind the end of afterwards.
	err := each(ctx, store, keyEnds, func(key string, value []byte) error {
		end, err := kv.ParseJSON[Head](value)
		c := chain(key[len(keyEnds):])
		if _, told := c.at[end.Seq]; err == nil && !told {
			c.at[end.Seq] = end.Hash
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	var begins []kv.Item // the checkpoints, of the moment that some rows are of: old rows go meanwhile
	checkpoints := func(tx kv.Tx) (err error) {
		begins, err = tx.Scan(keyCheckpoints, "", kv.MaxKeys)
		return err
	}
	begin := func() {
		for _, it := range begins {
			h, err := kv.ParseJSON[Head](it.Value)
			trusted := len(heads) == 0 || slices.ContainsFunc(heads, func(o Head) bool { return bytes.Equal(o.Key, h.Key) })
			if node := it.Key[len(keyCheckpoints):]; err != nil || h.Node != node || !h.good() || !trusted {
				problem("%s: the checkpoint is not good", node)
				continue
			}
			c := chain(h.Node)
			if told, known := c.at[h.Seq]; known && told != h.Hash {
				problem("%s: the checkpoint at row %d is not what its head was told of", h.Node, h.Seq)
			}
			if h.Seq > c.Last {
				c.Last, c.prev = h.Seq, h.Hash
			}
		}
	}
	err = eachWith(ctx, store, keyRows, checkpoints, begin, func(key string, value []byte) error {
		node := key[len(keyRows):max(len(keyRows), strings.LastIndexByte(key, '/'))]
		c := chain(node)
		row, err := kv.ParseJSON[Row](value)
		switch {
		case err != nil:
			problem("%s: a row cannot be read: %s", node, key)
			return nil
		case key != rowKey(row.Node, row.Seq):
			problem("%s: row %d of %s stands in another's place", node, row.Seq, row.Node)
		case row.Hash != row.sum():
			problem("%s: row %d was changed", node, row.Seq)
		case row.Seq != c.Last+1:
			problem("%s: row %d follows row %d: what was between is missing", node, row.Seq, c.Last)
		case row.Prev != c.prev:
			problem("%s: row %d does not follow the one before: one of them was changed", node, row.Seq)
		}
		if told, known := c.at[row.Seq]; known && told != row.Hash {
			problem("%s: row %d is not the one that its head was told of: the chain was written anew", node, row.Seq)
		}
		if c.Rows++; c.Rows == 1 {
			c.First = row.Seq
		}
		c.Last, c.prev = row.Seq, row.Hash
		return nil
	})
	if err != nil {
		return out, err
	}
	err = each(ctx, store, keyEnds, func(key string, value []byte) error {
		end, err := kv.ParseJSON[Head](value)
		c := chain(key[len(keyEnds):])
		if err != nil || end.Seq < c.Last || end.Seq == c.Last && end.Hash != c.prev {
			problem("%s: it ends at row %d and said to end at row %d", c.Node, c.Last, end.Seq)
		}
		c.prev = ""
		return nil
	})
	if err != nil {
		return out, err
	}
	for _, c := range chains {
		if c.prev != "" {
			problem("%s: the row that says where it ends is missing", c.Node)
		}
		for seq := range c.at {
			if seq > c.Last {
				problem("%s: the rows after %d were cut off: a head was told of row %d", c.Node, c.Last, seq)
			}
		}
		out.Chains = append(out.Chains, c.Chain)
	}
	slices.SortFunc(out.Chains, func(a, b Chain) int { return strings.Compare(a.Node, b.Node) })
	slices.Sort(out.Problems)
	out.Problems = slices.Compact(out.Problems)
	return out, nil
}

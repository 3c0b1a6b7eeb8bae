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

// chain is one node's on the way.
type chain struct {
	Chain
	prev   string            // Hash of the row before
	hashes map[uint64]string // what heads, and the end as stored, say of rows, by their number
}

// verifier is Verify on its way.
type verifier struct {
	Report
	heads  []Head
	chains map[string]*chain
}

// Verify looks whether each row is as it was written and in its place: a row that was
// changed, removed, swapped or added is found. With heads that were told outside of the store,
// so is a tail that was cut off, and a chain that was written anew; their keys are then the only
// ones that checkpoints are believed of.
func Verify(ctx context.Context, store kv.Store, heads []Head) (Report, error) {
	v := &verifier{Report{Chains: []Chain{}, Problems: []string{}, Heads: len(heads)}, heads, map[string]*chain{}}
	for _, h := range heads {
		v.head(h)
	}
	// Rows are written meanwhile: those up to here have to be there, and none behind the end of afterwards.
	if err := each(ctx, store, keyEnds, v.mustReach); err != nil {
		return v.Report, err
	}
	var begins []kv.Item // the checkpoints, of the moment that some rows are of: old rows go meanwhile
	checkpoints := func(tx kv.Tx) (err error) {
		begins, err = tx.Scan(keyCheckpoints, "", kv.MaxKeys)
		return err
	}
	begin := func() {
		for _, it := range begins {
			v.begins(it)
		}
	}
	if err := eachWith(ctx, store, keyRows, checkpoints, begin, v.row); err != nil {
		return v.Report, err
	}
	if err := each(ctx, store, keyEnds, v.ends); err != nil {
		return v.Report, err
	}
	return v.report(), nil
}

func (v *verifier) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

func (v *verifier) chain(node string) *chain {
	if v.chains[node] == nil {
		v.chains[node] = &chain{Chain: Chain{Node: node}, hashes: map[uint64]string{}}
	}
	return v.chains[node]
}

// told takes a head that was told outside of the store.
func (v *verifier) head(h Head) {
	if !h.good() {
		v.problem("%s: the signature of the head of row %d is not good", h.Node, h.Seq)
		return
	}
	c := v.chain(h.Node)
	if was, known := c.hashes[h.Seq]; known && was != h.Hash {
		v.problem("%s: two heads of row %d differ", h.Node, h.Seq)
	}
	c.hashes[h.Seq] = h.Hash
	if h.Seq > c.Proven || h.Seq == c.Proven && h.At.After(c.ProvenAt) {
		c.Proven, c.ProvenAt = h.Seq, h.At
	}
}

// mustReach notes where a chain ended before its rows are read.
func (v *verifier) mustReach(key string, value []byte) error {
	end, err := kv.ParseJSON[Head](value)
	c := v.chain(key[len(keyEnds):])
	if _, known := c.hashes[end.Seq]; err == nil && !known {
		c.hashes[end.Seq] = end.Hash
	}
	return nil
}

// begins has a chain begin at a checkpoint, which took the place of old rows.
func (v *verifier) begins(it kv.Item) {
	h, err := kv.ParseJSON[Head](it.Value)
	trusted := len(v.heads) == 0 || slices.ContainsFunc(v.heads, func(o Head) bool { return bytes.Equal(o.Key, h.Key) })
	if node := it.Key[len(keyCheckpoints):]; err != nil || h.Node != node || !h.good() || !trusted {
		v.problem("%s: the checkpoint is not good", node)
		return
	}
	c := v.chain(h.Node)
	if hash, known := c.hashes[h.Seq]; known && hash != h.Hash {
		v.problem("%s: the checkpoint at row %d is not what its head was told of", h.Node, h.Seq)
	}
	if h.Seq > c.Last {
		c.Last, c.prev = h.Seq, h.Hash
	}
}

// row has the next row of a chain follow the one before.
func (v *verifier) row(key string, value []byte) error {
	node := key[len(keyRows):max(len(keyRows), strings.LastIndexByte(key, '/'))]
	c := v.chain(node)
	row, err := kv.ParseJSON[Row](value)
	switch {
	case err != nil:
		v.problem("%s: a row cannot be read: %s", node, key)
		return nil
	case key != rowKey(row.Node, row.Seq):
		v.problem("%s: row %d of %s stands in another's place", node, row.Seq, row.Node)
	case row.Hash != row.sum():
		v.problem("%s: row %d was changed", node, row.Seq)
	case row.Seq != c.Last+1:
		v.problem("%s: row %d follows row %d: what was between is missing", node, row.Seq, c.Last)
	case row.Prev != c.prev:
		v.problem("%s: row %d does not follow the one before: one of them was changed", node, row.Seq)
	}
	if hash, known := c.hashes[row.Seq]; known && hash != row.Hash {
		v.problem("%s: row %d is not the one that its head was told of: the chain was written anew", node, row.Seq)
	}
	if c.Rows++; c.Rows == 1 {
		c.First = row.Seq
	}
	c.Last, c.prev = row.Seq, row.Hash
	return nil
}

// ends compares where a chain ends with where it says to end.
func (v *verifier) ends(key string, value []byte) error {
	end, err := kv.ParseJSON[Head](value)
	c := v.chain(key[len(keyEnds):])
	if err != nil || end.Seq < c.Last || end.Seq == c.Last && end.Hash != c.prev {
		v.problem("%s: it ends at row %d and said to end at row %d", c.Node, c.Last, end.Seq)
	}
	c.prev = ""
	return nil
}

// report is what was found, in order, with what is missing at the ends.
func (v *verifier) report() Report {
	for _, c := range v.chains {
		if c.prev != "" {
			v.problem("%s: the row that says where it ends is missing", c.Node)
		}
		for seq := range c.hashes {
			if seq > c.Last {
				v.problem("%s: the rows after %d were cut off: a head was told of row %d", c.Node, c.Last, seq)
			}
		}
		v.Chains = append(v.Chains, c.Chain)
	}
	slices.SortFunc(v.Chains, func(a, b Chain) int { return strings.Compare(a.Node, b.Node) })
	slices.Sort(v.Problems)
	v.Problems = slices.Compact(v.Problems)
	return v.Report
}

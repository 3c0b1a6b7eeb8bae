//go:build linux

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"porchlight/control/audit"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// auditTried is how often attackAudit tries something.
const auditTried = 71

// ledger is an audit log as its server left it, whose store anybody may write to.
type ledger struct {
	s       *stage
	dir     string // data directory of a server that ended
	heads   string // file with what it told
	earlier []kv.Item
	rows    []audit.Row
	end     audit.Head
}

const (
	auditRows       = "audit/alone/"
	auditEnd        = "audit-end/alone"
	auditCheckpoint = "audit-checkpoint/alone"
)

// attackAudit has who can write to the store of a server change, remove, swap and add rows of
// its audit log, cut its end off, and put what was there before in its place. `audit verify`
// has to find each by the heads that were told outside, and may call nothing proven that none
// of them speaks for.
func attackAudit(ctx context.Context, s *stage, t *tally) error {
	l, err := s.keptLog(ctx, "plane")
	if err != nil {
		return err
	}
	if said, whole, err := l.verify(ctx, l.heads); err != nil || !whole || said.Chains[0].Proven != l.end.Seq {
		return fmt.Errorf("the log of a server that was stopped is not proven to its end, row %d: %+v, %w", l.end.Seq, said, err)
	}
	for _, attack := range []func(context.Context, *tally) error{l.rowByRow, l.asAWhole, l.otherHeads, l.afterACrash} {
		if err := attack(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// keptLog runs a server twice and stops it each time.
func (s *stage) keptLog(ctx context.Context, name string) (*ledger, error) {
	l := &ledger{s: s, dir: filepath.Join(s.dir, name), heads: filepath.Join(s.dir, name+"-heads")}
	for run := range 2 {
		p, err := s.startPlane(ctx, l.dir, "--audit-head", l.heads)
		if err != nil {
			return nil, err
		}
		for i := range 3 {
			if err := p.Run(nil, "account", "add", fmt.Sprintf("somebody%d-%d@example.net", run, i)); err != nil {
				return nil, err
			}
		}
		if code := p.Stop(); code != 0 {
			return nil, fmt.Errorf("the server ends with %d", code)
		}
		if run == 0 {
			if l.earlier, err = l.all(ctx); err != nil {
				return nil, err
			}
		}
	}
	items, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		switch {
		case strings.HasPrefix(it.Key, auditRows):
			row, err := kv.ParseJSON[audit.Row](it.Value)
			if err != nil {
				return nil, err
			}
			l.rows = append(l.rows, row)
		case it.Key == auditEnd:
			if l.end, err = kv.ParseJSON[audit.Head](it.Value); err != nil {
				return nil, err
			}
		}
	}
	if len(l.rows) < 8 || l.end.Seq != uint64(len(l.rows)) {
		return nil, fmt.Errorf("there are %d rows, and the end is %+v", len(l.rows), l.end)
	}
	return l, withoutSockets(l.dir)
}

func (l *ledger) store() string { return filepath.Join(l.dir, "control.db") }

// changed opens the store, changes it and closes it.
func (l *ledger) changed(ctx context.Context, change func(kv.Tx) error) (err error) {
	store, err := kv.Open(ctx, l.store(), kv.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Update(ctx, change)
}

// all are the rows of the log as they are stored, with its end and where it begins.
func (l *ledger) all(ctx context.Context) (items []kv.Item, err error) {
	err = l.changed(ctx, func(tx kv.Tx) error {
		items, err = tx.Scan("audit", "", 1000)
		return err
	})
	return items, err
}

// verify asks as the operator does, and says whether the log is called whole.
func (l *ledger) verify(ctx context.Context, heads string) (said audit.Report, whole bool, err error) {
	out, err := exec.CommandContext(ctx, filepath.Join(l.s.bin, "porchlight-control"), "audit", "verify", "--data", l.dir, "--head", heads, "--json").Output()
	whole = err == nil
	if exit, ended := errors.AsType[*exec.ExitError](err); ended && exit.ExitCode() == 1 && len(out) > 0 {
		err = nil
	}
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err == nil && (len(said.Chains) == 0 || whole != (len(said.Problems) == 0)) {
		err = fmt.Errorf("it says %s", out)
	}
	return said, whole, err
}

// tries makes one change, which has to be found, and takes it back.
func (l *ledger) tries(ctx context.Context, t *tally, what string, change func(kv.Tx) error) error {
	whole, err := os.ReadFile(l.store())
	if err != nil {
		return err
	}
	if err := l.changed(ctx, change); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	said, unseen, err := l.verify(ctx, l.heads)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if t.try(1); unseen {
		t.got("%s: %+v", what, said)
	}
	return os.WriteFile(l.store(), whole, 0o600)
}

func auditRow(seq uint64) string { return fmt.Sprintf("%s%016x", auditRows, seq) }

// hashed is a row with the hash that it would have.
func hashed(r audit.Row) audit.Row {
	r.Hash = ""
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err) // of words, a number and a time
	}
	sum := sha256.Sum256(raw)
	r.Hash = hex.EncodeToString(sum[:])
	return r
}

// put writes rows anew from the first on, one behind the other, and the end that they have.
func put(tx kv.Tx, rows []audit.Row) error {
	end := audit.Head{Node: "alone"}
	for i, row := range rows {
		row.Seq, row.Prev = uint64(i+1), end.Hash
		row = hashed(row)
		if err := kv.PutJSON(tx, auditRow(row.Seq), row, 0); err != nil {
			return err
		}
		end.Seq, end.Hash, end.At = row.Seq, row.Hash, row.At
	}
	return kv.PutJSON(tx, auditEnd, end, 0)
}

// rowByRow does to some rows what can be done to one.
func (l *ledger) rowByRow(ctx context.Context, t *tally) error {
	last := len(l.rows) - 1
	for _, i := range []int{0, last / 2, last - 1, last} {
		row := l.rows[i]
		for what, change := range map[string]func(*audit.Row){
			"its kind": func(r *audit.Row) { r.Kind = "nothing" }, "who": func(r *audit.Row) { r.By = "somebody" }, "when": func(r *audit.Row) { r.At = r.At.Add(-time.Hour) },
			"all of it, with its hash": func(r *audit.Row) { r.Kind = "nothing"; *r = hashed(*r) },
		} {
			other := row
			change(&other)
			if err := l.tries(ctx, t, fmt.Sprintf("row %d is changed: %s", row.Seq, what), func(tx kv.Tx) error { return kv.PutJSON(tx, auditRow(row.Seq), other, 0) }); err != nil {
				return err
			}
		}
		for what, rows := range map[string][]audit.Row{
			"removed, and all behind it written anew": slices.Delete(slices.Clone(l.rows), i, i+1),
			"changed, and all behind it written anew": slices.Replace(slices.Clone(l.rows), i, i+1, audit.Row{Node: row.Node, At: row.At, Kind: "nothing"}),
			"there twice, and all behind it anew":     slices.Insert(slices.Clone(l.rows), min(i, last-1), row), // behind the last head's anything may come
			"the last but the first":                  append([]audit.Row{row}, slices.Delete(slices.Clone(l.rows), i, i+1)...)[:max(i, 1)],
		} {
			err := l.tries(ctx, t, fmt.Sprintf("row %d is %s", row.Seq, what), func(tx kv.Tx) error {
				for seq := range l.rows {
					if err := tx.Delete(auditRow(uint64(seq + 1))); err != nil {
						return err
					}
				}
				return put(tx, rows)
			})
			if err != nil {
				return err
			}
		}
		if err := l.tries(ctx, t, fmt.Sprintf("row %d is removed", row.Seq), func(tx kv.Tx) error { return tx.Delete(auditRow(row.Seq)) }); err != nil {
			return err
		}
		if i == last {
			continue
		}
		next := l.rows[i+1]
		for what, rows := range map[string][2]audit.Row{"swapped": {next, row}, "swapped with their numbers": {numbered(next, row.Seq), numbered(row, next.Seq)}} {
			err := l.tries(ctx, t, fmt.Sprintf("rows %d and %d are %s", row.Seq, next.Seq, what), func(tx kv.Tx) error {
				return errors.Join(kv.PutJSON(tx, auditRow(row.Seq), rows[0], 0), kv.PutJSON(tx, auditRow(next.Seq), rows[1], 0))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func numbered(r audit.Row, seq uint64) audit.Row {
	r.Seq = seq
	return hashed(r)
}

// cut removes all rows behind one, as if there had been none.
func (l *ledger) cut(tx kv.Tx, behind int) error {
	for seq := behind; seq < len(l.rows); seq++ {
		if err := tx.Delete(auditRow(uint64(seq + 1))); err != nil {
			return err
		}
	}
	if behind == 0 {
		return tx.Delete(auditEnd)
	}
	last := l.rows[behind-1]
	return kv.PutJSON(tx, auditEnd, audit.Head{Node: "alone", Seq: last.Seq, Hash: last.Hash, At: last.At}, 0)
}

// asAWhole cuts the log off, has it begin later, adds to it, and brings back an earlier one.
func (l *ledger) asAWhole(ctx context.Context, t *tally) error {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	last := l.rows[len(l.rows)-1]
	checkpoint := audit.Head{Node: "alone", Seq: 4, Hash: l.rows[3].Hash, At: last.At}
	text, err := json.Marshal(checkpoint)
	if err != nil {
		return err
	}
	checkpoint.Key, checkpoint.Signature = key.Public().(ed25519.PublicKey), ed25519.Sign(key, append([]byte("porchlight audit head 1\n"), text...))
	ways := map[string]func(kv.Tx) error{
		"its end is gone":    func(tx kv.Tx) error { return tx.Delete(auditEnd) },
		"a row that is none": func(tx kv.Tx) error { return tx.Put(auditRow(last.Seq), []byte("nothing"), 0) },
		"a row is added behind its end": func(tx kv.Tx) error {
			return kv.PutJSON(tx, auditRow(last.Seq+1), hashed(audit.Row{Node: "alone", Seq: last.Seq + 1, At: last.At, Kind: "nothing", Prev: last.Hash}), 0)
		},
		"it is another node's": func(tx kv.Tx) error {
			moved := last
			moved.Node = "other"
			return errors.Join(tx.Delete(auditRow(last.Seq)), kv.PutJSON(tx, "audit/other/"+fmt.Sprintf("%016x", last.Seq), hashed(moved), 0))
		},
		"it begins at a checkpoint of another's": func(tx kv.Tx) error {
			for seq := range uint64(4) {
				if err := tx.Delete(auditRow(seq + 1)); err != nil {
					return err
				}
			}
			return kv.PutJSON(tx, auditCheckpoint, checkpoint, 0)
		},
		"the database of before is back": func(tx kv.Tx) error {
			if err := l.cut(tx, 0); err != nil {
				return err
			}
			for _, it := range l.earlier {
				if err := tx.Put(it.Key, it.Value, 0); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for behind := range l.rows {
		ways[fmt.Sprintf("it is cut off behind row %d", behind)] = func(tx kv.Tx) error { return l.cut(tx, behind) }
	}
	for what, change := range ways {
		if err := l.tries(ctx, t, what, change); err != nil {
			return err
		}
	}
	return nil
}

// otherHeads has the log be proven by what another server told, and by heads that were changed.
func (l *ledger) otherHeads(ctx context.Context, t *tally) error {
	stranger, err := l.s.keptLog(ctx, "stranger")
	if err != nil {
		return err
	}
	own, err := os.ReadFile(l.heads)
	if err != nil {
		return err
	}
	told, err := os.ReadFile(stranger.heads)
	if err != nil {
		return err
	}
	for what, text := range map[string]string{
		"heads of another server": string(told), "its own and another's": string(own) + string(told),
		"a head with another number": strings.ReplaceAll(string(own), `"seq":`, `"seq":1`), "a head of another time": strings.ReplaceAll(string(own), `"at":"2`, `"at":"3`),
		"a head without a signature": strings.ReplaceAll(string(own), `"signature":"`, `"signature":"AAAA`),
	} {
		file := filepath.Join(l.s.dir, "other-heads")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		said, whole, err := l.verify(ctx, file)
		if err != nil {
			return err
		}
		if t.try(1); whole {
			t.got("%s prove it: %+v", what, said)
		}
	}
	return nil
}

// afterACrash cuts off what no head could be told of, because the server was killed: that is
// not seen, so that it must not be called proven.
func (l *ledger) afterACrash(ctx context.Context, t *tally) error {
	p, err := l.s.startPlane(ctx, l.dir, "--audit-head", l.heads)
	if err != nil {
		return err
	}
	head, err := l.nextHead()
	if err != nil {
		return err
	}
	if err := p.Run(nil, "account", "add", "late@example.net"); err != nil {
		return err
	}
	if err := p.Run(nil, "audit", "verify"); err != nil { // so that all is written
		return err
	}
	p.Kill()
	for _, cut := range []bool{false, true} {
		if cut {
			items, err := l.all(ctx)
			if err != nil {
				return err
			}
			err = l.changed(ctx, func(tx kv.Tx) error {
				for _, it := range items {
					if strings.HasPrefix(it.Key, auditRows) && it.Key > auditRow(head.Seq) {
						if err := tx.Delete(it.Key); err != nil {
							return err
						}
					}
				}
				return kv.PutJSON(tx, auditEnd, audit.Head{Node: "alone", Seq: head.Seq, Hash: head.Hash, At: head.At}, 0)
			})
			if err != nil {
				return err
			}
		}
		said, whole, err := l.verify(ctx, l.heads)
		if err != nil || !whole {
			return fmt.Errorf("the log of a server that was killed: %+v, %w", said, err)
		}
		if chain := said.Chains[0]; chain.Proven != head.Seq || !chain.ProvenAt.Equal(head.At) || !cut && chain.Last <= head.Seq {
			t.got("more is called proven than a head was told of: %+v", said)
		}
		t.try(1)
	}
	return nil
}

// nextHead waits for the head that a server tells when it has started.
func (l *ledger) nextHead() (head audit.Head, err error) {
	for end := time.Now().Add(programs.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		told, err := os.ReadFile(l.heads)
		if err != nil {
			return head, err
		}
		lines := strings.Split(strings.TrimSpace(string(told)), "\n")
		// The last line may not be there whole yet.
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &head); err == nil && head.Seq > l.end.Seq {
			return head, nil
		}
	}
	return head, fmt.Errorf("a server that started has told no head: %+v", head)
}

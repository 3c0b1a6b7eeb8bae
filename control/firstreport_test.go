package control

import (
	"maps"
	"slices"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// Weakness: computers that reported for the first time together each made a row, and in
// PostgreSQL that is a conflict with whoever looked for one on the same page. Checked: what
// a computer reports first changes rows that are there since it was connected, and until
// then they say what no row does.
func TestFirstReportMakesNoRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	keys := func() []string {
		t.Helper()
		rows := map[string]bool{}
		err := b.store.View(t.Context(), func(tx kv.Tx) error {
			return each(tx, "", func(key string, _ []byte) error { rows[key] = true; return nil })
		})
		programs.Must(t, err)
		return slices.Sorted(maps.Keys(rows))
	}
	before := keys()
	blank := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
	reported := controlapi.Apps{Apps: []controlapi.App{{ID: "notes", Name: "notes", Label: "Notes", Live: true}}, Knocks: controlapi.KnocksFromKnown}
	programs.Must(t, b.Agents.PutApps(t.Context(), e.Computer.ID, reported))
	if after := keys(); !slices.Equal(before, after) {
		t.Errorf("rows before\n%v\nand after\n%v", before, after)
	}
	without := newBench(t)
	older := without.owner()
	err := without.store.Update(t.Context(), func(tx kv.Tx) error {
		for _, key := range []string{keyComputerApps(older.Computer.ID), keyComputerKnocks(older.Computer.ID)} {
			if err := tx.Delete(key); err != nil {
				return err
			}
		}
		return nil
	})
	programs.Must(t, err)
	if s := ok[controlapi.Snapshot](t)(without.Agents.Snapshot(t.Context(), older.Computer.ID)); s.Reported != blank.Reported || s.Knocking != blank.Knocking {
		t.Errorf("without the rows %q and %q are reported, with them %q and %q", s.Reported, s.Knocking, blank.Reported, blank.Knocking)
	}
	if err := without.Agents.PutApps(t.Context(), older.Computer.ID, reported); err != nil {
		t.Errorf("a computer of an earlier version: %v", err)
	}
}

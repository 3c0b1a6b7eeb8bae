package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/serve"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// check is what upgrade --check prints for programs, and its exit code.
func check(t *testing.T, args ...string) (u serve.Upgrade, code int) {
	t.Helper()
	code, out, said := invoke(t, nil, append([]string{"upgrade", "--check", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &u); err != nil {
		t.Fatalf("exit %d, %q: %v\n%s", code, out, err, said)
	}
	return u, code
}

// write puts rows into a database, nil to delete one, without bringing it up to date.
func write(t *testing.T, database string, rows map[string]any) {
	t.Helper()
	store, err := kv.Open(t.Context(), database, kv.Options{})
	programs.Must(t, err)
	defer store.Close()
	err = store.Update(t.Context(), func(tx kv.Tx) error {
		for key, row := range rows {
			if row == nil {
				if err := tx.Delete(key); err != nil {
					return err
				}
				continue
			}
			value, err := json.Marshal(row)
			if err != nil {
				return err
			}
			if err := tx.Put(key, value, time.Hour); err != nil {
				return err
			}
		}
		return nil
	})
	programs.Must(t, err)
}

// What upgrade --check says follows from the store, and leaves that as it is.
func TestUpgradeCheckOfADatabase(t *testing.T) {
	t.Parallel()
	if code, _, said := invoke(t, nil, "upgrade", "--data", t.TempDir()); code != commandline.ExitUsage || !strings.Contains(said, "say --check") {
		t.Errorf("without --check: exit %d, %s", code, said)
	}
	db := pgtest.Database(t)
	for range 2 {
		if code, _, said := invoke(t, nil, "upgrade", "--check", "--postgres", db); code != commandline.ExitNotRunning || !strings.Contains(said, "there is no store yet") {
			t.Fatalf("of nothing: exit %d, %s", code, said)
		}
	}
	node := func(name, version string, draining bool) map[string]any {
		row := map[string]any{"node": name, "run": "r", "peer": "127.0.0.1:1", "relay": map[string]any{"address": name + ":443"}, "draining": draining}
		if version != "" {
			row["version"], row["news"], row["protocol"] = version, "127.0.0.1:2", 1
		}
		return row
	}
	const one, two, lease = "relay-node/one", "relay-node/two", "schema-lease"
	for _, c := range []struct {
		what string
		rows map[string]any
		safe bool
		says string // in the sentences or in what is next
	}{
		{"nobody lives", map[string]any{"schema": nil}, true, "Format 1: the rows are given the number of their format; nodes of the version before go on"},
		{"one of before lives", map[string]any{one: node("one", "", false)}, false, "stop all of them"},
		{"one lives", map[string]any{one: node("one", "v1", false)}, true, "start this program as another node first"},
		{"two live", map[string]any{two: node("two", "v2", false)}, true, "Replace one node, one for one"},
		{"one of them is of before", map[string]any{one: node("one", "", false)}, false, "Node one (one:443) lives and runs an earlier version. That is before 0.1.0"},
		{"one is going away", map[string]any{one: node("one", "v1", true)}, false, "Wait until one has ended"},
		{"somebody migrates", map[string]any{lease: map[string]any{"holder": "h", "by": "elsewhere, process 7"}}, false, "elsewhere, process 7"},
		{"the rows are of later", map[string]any{lease: nil, "schema": 9}, false, "A newer version of Porchlight wrote these rows: they have format 9"},
	} {
		write(t, db, c.rows)
		before := dumped(t, db)
		u, code := check(t, "--postgres", db)
		if u.Safe != c.safe || (code == 0) != c.safe || !slices.ContainsFunc(append(u.Says, u.Next), func(s string) bool { return strings.Contains(s, c.says) }) {
			t.Errorf("%s: exit %d, %+v", c.what, code, u)
		}
		if after := dumped(t, db); !maps.Equal(before, after) {
			t.Errorf("%s: the rows were %v and are %v", c.what, before, after)
		}
	}
	code, out, said := invoke(t, nil, "upgrade", "--check", "--postgres", db)
	if code != commandline.ExitRefused || !strings.Contains(out, "This program would not start on them.") || !strings.Contains(said, "not to be started there now") {
		t.Errorf("for people: exit %d\n%s%s", code, out, said)
	}
}

// dumped are the rows of a database of whatever version.
func dumped(t *testing.T, database string) map[string]string {
	t.Helper()
	rows := map[string]string{}
	err := kv.Look(t.Context(), database, kv.Options{}, func(tx kv.Tx) error {
		items, err := tx.Scan("", "", 1000)
		for _, it := range items {
			rows[it.Key] = string(it.Value)
		}
		return err
	})
	programs.Must(t, err)
	return rows
}

// A store in a file is looked at also while its node runs, and nodes say what they run.
func TestUpgradeCheckOfNodes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir)
	u, code := check(t, "--data", dir)
	if code != 0 || !u.Safe || !u.Store.Served || u.Store.Format != u.Format || !strings.Contains(u.Next, "stop the node") {
		t.Errorf("while it runs: exit %d, %+v", code, u)
	}
	s.stop()
	if u, code = check(t, "--data", dir); code != 0 || u.Store.Served || u.Store.Format != u.Format {
		t.Errorf("afterwards: exit %d, %+v", code, u)
	}
	db := pgtest.Database(t)
	for _, name := range []string{"one", "two"} {
		start(t, t.TempDir(), "--postgres", db, "--node", name, "--peer-address", "127.0.0.1:0")
	}
	version := strings.TrimSpace(ok(t, "version"))
	programs.Eventually(t, "both nodes are named", func() bool {
		u, code = check(t, "--postgres", db)
		return len(u.Nodes) == 2
	})
	if code != 0 || !u.Store.Shared || u.Nodes[0].Node != "one" || u.Nodes[1].Before || u.Nodes[1].Version != version {
		t.Errorf("exit %d, %s", code, fmt.Sprintf("%+v", u))
	}

	store, err := kv.Open(t.Context(), db, kv.Options{})
	programs.Must(t, err)
	defer store.Close()
	err = store.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("relay-node/old", []byte(`{"node":"old","run":"r"}`), time.Hour) })
	programs.Must(t, err)
	if u, code = check(t, "--postgres", db); code != 1 || len(u.Nodes) != 3 || !u.Nodes[0].Before || !strings.Contains(strings.Join(u.Says, " "), "does not run beside") || !strings.Contains(u.Next, "stop all of them") {
		t.Errorf("beside one of before 0.1.0: exit %d, %+v", code, u)
	}
}

package upgrade_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"porchlight/agent/store"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// stores of a data directory, with the key that counts its migrations.
var stores = map[string]string{"agent.db": "meta/schema", "control/control.db": "items/schema"}

// content is every bucket and record of a database.
func content(t *testing.T, path string) map[string]string {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	programs.Must(t, err)
	defer db.Close()
	all := map[string]string{}
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			all[string(name)+"/"] = ""
			return b.ForEach(func(k, v []byte) error { all[string(name)+"/"+string(k)] = string(v); return nil })
		})
	})
	programs.Must(t, err)
	return all
}

// openBoth brings both stores up to date.
func openBoth(t *testing.T, dir string) {
	t.Helper()
	agent := programs.Got(store.Open(dir))(t)
	plane, err := kv.Open(t.Context(), filepath.Join(dir, "control", "control.db"), kv.Options{})
	if err == nil {
		err = plane.Close()
	}
	programs.Must(t, err, agent.Close())
}

// TestMigrationsOnlyAdd: everything that 15e3b3f wrote is still there, byte for
// byte, so 15e3b3f, which does not look for a count, opens the directory again.
func TestMigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, filepath.Join("testdata", "15e3b3f.tar.gz"), dir)
	dir = filepath.Join(dir, "data")
	before := map[string]map[string]string{}
	for name := range stores {
		before[name] = content(t, filepath.Join(dir, name))
	}
	openBoth(t, dir)
	for name, added := range map[string][]string{
		"agent.db":           {"activity.decisions/", "deliveries/", "formers/", "groups/", "meta/schema", "senders/", "sum/", "sum/rows", "users/", "withdrawn/"},
		"control/control.db": {"items/schema", "sum/", "sum/rows"},
	} {
		after := content(t, filepath.Join(dir, name))
		for key, value := range before[name] {
			if now, ok := after[key]; !ok || now != value {
				t.Errorf("%s: %q changed", name, key)
			}
			delete(after, key)
		}
		if got := slices.Sorted(maps.Keys(after)); !slices.Equal(got, added) {
			t.Errorf("%s: added %q, want %q", name, got, added)
		}
	}
}

// TestKilledWhileItMigrates: the program is killed when a store of 15e3b3f begins
// to change. The store is then as it was, or has been through everything, and it
// opens.
func TestKilledWhileItMigrates(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for name, args := range map[string][]string{
		"agent.db":           {"porchlight", "agent", "--local", "--api", "127.0.0.1:0", "--https", "127.0.0.1:0", "--data"},
		"control/control.db": {"porchlight-control", "account", "list", "--domain", "localhost", "--data"},
	} {
		olds := 0
		for round := range 15 {
			dir := t.TempDir()
			unpack(t, filepath.Join("testdata", "15e3b3f.tar.gz"), dir)
			dir = filepath.Join(dir, "data")
			// Another program may have the port of then.
			programs.Must(t, os.Remove(filepath.Join(dir, "https-port")))
			path := filepath.Join(dir, name)
			before := content(t, path)
			cmd := exec.Command(filepath.Join(bin, args[0]), append(slices.Clone(args[1:]), filepath.Dir(path))...)
			cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR=", "DBUS_SESSION_BUS_ADDRESS=")
			killAtChange(t, cmd, path, time.Duration(round)*300*time.Microsecond)
			after := content(t, path)
			if after[stores[name]] == "" {
				olds++
				if !maps.Equal(before, after) {
					t.Errorf("%s is neither old nor new", name)
				}
			}
			openBoth(t, dir)
			now := content(t, path)
			for key := range before {
				if _, ok := now[key]; !ok {
					t.Errorf("%s: %q is gone", name, key)
				}
			}
		}
		t.Logf("%s: %d of 15 were as before", name, olds)
	}
}

// killAtChange kills cmd when the file at path has been written to first, a moment
// later. The moment decides how far the commit gets.
func killAtChange(t *testing.T, cmd *exec.Cmd, path string, later time.Duration) {
	t.Helper()
	was := programs.Got(os.Stat(path))(t)
	changed := func() bool {
		is, err := os.Stat(path)
		return err != nil || !is.ModTime().Equal(was.ModTime())
	}
	p := programs.Begin(t, cmd)
	for !changed() {
		select {
		case <-p.Done():
			// On a busy machine it has come to its end before it was looked at.
			if !changed() {
				t.Fatalf("%s ended and changed nothing", cmd)
			}
		default:
		}
	}
	time.Sleep(later)
	p.Kill()
}

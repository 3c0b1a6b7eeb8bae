package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/serve"
)

// A backup made while accounts are added holds what was acknowledged before it
// began, and restores a server that its agents trust, on either engine.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	file := filepath.Join(t.TempDir(), "backup")

	client, err := admin.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var acknowledged []string // guarded by mu
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				email := fmt.Sprintf("p%d-%d@example.net", w, i)
				if _, err := client.AddAccount(ctx, admin.AddAccount{Email: email}); err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, email)
				mu.Unlock()
			}
		})
	}
	count := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(acknowledged) }
	eventually(t, "some accounts", func() bool { return len(count()) > 50 })
	before := count()
	ok(t, "backup", file, "--data", dir)
	eventually(t, "further accounts", func() bool { return len(count()) > len(before)+20 })
	cancel()
	wg.Wait()
	pem := ok(t, "ca", "--data", dir)
	_, key := fetch(t, s.browser(pem), s.authURL+"/auth/pubkey")
	s.stop()

	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v %v", info, err)
	}
	if code, _, err := invoke(t, nil, "backup", file, "--data", dir); code != exitRefused || !strings.Contains(err, "exists already") {
		t.Errorf("a second backup to the same file: exit %d, %s", code, err)
	}
	if code, _, err := invoke(t, nil, "restore", file, "--data", dir); code != exitRefused {
		t.Errorf("a restore over what is there: exit %d, %s", code, err)
	}
	half := filepath.Join(t.TempDir(), "half")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(half, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}

	has := func(emails []string, where ...string) {
		t.Helper()
		there := map[string]bool{}
		for _, a := range okJSON[[]control.Account](t, append([]string{"account", "list"}, where...)...) {
			there[a.Email] = true
		}
		for _, email := range emails {
			if !there[email] {
				t.Errorf("%s was acknowledged before and is not there", email)
			}
		}
	}

	t.Log("into a new directory")
	fresh := filepath.Join(t.TempDir(), "new")
	if code, _, err := invoke(t, nil, "restore", half, "--data", fresh); code != exitRefused || !strings.Contains(err, "damaged") {
		t.Errorf("half a backup: exit %d, %s", code, err)
	}
	ok(t, "restore", file, "--data", fresh)
	has(before, "--data", fresh, "--domain", "porch.test")
	s = start(t, "--data", fresh)
	if got := ok(t, "ca", "--data", fresh); got != pem {
		t.Error("the restored authority is another one")
	}
	if _, got := fetch(t, s.browser(pem), s.authURL+"/auth/pubkey"); got != key {
		t.Error("the restored signing key is another one")
	}
	if code, _, err := invoke(t, nil, "restore", file, "--data", fresh); code != exitRefused || !strings.Contains(err, "stop that Porchlight first") {
		t.Errorf("a restore into a running server: exit %d, %s", code, err)
	}
	s.stop()

	t.Log("into PostgreSQL and out again")
	db := pgtest.Database(t)
	ok(t, "import", file, "--postgres", db)
	has(before, "--postgres", db, "--domain", "porch.test")
	if code, _, err := invoke(t, nil, "import", file, "--postgres", db); code != exitRefused || !strings.Contains(err, "not empty") {
		t.Errorf("a second import: exit %d, %s", code, err)
	}
	out := filepath.Join(t.TempDir(), "export")
	ok(t, "export", out, "--postgres", db, "--domain", "porch.test")
	back := filepath.Join(t.TempDir(), "back")
	ok(t, "import", out, "--data", back)
	has(before, "--data", back, "--domain", "porch.test")
	if a, b := rows(t, fresh), rows(t, back); !slices.Equal(a, b) {
		t.Errorf("%d rows went and %d came back, or they differ", len(a), len(b))
	}
}

// rows of a data directory, but for what a server writes while it runs.
func rows(t *testing.T, dir string) (out []string) {
	t.Helper()
	store, err := serve.OpenStore(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Dump(t.Context(), func(r kv.Record) error {
		out = append(out, fmt.Sprintf("%q=%q %v", r.Key, r.Value, r.Expires))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

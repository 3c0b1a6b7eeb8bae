package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/archive"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/control/serve"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// A backup made while accounts are added holds what was acknowledged before it
// began, and restores a server that its agents trust, on either store.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	file := filepath.Join(t.TempDir(), "backup")

	client := programs.Got(admin.Dial(dir))(t)
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
	programs.Eventually(t, "some accounts", func() bool { return len(count()) > 50 })
	before := count()
	pem := ok(t, "ca", "--data", dir)
	maya := programs.Got(client.AddAccount(ctx, admin.AddAccount{Email: "maya@example.net", Short: "maya"}))(t)
	// agent is what the computer's agent asks with.
	agent := func(s *server) *controlapi.Client {
		return &controlapi.Client{BaseURL: s.AuthURL, Credential: maya.Credential, HTTP: s.browser()}
	}
	programs.Must(t, agent(s).PutApps(ctx, controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}}))
	programs.Got(agent(s).MakePassword(ctx, controlapi.MakePassword{App: "app1", Name: "sync"}))(t)
	told := s.told(maya.Credential)
	if len(told.Passwords) != 1 {
		t.Fatalf("the agent hears %+v", told.Passwords)
	}
	ok(t, "backup", file, "--data", dir)
	programs.Eventually(t, "further accounts", func() bool { return len(count()) > len(before)+20 })
	cancel()
	wg.Wait()
	_, key := fetch(t, s.browser(), s.AuthURL+"/auth/pubkey")
	s.stop()

	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v %v", info, err)
	}
	if code, _, err := invoke(t, nil, "backup", file, "--data", dir); code != commandline.ExitRefused || !strings.Contains(err, "exists already") {
		t.Errorf("a second backup to the same file: exit %d, %s", code, err)
	}
	nowhere := filepath.Join(dir, "none", "backup")
	if code, _, err := invoke(t, nil, "backup", nowhere, "--data", dir); code != commandline.ExitRefused || !strings.Contains(err, "cannot write the backup "+nowhere+": no such file or directory") {
		t.Errorf("a backup where it cannot be: exit %d, %s", code, err)
	}
	if code, _, err := invoke(t, nil, "restore", file, "--data", dir); code != commandline.ExitRefused {
		t.Errorf("a restore over what is there: exit %d, %s", code, err)
	}
	half := filepath.Join(t.TempDir(), "half")
	whole := programs.Got(os.ReadFile(file))(t)
	programs.Must(t, os.WriteFile(half, whole[:len(whole)/2], 0o600))

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
	if code, _, err := invoke(t, nil, "restore", half, "--data", fresh); code != commandline.ExitRefused || !strings.Contains(err, "damaged") {
		t.Errorf("half a backup: exit %d, %s", code, err)
	}
	ok(t, "restore", file, "--data", fresh)
	has(before, "--data", fresh, "--domain", "porch.test")
	went := rows(t, fresh)
	s = start(t, fresh)
	if got := ok(t, "ca", "--data", fresh); got != pem {
		t.Error("the restored authority is another one")
	}
	if _, got := fetch(t, s.browser(), s.AuthURL+"/auth/pubkey"); got != key {
		t.Error("the restored signing key is another one")
	}
	if got := s.told(maya.Credential); !slices.Equal(got.Passwords, told.Passwords) {
		t.Errorf("of app passwords the agent hears %+v; before it was %+v", got.Passwords, told.Passwords)
	}
	if code, _, err := invoke(t, nil, "restore", file, "--data", fresh); code != commandline.ExitRefused || !strings.Contains(err, "stop that Porchlight first") {
		t.Errorf("a restore into a running server: exit %d, %s", code, err)
	}
	s.stop()

	t.Log("into PostgreSQL and out again")
	beside := []string{"--postgres", pgtest.Database(t), "--domain", "porch.test", "--data", filepath.Join(t.TempDir(), "on a new machine")}
	ok(t, append([]string{"restore", file}, beside...)...)
	if got := ok(t, append([]string{"ca"}, beside...)...); got != pem {
		t.Errorf("the authority beside a database: %s", got)
	}
	db := pgtest.Database(t)
	ok(t, "import", file, "--postgres", db)
	has(before, "--postgres", db, "--domain", "porch.test")
	if code, _, err := invoke(t, nil, "import", file, "--postgres", db); code != commandline.ExitRefused || !strings.Contains(err, "not empty") {
		t.Errorf("a second import: exit %d, %s", code, err)
	}
	out := filepath.Join(t.TempDir(), "export")
	ok(t, "export", out, "--postgres", db, "--domain", "porch.test")
	back := filepath.Join(t.TempDir(), "back")
	ok(t, "import", out, "--data", back)
	has(before, "--data", back, "--domain", "porch.test")
	if came := rows(t, back); !slices.Equal(went, came) {
		t.Errorf("%d rows went and %d came back, or they differ", len(went), len(came))
	}
}

// A server that sends half a backup as if it were all of it: the command reads what
// it wrote, says so, and leaves nothing under the name.
func TestBackupIsReadBack(t *testing.T) {
	t.Parallel()
	var whole bytes.Buffer
	w, err := archive.NewWriter(&whole, time.Now())
	if err == nil {
		err = w.Row(kv.Record{Key: "a", Value: []byte("b")})
	}
	if err == nil {
		_, err = w.Close()
	}
	programs.Must(t, err)
	dir := t.TempDir()
	l := programs.Got(net.Listen("unix", filepath.Join(dir, "s")))(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = rw.Write(whole.Bytes()[:whole.Len()/2])
	}))
	_ = server.Listener.Close() // the one it came with
	server.Listener = l
	server.Start()
	defer server.Close()
	word := fmt.Sprintf(`{"socket": %q}`, l.Addr())
	programs.Must(t, os.WriteFile(filepath.Join(dir, "admin.json"), []byte(word), 0o600))
	target := t.TempDir()
	code, _, said := invoke(t, nil, "backup", filepath.Join(target, "backup"), "--data", dir)
	if code != commandline.ExitRefused || !strings.Contains(said, "damaged") {
		t.Errorf("exit %d, %s", code, said)
	}
	if left, err := os.ReadDir(target); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// rows of a data directory, but for what a server writes when it ends, and the line of
// changes, which an import ends.
func rows(t *testing.T, dir string) (out []string) {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), filepath.Join(dir, serve.StoreFile), kv.Options{}))(t)
	defer store.Close()
	if err := store.Dump(t.Context(), func(r kv.Record) error {
		if r.Key != "line" && !strings.HasPrefix(r.Key, "computer-seen/") {
			out = append(out, fmt.Sprintf("%q=%q %v", r.Key, r.Value, r.Expires))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

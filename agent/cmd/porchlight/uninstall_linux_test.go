package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"porchlight/test/programs"
)

// TestUninstall: it says what goes and asks; after a yes data, secrets, start at login and service are
// gone, and what is not of this data directory is not.
func TestUninstall(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	in := func(path string) string { return filepath.Join(home, path) }
	data := in(".local/share/porchlight")
	programs.Must(t, os.MkdirAll(in("bin"), 0o700))
	programs.Must(t, os.WriteFile(in("bin/systemctl"), []byte("#!/bin/sh\necho \"$@\" >>"+in("systemctl")+"\n"), 0o700))
	run := func(stdin string, args ...string) (string, error) {
		c := exec.Command(programs.Got(os.Executable())(t), args...)
		c.Env = []string{asProgram + "=1", "HOME=" + home, "PATH=" + in("bin"), "LC_ALL=C.UTF-8", "XDG_RUNTIME_DIR=" + home}
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if said, err := run("yes\n", "uninstall", "--purge"); err == nil || !strings.Contains(said, "nothing to remove") {
		t.Errorf("without data: %v: %s", err, said)
	}

	// An agent leaves its data, and its secret in a file.
	s := inProcess(t, data, "agent", "--local", "--api", "127.0.0.1:0", "--https", "127.0.0.1:0")
	s.Env = append(s.Env, "HOME="+home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "PATH="+in("bin"))
	s.onPipes()
	s.says("Stop with Ctrl-C")
	if said, err := run("yes\n", "uninstall", "--purge"); err == nil || !strings.Contains(said, "Porchlight runs on "+data) {
		t.Errorf("while it runs: %v: %s", err, said)
	}
	if asked, _ := os.ReadFile(in("systemctl")); strings.Contains(string(asked), "disable") {
		t.Errorf("while it runs systemd was asked %q", asked)
	}
	s.signal(syscall.SIGINT)
	s.ends(0)
	secrets := programs.Got(filepath.Glob(in(".config/porchlight/owner/*.secret")))(t)
	if len(secrets) != 1 {
		t.Fatalf("secrets: %v", secrets)
	}
	other := filepath.Join(filepath.Dir(secrets[0]), "other.secret")
	programs.Must(t, os.WriteFile(other, nil, 0o600))
	entry := in(".config/autostart/porchlight.desktop")
	programs.Must(t, os.MkdirAll(filepath.Dir(entry), 0o700))
	programs.Must(t, os.WriteFile(entry, nil, 0o600))

	for _, no := range []string{"", "no\n", "y\n", "yes please\n"} {
		if said, err := run(no, "uninstall", "--purge"); err == nil || !strings.Contains(said, "nothing was removed") || !strings.Contains(said, data) {
			t.Errorf("%q: %v: %s", no, err, said)
		}
	}
	if said, err := run("yes\n", "uninstall"); err == nil || !strings.Contains(said, "say --purge") {
		t.Errorf("without --purge: %v: %s", err, said)
	}
	if _, err := os.Stat(filepath.Join(data, "agent.db")); err != nil {
		t.Fatal("something was removed")
	}
	// What else is in it stays, and so does everything while a credential is out of reach.
	programs.Must(t, os.WriteFile(filepath.Join(data, "photos"), nil, 0o600))
	if said, err := run("yes\n", "uninstall", "--purge"); err == nil || !strings.Contains(said, "something else in it, too, and is not removed: photos") {
		t.Errorf("with photos in it: %v: %s", err, said)
	}
	programs.Must(t, os.Remove(filepath.Join(data, "photos")))
	connection := filepath.Join(data, "connection.json")
	programs.Must(t, os.WriteFile(connection, []byte(`{"current": {"id": "00", "authUrl": "https://control.example", "computerId": "c", "host": "maya.example", "store": "keychain"}}`), 0o600))
	if said, err := run("yes\n", "uninstall", "--purge"); err == nil || !strings.Contains(said, "not all is removed: there is no keychain here") ||
		!strings.Contains(said, "remove it there, at https://control.example/account") {
		t.Errorf("without the keychain that has its credential: %v: %s", err, said)
	}
	if _, err := os.Stat(filepath.Join(data, "agent.db")); err != nil {
		t.Fatal("what says where the credential is was removed")
	}
	programs.Must(t, os.Remove(connection))
	if said, err := run("yes\n", "uninstall", "--purge"); err != nil || !strings.Contains(said, data+" and what belongs to it are gone") {
		t.Errorf("%v: %s", err, said)
	}
	for _, gone := range []string{data, secrets[0], entry} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is there", gone)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("the secret of another data directory is gone")
	}
	if asked, _ := os.ReadFile(in("systemctl")); !strings.Contains(string(asked), "--user disable --now porchlight.service") {
		t.Errorf("systemd was asked %q", asked)
	}
}

// Weakness: a command that removes a directory removes whatever it is pointed at. Checked: a home,
// what it lies in, a link, a server's data and any other directory stay.
func TestUninstallRemovesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := func(name string, files ...string) string {
		path := filepath.Join(dir, name)
		programs.Must(t, os.MkdirAll(path, 0o700))
		for _, file := range files {
			programs.Must(t, os.WriteFile(filepath.Join(path, file), nil, 0o600))
		}
		return path
	}
	link := filepath.Join(dir, "link")
	programs.Must(t, os.Symlink(made("real", "agent.db"), link))
	home := programs.Got(os.UserHomeDir())(t)
	for _, data := range []string{home, filepath.Dir(home), "/"} { // only asked
		if purgeable(data) == nil {
			t.Errorf("%s would be removed", data)
		}
	}
	for _, data := range []string{made("empty"), made("others", "photos"), made("server", "agent.db", "control.db"), made("mixed", "agent.db", "photos"), link} {
		var o output
		if code := run(context.Background(), []string{"uninstall", "--purge", "--yes", "--data", data}, o.terminal()); code == 0 {
			t.Errorf("%s was removed", data)
		}
		if _, err := os.Lstat(data); err != nil {
			t.Errorf("%s is gone", data)
		}
	}
}

// TestUpgradeCheck: it says whether this version can be started.
func TestUpgradeCheck(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.wants(0, "until you start it again", "upgrade", "--check")
	s.wants(2, "say --check", "upgrade")
	fresh := shell{t, t.TempDir()}
	fresh.wants(0, "from format 0", "upgrade", "--check")
}

package autostart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

func TestAutostart(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	const program = "/opt/Porch light/porchlight-desktop"
	check := func(want bool) {
		t.Helper()
		if on, err := Enabled(program); err != nil || on != want {
			t.Errorf("Enabled = %v, %v; want %v", on, err, want)
		}
	}
	check(false)
	if err := Disable(); err != nil {
		t.Errorf("nothing to disable: %v", err)
	}
	for range 2 {
		programs.Must(t, Enable(program))
		check(true)
	}
	// An entry for a program that was moved starts nothing, and says so.
	if on, err := Enabled("/elsewhere/porchlight-desktop"); err != nil || on {
		t.Errorf("another program's entry counts: %v, %v", on, err)
	}
	path := programs.Got(entryPath())(t)
	// What a session's own settings write when the owner switches it off there.
	for _, line := range []string{"Hidden=true", "X-GNOME-Autostart-enabled=false"} {
		programs.Must(t, Enable(program))
		raw := programs.Got(os.ReadFile(path))(t)
		programs.Must(t, os.WriteFile(path, append(raw, line+"\n"...), 0o600))
		check(false)
	}
	programs.Must(t, Disable())
	check(false)
}

// TestEntryStarts has GLib, which desktops read entries with, start the program
// of one: the path is quoted as it understands.
func TestEntryStarts(t *testing.T) {
	launch, err := exec.LookPath("gio")
	if err != nil {
		t.Fatal("gio is not here; install libglib2.0-bin")
	}
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	out := filepath.Join(dir, "said")
	program := filepath.Join(dir, "an \"odd\" $HOME `path`\\x.sh")
	programs.Must(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s' \"$0 $*\" >'"+out+".new' && mv '"+out+".new' '"+out+"'\n"), 0o700))
	programs.Must(t, Enable(program))
	path := programs.Got(entryPath())(t)
	if msg, err := exec.Command(launch, "launch", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	said := await(t, out)
	if want := program + " " + argument; said != want {
		t.Errorf("started as %q, want %q", said, want)
	}
	if strings.Contains(said, os.Getenv("HOME")+" ") {
		t.Error("a shell read the path")
	}
}

// await reads a file once it is there.
func await(t *testing.T, path string) string {
	t.Helper()
	watcher := exec.CommandContext(t.Context(), "sh", "-c", `until [ -e "$1" ]; do sleep 0.02; done`, "sh", path)
	if err := watcher.Run(); err != nil {
		t.Fatalf("%s never came: %v", path, err)
	}
	raw := programs.Got(os.ReadFile(path))(t)
	return string(raw)
}

package openlink

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

func TestConfinedBrowsers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	plain := filepath.Join(root, "usr/share/applications")
	exports := filepath.Join(root, "flatpak/exports/share/applications")
	entries := map[string]string{
		filepath.Join(plain, "chromium.desktop"):         "[Desktop Entry]\nExec=/usr/bin/chromium %U\n",
		filepath.Join(plain, "firefox_firefox.desktop"):  "[Desktop Entry]\nExec=env BAMF=1 /snap/bin/firefox %u\n",
		filepath.Join(plain, "wrapped.desktop"):          "[Desktop Entry]\nName=x\nExec=/usr/bin/flatpak run org.x %u\n",
		filepath.Join(exports, "org.mozilla.fx.desktop"): "[Desktop Entry]\nExec=firefox\n",
		filepath.Join(exports, "chromium.desktop"):       "[Desktop Entry]\nExec=flatpak run chromium\n",
	}
	for path, text := range entries {
		programs.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		programs.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	dirs := []string{plain, exports}
	for id, want := range map[string]bool{
		"chromium.desktop":        false, // the first directory wins
		"firefox_firefox.desktop": true,
		"wrapped.desktop":         true,
		"org.mozilla.fx.desktop":  true,
		"missing.desktop":         false,
		"":                        false,
		"../../etc/passwd":        false,
	} {
		if got := confined(id, dirs); got != want {
			t.Errorf("confined(%q) = %v, want %v", id, got, want)
		}
	}
}

func TestBrowsersAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for id, text := range map[string]string{
		"firefox.desktop":  "[Desktop Entry]\nName[de]=Feuerfuchs\nName=Firefox Web Browser\n",
		"chromium.desktop": "[Desktop Entry]\nExec=x\nName=Chromium Web Browser\n",
		"brave.desktop":    "[Desktop Entry]\nName=Brave\n",
		"odd.desktop":      "[Desktop Entry]\nName=\u202eevil\n",
		"long.desktop":     "[Desktop Entry]\nName=" + strings.Repeat("x", 41) + "\n",
		"none.desktop":     "[Desktop Entry]\n",
	} {
		programs.Must(t, os.WriteFile(filepath.Join(dir, id), []byte(text), 0o644))
	}
	for id, want := range map[string]string{
		"firefox.desktop": "Firefox", "chromium.desktop": "Chromium", "brave.desktop": "Brave",
		"odd.desktop": "", "long.desktop": "", "none.desktop": "", "missing.desktop": "", "": "", "../firefox.desktop": "",
	} {
		if got := nameOf(id, []string{dir}); got != want {
			t.Errorf("%q is called %q, want %q", id, got, want)
		}
	}
}

// The one-time link must not appear in what other processes can see.
func TestLinkStaysOutOfTheCommandLine(t *testing.T) {
	bin, runtime := t.TempDir(), t.TempDir()
	seen := filepath.Join(bin, "seen")
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + seen + "\n"
	programs.Must(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("DISPLAY", ":65000")
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	const secret = "s3cret-token"
	o := programs.Got(Open(t.Context(), "https://notes.maya.localhost:8443/x?token="+secret))(t)
	defer o.Close()
	var args []byte
	programs.Eventually(t, "xdg-open has begun", func() bool { // which is waited for only so long
		args, _ = os.ReadFile(seen)
		return bytes.HasSuffix(args, []byte("\n"))
	})
	if strings.Contains(string(args), secret) || !strings.HasPrefix(string(args), runtime) {
		t.Errorf("xdg-open was given %q", args)
	}
	raw, err := os.ReadFile(strings.TrimSpace(string(args)))
	if err != nil || !strings.Contains(string(raw), secret) {
		t.Errorf("page: %q, %v", raw, err)
	}
}

func TestNoBrowserIsASentence(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("DISPLAY", ":65000")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	_, err := Open(t.Context(), "https://a.example/")
	if err == nil || !strings.Contains(err.Error(), "xdg-utils") {
		t.Errorf("err = %v", err)
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	_, err = Open(t.Context(), "https://a.example/")
	if err == nil || !strings.Contains(err.Error(), "no display") {
		t.Errorf("err = %v", err)
	}
}

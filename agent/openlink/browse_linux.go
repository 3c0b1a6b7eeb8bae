package openlink

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"porchlight/internal/words"
)

// starting bounds how long the desktop may take to find the browser. xdg-open
// returns at once where a browser runs and stays as long as the browser where
// it had to start one.
const starting = 2 * time.Second

// browse opens a path or address in the owner's browser.
func browse(ctx context.Context, what string) error {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return words.Errorf("There is no display here, so no browser can be opened.")
	}
	opener, err := exec.LookPath("xdg-open")
	if err != nil {
		return words.Errorf("No browser could be opened: the package xdg-utils is missing.")
	}
	// Not bound to ctx: the browser outlives whoever asked for it.
	cmd := exec.Command(opener, what)
	if err := cmd.Start(); err != nil {
		return words.Errorf("No browser could be opened: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(starting)
	defer timer.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return words.Errorf("No browser could be opened: no program on this desktop opens web pages.")
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// Browser is what the owner's default browser is called; empty where that is not known.
func Browser(ctx context.Context) string { return nameOf(defaultBrowser(ctx), applicationDirs()) }

// defaultBrowser is the id of its desktop entry, or empty.
func defaultBrowser(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "xdg-settings", "get", "default-web-browser").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// nameOf is the name in the desktop entry id, without the words around it that
// entries have ("Firefox Web Browser"); empty for none that can be shown.
func nameOf(id string, dirs []string) string {
	_, lines := entry(id, dirs)
	for _, line := range lines {
		name, ok := strings.CutPrefix(line, "Name=")
		if !ok {
			continue
		}
		name = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(name), "Web Browser"))
		if len(name) > 40 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return ""
		}
		return name
	}
	return ""
}

// direct says whether the default browser is packaged so that it cannot read
// the page.
func direct(ctx context.Context) bool { return confined(defaultBrowser(ctx), applicationDirs()) }

// confined says whether the desktop entry id starts a snap or flatpak.
func confined(id string, dirs []string) bool {
	dir, lines := entry(id, dirs)
	if strings.Contains(dir, "/flatpak/exports/") || strings.HasPrefix(dir, "/var/lib/snapd/") {
		return true
	}
	for _, line := range lines {
		command, ok := strings.CutPrefix(line, "Exec=")
		if !ok {
			continue
		}
		for _, word := range strings.Fields(command) {
			if strings.HasPrefix(word, "/snap/") || filepath.Base(word) == "flatpak" || filepath.Base(word) == "snap" {
				return true
			}
		}
	}
	return false
}

// maxEntry bounds what is read of a desktop entry, in bytes.
const maxEntry = 64 << 10

// entry is the desktop entry of an id, which is the first one found, and the directory it
// is in; both are empty where there is none.
func entry(id string, dirs []string) (dir string, lines []string) {
	if id == "" || id != filepath.Base(id) {
		return "", nil
	}
	for _, dir := range dirs {
		f, err := os.Open(filepath.Join(dir, id))
		if err != nil {
			continue
		}
		defer f.Close()
		text, _ := io.ReadAll(io.LimitReader(f, maxEntry)) // of one that cannot be read, what there is
		return dir, strings.Split(string(text), "\n")
	}
	return "", nil
}

func applicationDirs() []string {
	home := os.Getenv("XDG_DATA_HOME")
	if home == "" {
		if h, err := os.UserHomeDir(); err == nil {
			home = filepath.Join(h, ".local", "share")
		}
	}
	system := os.Getenv("XDG_DATA_DIRS")
	if system == "" {
		system = "/usr/local/share:/usr/share"
	}
	dirs := append([]string{home}, filepath.SplitList(system)...)
	for i, d := range dirs {
		dirs[i] = filepath.Join(d, "applications")
	}
	return dirs
}

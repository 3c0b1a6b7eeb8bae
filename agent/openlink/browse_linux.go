package openlink

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"porchlight/internal/words"
	"strings"
	"time"
	"unicode"
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
	if id == "" || id != filepath.Base(id) {
		return ""
	}
	for _, dir := range dirs {
		f, err := os.Open(filepath.Join(dir, id))
		if err != nil {
			continue
		}
		defer f.Close()
		for lines := bufio.NewScanner(io.LimitReader(f, 64<<10)); lines.Scan(); {
			name, ok := strings.CutPrefix(lines.Text(), "Name=")
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
	return ""
}

// direct says whether the default browser is packaged so that it cannot read
// the page.
func direct(ctx context.Context) bool { return confined(defaultBrowser(ctx), applicationDirs()) }

// confined says whether the desktop entry id starts a snap or flatpak.
func confined(id string, dirs []string) bool {
	if id == "" || id != filepath.Base(id) {
		return false
	}
	for _, dir := range dirs {
		f, err := os.Open(filepath.Join(dir, id))
		if err != nil {
			continue
		}
		defer f.Close()
		// The entry that wins is the first one found.
		if strings.Contains(dir, "/flatpak/exports/") || strings.HasPrefix(dir, "/var/lib/snapd/") {
			return true
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			command, ok := strings.CutPrefix(lines.Text(), "Exec=")
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
	return false
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

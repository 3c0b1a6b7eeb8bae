package instance

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run starts an instance and returns a channel with the token of each show request.
func run(t *testing.T, dir string) (*Instance, <-chan string) {
	t.Helper()
	i := programs.Got(Acquire(dir))(t)
	shown := make(chan string, 8)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); i.Run(ctx, func(token string) { shown <- token }) }()
	t.Cleanup(func() { cancel(); <-ended; i.Close() })
	return i, shown
}

func TestSecondStartShowsTheFirst(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{
		"short path": t.TempDir(),
		"deep path":  filepath.Join(t.TempDir(), strings.Repeat("d", 120)),
		"spaces":     filepath.Join(t.TempDir(), "my data"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, shown := run(t, dir)
			// What is no token, or too long for one, is left out.
			for token, want := range map[string]string{"": "", "gnome-shell/Porchlight/12-0-host_TIME4": "gnome-shell/Porchlight/12-0-host_TIME4", "a\nb": "", strings.Repeat("x", maxToken+1): ""} {
				if _, err := Acquire(dir); !errors.Is(err, ErrTaken) {
					t.Fatalf("second Acquire: %v, want ErrTaken", err)
				}
				programs.Must(t, AskToShow(t.Context(), dir, token))
				if got := <-shown; got != want {
					t.Errorf("with the token %q came %q", token, got)
				}
			}
		})
	}
}

func TestDataDirectoriesDoNotTouch(t *testing.T) {
	t.Parallel()
	run(t, t.TempDir())
	run(t, t.TempDir())
}

func TestLockIsFreeAfterClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := programs.Got(Acquire(dir))(t)
	first.Close()
	second := programs.Got(Acquire(dir))(t)
	second.Close()
}

// A holder that stopped answering must not hold up the second start for ever,
// and the reason is a sentence.
func TestAskToShowGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i, err := Acquire(dir)
	programs.Must(t, err)
	defer i.Close() // nobody runs i.Run
	err = AskToShow(t.Context(), dir, "")
	if err == nil || !strings.HasPrefix(err.Error(), "Porchlight is already running here, but does not answer") {
		t.Fatalf("err = %v", err)
	}
}

// Another local process may connect and send anything, at any length.
func TestNoiseOnTheSocketIsHarmless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, shown := run(t, dir)
	socket := programs.Got(os.ReadFile(filepath.Join(dir, fileName)))(t)
	for _, noise := range []string{"", "quit\n", "show me\n", strings.Repeat("x", 1000) + "\n", "\x00\xff\n"} {
		c := programs.Got(net.Dial("unix", strings.TrimSpace(string(socket))))(t)
		_, _ = c.Write([]byte(noise)) // the other end may hang up before it read all
		_ = c.Close()
	}
	programs.Must(t, AskToShow(t.Context(), dir, ""))
	if n := len(shown); n != 1 {
		t.Fatalf("shown %d times, want once", n)
	}
}

func TestUnwritableDataDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	programs.Must(t, os.WriteFile(file, nil, 0o600))
	_, err := Acquire(filepath.Join(file, "data"))
	if err == nil || !strings.Contains(err.Error(), "cannot create its data directory") {
		t.Fatalf("err = %v", err)
	}
}

// Weakness: with neither a runtime directory nor a home, the socket of a deep data
// directory was in a directory of everybody's whose name can be worked out.
// Checked: each start has a new one of its own, and a second start finds it.
func TestNoDirectoryOfOnesOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("each user has such a directory on Windows")
	}
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("TMPDIR", t.TempDir())
	data := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	first := programs.Got(socketPath(data))(t)
	if second, err := socketPath(data); err != nil || second == first {
		t.Errorf("it can be foreseen: %s, %v", second, err)
	}
	if info, err := os.Stat(filepath.Dir(first)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory is %v, %v", info, err)
	}
}

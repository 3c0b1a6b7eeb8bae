package openlink

import (
	"context"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/test/programs"
)

// linkLife is how long a link is good.
const linkLife = lifetime

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyWebAddressesAreOpened(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"", "notes", "file:///etc/passwd", "javascript:alert(1)", "https:///x", "--help", "https://%zz/"} {
		if _, err := Open(t.Context(), link); err == nil || err.Error() != "This is not an address a browser can open." {
			t.Errorf("Open(%q) = %v", link, err)
		}
	}
}

func TestPageSendsOnAndIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "open")
	const link = `https://notes.maya.localhost:8443/.porchlight/owner?token=a&next=%2F"><script>x</script>`
	u := programs.Got(url.Parse(link))(t)
	name := programs.Got(write(dir, u))(t)
	for path, want := range map[string]os.FileMode{name: 0o600, dir: 0o700 | os.ModeDir} {
		info := programs.Got(os.Stat(path))(t)
		if info.Mode() != want {
			t.Errorf("%s is %v, want %v", path, info.Mode(), want)
		}
	}
	raw := programs.Got(os.ReadFile(name))(t)
	m := regexp.MustCompile(`content="0; url=([^"]*)"`).FindStringSubmatch(string(raw))
	if m == nil {
		t.Fatalf("no refresh in %s", raw)
	}
	if got, err := url.Parse(html.UnescapeString(m[1])); err != nil || got.Query().Get("token") != "a" || got.Host != u.Host {
		t.Errorf("the page sends to %q (%v)", m[1], err)
	}
	if strings.Contains(string(raw), "<script>") {
		t.Errorf("the link reached the page as markup: %s", raw)
	}
}

func TestOldPagesAreSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u, _ := url.Parse("https://a.example/")
	old := programs.Got(write(dir, u))(t)
	past := time.Now().Add(-2 * linkLife)
	programs.Must(t, os.Chtimes(old, past, past))
	other := filepath.Join(dir, "something-else")
	programs.Must(t, os.WriteFile(other, nil, 0o600))
	programs.Must(t, os.Chtimes(other, past, past))
	fresh := programs.Got(write(dir, u))(t)
	for path, want := range map[string]bool{old: false, fresh: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s there: %v, want %v", path, err == nil, want)
		}
	}
}

// A page directory that cannot be one is an error, not a page elsewhere.
func TestPageDirectoryMustBeADirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	programs.Must(t, os.WriteFile(file, nil, 0o600))
	u, _ := url.Parse("https://a.example/")
	if _, err := write(filepath.Join(file, "open"), u); err == nil {
		t.Error("wrote below a file")
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page")
	programs.Must(t, os.WriteFile(path, nil, 0o600))
	o := &Opened{page: path, gone: make(chan struct{})}
	o.timer = time.AfterFunc(linkLife, o.remove)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Wait(ctx)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the page is still there: %v", err)
	}
	o.Close() // a second time is harmless
	(&Opened{}).Wait(t.Context())
	(&Opened{}).Close()
}

// The file that carries the owner's link holds something that signs in.
func TestLifetimeIsAMinute(t *testing.T) {
	t.Parallel()
	if linkLife != time.Minute {
		t.Errorf("%v", linkLife)
	}
}

// Package release tries build/install.sh on releases that are what they say, and on those
// that are not. The programs in them are scripts that answer what the real ones do.
package release

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// world is a home, and the address of a release.
type world struct {
	t              *testing.T
	home, served   string
	server         *httptest.Server
	key, publicKey string // a file; and its public half
}

// tool is build/release.
var tool string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "porchlight-release-")
	if err != nil {
		panic(err)
	}
	tool = filepath.Join(dir, "release")
	if out, err := exec.Command("go", "build", "-o", tool, "porchlight/build/release").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the script is for Linux and macOS, and was tried on Linux")
	}
	t.Parallel()
	w := &world{t: t, home: t.TempDir(), served: t.TempDir()}
	w.server = httptest.NewServer(http.FileServer(http.Dir(w.served)))
	t.Cleanup(w.server.Close)
	w.key, w.publicKey = w.newKey()
	return w
}

func (w *world) newKey() (file, public string) {
	w.t.Helper()
	file = filepath.Join(w.t.TempDir(), "key")
	return file, strings.TrimSpace(string(programs.Got(exec.Command(tool, "key", file).Output())(w.t)))
}

// fits is what a program that takes the data directory answers.
const fits = `[ "$1" != upgrade ] || exit 0`

// release makes the served one a version's, signed by a key if there is one.
func (w *world) release(version, key, answers string) {
	w.t.Helper()
	w.serves(version, key, map[string][]byte{
		"porchlight":         script("porchlight", version, answers),
		"porchlight-control": script("porchlight-control", version, answers),
	})
}

// script is a program that says which version it is.
func script(name, version, answers string) []byte {
	return fmt.Appendf(nil, "#!/bin/sh\n[ \"$1\" != --version ] || { echo %s version %s; exit; }\n%s\n", name, version, answers)
}

// serves makes the served release one of these programs, and packages by the end of their names.
func (w *world) serves(version, key string, all map[string][]byte) {
	w.t.Helper()
	programs.Must(w.t, os.RemoveAll(w.served))
	programs.Must(w.t, os.MkdirAll(w.served, 0o700))
	arch := map[string]string{"amd64": "amd64", "arm64": "arm64", "arm": "armv7"}[runtime.GOARCH]
	var sums strings.Builder
	for name, program := range all {
		file := fmt.Sprintf("%s_%s_linux_%s", name, version, arch)
		if of, ok := strings.CutSuffix(name, ".deb"); ok {
			file = fmt.Sprintf("%s_%s_%s.deb", of, version, arch)
		}
		programs.Must(w.t, os.WriteFile(filepath.Join(w.served, file), program, 0o600))
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(program), file)
	}
	programs.Must(w.t, os.WriteFile(filepath.Join(w.served, "SHA256SUMS"), []byte(sums.String()), 0o600))
	if key != "" {
		if out, err := exec.Command(tool, "seal", key, version, w.served).CombinedOutput(); err != nil {
			w.t.Fatalf("%v: %s", err, out)
		}
	}
}

// change has the served files that match be others.
func (w *world) change(pattern string, edit func(string) string) {
	w.t.Helper()
	files := programs.Got(filepath.Glob(filepath.Join(w.served, pattern)))(w.t)
	if len(files) == 0 {
		w.t.Fatalf("nothing is called %s", pattern)
	}
	for _, file := range files {
		programs.Must(w.t, os.WriteFile(file, []byte(edit(string(programs.Got(os.ReadFile(file))(w.t)))), 0o600))
	}
}

// install runs the script in the shell that Debian's scripts run in.
func (w *world) install(args ...string) (said string, fine bool) {
	w.t.Helper()
	return w.shell("", args...)
}

func (w *world) shell(before string, args ...string) (said string, fine bool) {
	w.t.Helper()
	script := programs.Got(filepath.Abs("../../build/install.sh"))(w.t)
	c := exec.Command("dash", append([]string{"-c", before + ` exec dash "$@"`, "-", script, w.server.URL}, args...)...)
	c.Dir = w.home
	c.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TMPDIR=" + w.t.TempDir()}
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

// has says which version of a program is installed.
func (w *world) has(program string) string {
	out, _ := exec.Command(filepath.Join(w.home, ".local/bin", program), "--version").Output()
	_, version, _ := strings.Cut(strings.TrimSpace(string(out)), " version ")
	return version
}

func (w *world) wants(fine bool, sentence, version string, args ...string) {
	w.t.Helper()
	said, went := w.install(args...)
	if went != fine || !strings.Contains(said, sentence) {
		w.t.Errorf("install %v: done %v, want %v and %q:\n%s", args, went, fine, sentence, said)
	}
	if has := w.has("porchlight"); has != version {
		w.t.Errorf("after install %v there is version %q, want %q", args, has, version)
	}
}

// TestInstall: the first time the server is trusted, and says whose key it is; then the
// key is, whatever the server says.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	w.release("1.2.3", w.key, fits)
	w.wants(true, "Compare the key's fingerprint", "1.2.3")
	public := programs.Got(base64.StdEncoding.DecodeString(w.publicKey))(t)
	w.wants(true, fmt.Sprintf("%x", sha256.Sum256(public)), "1.2.3") // which is what the publisher was told
	w.wants(true, "is installed already", "1.2.3")
	// Whoever has the program, from the package say, has the key after that, too.
	kept := filepath.Join(w.home, ".config/porchlight/release.pub")
	programs.Must(t, os.Remove(kept))
	w.wants(true, "is installed already", "1.2.3")
	if _, err := os.Stat(kept); err != nil {
		t.Error("the key was not kept")
	}
	w.release("1.3.0-rc.1", w.key, fits)
	w.wants(true, "in the place of 1.2.3", "1.3.0-rc.1")
	w.release("1.3.0", w.key, fits)
	w.wants(true, "signed by the key you installed before", "1.3.0")

	other, _ := w.newKey()
	w.release("1.4.0", other, fits)
	w.wants(false, "is not signed by that key. Nothing was changed", "1.3.0")
	w.release("1.4.0", "", fits)
	w.wants(false, "SHA256SUMS.minisig could not be fetched", "1.3.0")
	w.wants(false, "this one would not be", "1.3.0", "--unsigned")
}

// TestInstallByKey: who was told the key trusts no server, not even once.
func TestInstallByKey(t *testing.T) {
	w := newWorld(t)
	other, public := w.newKey()
	w.release("1.2.3", other, fits)
	w.wants(false, "not signed by that key", "", "--key", w.publicKey)
	w.wants(false, "that is no key", "", "--key", "c2hvcnQ=")
	w.wants(true, "the key you named", "1.2.3", "--key", public)
	w.wants(false, "that is not the key in", "1.2.3", "--key", w.publicKey)
	w.home = t.TempDir()
	w.release("1.2.3", "", fits)
	w.wants(true, "Nobody signed this release", "1.2.3", "--unsigned")
}

// TestTampered: a release of which anything was changed after it was signed installs nothing.
func TestTampered(t *testing.T) {
	w := newWorld(t)
	const unsigned = "is not signed by that key. Nothing was changed"
	evil := func(s string) string { return s + "evil\n" }
	for what, c := range map[string]struct {
		says   string
		tamper func()
	}{
		"a program": {"is not the file that was signed", func() { w.change("porchlight_*", evil) }},
		"a program and its sum": {unsigned, func() {
			program := programs.Got(filepath.Glob(filepath.Join(w.served, "porchlight_*")))(t)[0]
			before := sumOf(t, program)
			w.change("porchlight_*", evil)
			w.change("SHA256SUMS", func(s string) string { return strings.Replace(s, before, sumOf(t, program), 1) })
		}},
		"the version": {unsigned, func() {
			w.change("SHA256SUMS.minisig", func(s string) string { return strings.Replace(s, "2.0.0", "9.0.0", 1) })
		}},
		"the signature": {unsigned, func() { w.change("SHA256SUMS.minisig", strings.ToUpper) }},
		"no signature":  {unsigned, func() { w.change("SHA256SUMS.minisig", func(string) string { return "" }) }},
		"the key": {unsigned, func() {
			_, k := w.newKey()
			w.change("porchlight.pub", func(string) string { return "x\n" + k + "\n" })
		}},
		"no key": {"that is no key", func() { w.change("porchlight.pub", func(string) string { return "" }) }},
		"much":   {"SHA256SUMS", func() { w.change("SHA256SUMS", func(s string) string { return strings.Repeat(s, 1000) }) }},
	} {
		w.release("2.0.0", w.key, fits)
		c.tamper()
		if said, went := w.install(); went || !strings.Contains(said, c.says) || w.has("porchlight") != "" {
			t.Errorf("%s: done %v, want %q:\n%s", what, went, c.says, said)
		}
	}
}

func sumOf(t *testing.T, file string) string {
	t.Helper()
	return fmt.Sprintf("%x", sha256.Sum256(programs.Got(os.ReadFile(file))(t)))
}

// TestOlderOfferedAsNewer: an older release is signed, too. Whatever its files are called now,
// the signature says which it is.
func TestOlderOfferedAsNewer(t *testing.T) {
	w := newWorld(t)
	w.release("1.3.0", w.key, fits)
	w.wants(true, "Installed", "1.3.0")
	w.release("1.2.0", w.key, fits)
	w.wants(false, "is older than 1.3.0", "1.3.0")
	for _, file := range programs.Got(filepath.Glob(filepath.Join(w.served, "*_1.2.0_*")))(t) {
		programs.Must(t, os.Rename(file, strings.Replace(file, "1.2.0", "1.4.0", 1)))
	}
	w.wants(false, "could not be fetched", "1.3.0")
	w.change("SHA256SUMS", func(s string) string { return strings.ReplaceAll(s, "1.2.0", "1.4.0") })
	w.wants(false, "is not signed by that key", "1.3.0")
	// One that was signed as another than it is.
	w.release("1.2.0", w.key, fits)
	if out, err := exec.Command(tool, "seal", w.key, "1.5.0", w.served).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.wants(false, "was signed as 1.5.0", "1.3.0")
	w.release("1.2.0", w.key, fits)
	w.wants(true, "in the place of 1.3.0", "1.2.0", "--downgrade")
}

// TestDowngradeOverNewerData: a version that cannot use the data is not installed, and what is
// there stays.
func TestDowngradeOverNewerData(t *testing.T) {
	w := newWorld(t)
	w.release("1.3.0", w.key, fits)
	w.wants(true, "Installed", "1.3.0")
	const refuses = `[ "$1" != upgrade ] || { echo "a newer version of Porchlight wrote it: agent.db.format-6 is one" >&2; exit 1; }`
	w.release("1.2.0", w.key, refuses)
	w.wants(false, "agent.db.format-6 is one", "1.3.0", "--downgrade")
	programs.Must(t, os.WriteFile(filepath.Join(w.home, "systemctl"), []byte("#!/bin/sh\necho \"$@\" >>\"$HOME/systemd\"\n"), 0o700))
	said, went := w.shell(`PATH="$HOME:$PATH"; export PATH;`, "--downgrade")
	if asked := programs.Got(os.ReadFile(filepath.Join(w.home, "systemd")))(t); went || !strings.Contains(said, "Nothing was changed") || strings.Contains(string(asked), "stop") {
		t.Errorf("while it runs: done %v, systemd was asked %q\n%s", went, asked, said)
	}
	w.release("1.1.0", w.key, `[ "$1" != upgrade ] || exit 2`) // it cannot tell
	w.wants(false, "Nothing was changed", "1.3.0", "--downgrade")
}

// TestFullDisk: where the program cannot be written whole, the one of before is there still.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	w.release("1.3.0", w.key, fits)
	w.wants(true, "Installed", "1.3.0")
	w.release("1.4.0", w.key, fits+"\n# "+strings.Repeat("large ", 40_000))
	// Only what is written into the home is limited: the download has room.
	programs.Must(t, os.WriteFile(filepath.Join(w.home, "cp"), []byte("#!/bin/sh\nulimit -f 8; exec /bin/cp \"$@\"\n"), 0o700))
	said, went := w.shell(`PATH="$HOME:$PATH"; export PATH;`)
	if went || !strings.Contains(said, "What was there is there still") || w.has("porchlight") != "1.3.0" {
		t.Errorf("done %v, version %s:\n%s", went, w.has("porchlight"), said)
	}
	if left := programs.Got(os.ReadDir(filepath.Join(w.home, ".local/bin")))(t); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	w.wants(true, "Installed", "1.4.0") // with room again
}

// TestServersBackup: a server's data is copied by the old program before the new one is there, and
// without a copy nothing changes.
func TestServersBackup(t *testing.T) {
	w := newWorld(t)
	const backs = `[ "$1" != backup ] || { echo "of $3 $4" >"$2"; exit; }`
	w.release("1.3.0", w.key, backs)
	if said, went := w.install("--server"); !went {
		t.Fatal(said)
	}
	w.release("1.4.0", w.key, fits+"\n"+`[ "$1" != backup ] || exit 1`)
	if said, went := w.install("--server", "--data", "/srv/porch"); !went || w.has("porchlight-control") != "1.4.0" {
		t.Fatal(said)
	}
	made := programs.Got(filepath.Glob(filepath.Join(w.home, "porchlight-before-1.4.0-*.backup")))(t)
	if len(made) != 1 || string(programs.Got(os.ReadFile(made[0]))(t)) != "of --data /srv/porch\n" {
		t.Errorf("backups: %v", made)
	}
	w.release("1.5.0", w.key, fits)
	if said, went := w.install("--server", "--data", "/srv/porch"); went || !strings.Contains(said, "there is no backup, so nothing was changed") || w.has("porchlight-control") != "1.4.0" {
		t.Errorf("done %v:\n%s", went, said)
	}
}

// TestShellcheck: every script for sh is one.
func TestShellcheck(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Fatal("shellcheck is not here: run build/setup.sh test")
	}
	if out, err := exec.Command("shellcheck", "--severity=warning", "../../build/install.sh", "../../build/release.sh", "../../build/twice.sh", "../../build/package.sh").CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}

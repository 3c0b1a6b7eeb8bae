// Package packaging holds the names, versions and times of the Debian packages to what
// build/package.sh looks for; run.sh beside it installs them.
package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/semver"

	"porchlight/test/programs"
)

// TestNames: whatever is built, the version is one that Debian takes, the packer keeps it
// as it stands, and a later one sorts later. This tree's begins with what VERSION says.
func TestNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the packages are Debian's, and its tools judge them")
	}
	root := filepath.Join("..", "..")
	run := func(env []string, name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir, c.Env = root, append(os.Environ(), env...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	nfpm := filepath.Join(t.TempDir(), "nfpm")
	run(nil, "go", "build", "-modfile=build/tools/go.mod", "-o", nfpm, "github.com/goreleaser/nfpm/v2/cmd/nfpm")

	named := programs.Got(os.ReadFile(filepath.Join(root, "VERSION")))(t)
	own := run(nil, "build/version.sh")
	if v := strings.TrimSpace(string(named)); own != v && !strings.HasPrefix(own, v+"+g") || !semver.IsValid("v"+own) {
		t.Errorf("this tree is version %s, and VERSION says %s", own, v)
	}
	before := ""
	for _, c := range []struct{ described, version, numbers string }{ // the earlier one first
		{"0.1.0+gabc1234", "0.1.0+gabc1234", "0.1.0"},
		{"0.1.0+gabc1234.dirty", "0.1.0+gabc1234.dirty", "0.1.0"},
		{"1.2.3-rc.1", "1.2.3~rc.1", "1.2.3"},
		{"1.2.3-rc.1+gabc1234", "1.2.3~rc.1+gabc1234", "1.2.3"},
		{"1.2.3", "1.2.3", "1.2.3"},
		{"1.2.3+gabc1234", "1.2.3+gabc1234", "1.2.3"},
	} {
		version := run(nil, "build/version.sh", "debian", c.described)
		if numbers := run(nil, "build/version.sh", "numbers", c.described); numbers != c.numbers {
			t.Errorf("%s has the numbers %s, want %s", c.described, numbers, c.numbers)
		}
		if version != c.version {
			t.Errorf("%s is version %s, want %s", c.described, version, c.version)
		}
		if before != "" {
			run(nil, "dpkg", "--compare-versions", before, "lt", version)
		}
		before = version
		for config, name := range map[string]string{"nfpm": "porchlight", "nfpm-control": "porchlight-control"} {
			settings := programs.Got(os.ReadFile(filepath.Join(root, "build", "linux", config+".yaml")))(t)
			dir := t.TempDir()
			without, _, _ := bytes.Cut(settings, []byte("contents:\n")) // those are not built here
			programs.Must(t, os.WriteFile(filepath.Join(dir, "nfpm.yaml"), without, 0o600))
			run([]string{"VERSION=" + version, "ARCH=arm64"}, nfpm, "package",
				"--config", filepath.Join(dir, "nfpm.yaml"), "--packager", "deb", "--target", dir+"/")
			made, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
			if want := filepath.Join(dir, name+"_"+version+"_arm64.deb"); len(made) != 1 || made[0] != want {
				t.Errorf("%s: made %v, want %s", c.described, made, want)
			} else if is := run(nil, "dpkg-deb", "--field", made[0], "Version"); is != version {
				t.Errorf("%s: the package is of version %s, want %s", c.described, is, version)
			}
		}
	}
}

// TestTime: sources that are no clone are as old as their files, not of 1970; whoever builds
// may say otherwise.
func TestTime(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it is a shell's script")
	}
	dir := t.TempDir()
	script, named := filepath.Join(dir, "build", "version.sh"), filepath.Join(dir, "VERSION")
	programs.Must(t, os.Mkdir(filepath.Dir(script), 0o700),
		os.WriteFile(script, programs.Got(os.ReadFile(filepath.Join("..", "..", "build", "version.sh")))(t), 0o600),
		os.WriteFile(named, []byte("1.2.3\n"), 0o600), os.Chtimes(named, time.Time{}, time.Unix(1234567890, 0)))
	for said, want := range map[string]string{"": "1234567890", "42": "42"} {
		c := exec.Command("sh", script, "time")
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "SOURCE_DATE_EPOCH=" + said, "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
		if out, err := c.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("with %q it is of %s, want %s: %v", said, out, want, err)
		}
	}
}

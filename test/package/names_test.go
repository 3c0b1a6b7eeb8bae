// Package packaging holds the names and versions of the Debian packages to what
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

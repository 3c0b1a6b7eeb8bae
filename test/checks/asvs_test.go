package checks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// asvsAsked are how many requirements of levels 1 and 2 each section of ASVS 5.0.0 has, in
// the chapters that asvs.md is about.
var asvsAsked = map[string]int{
	"6.1": 3, "6.2": 11, "6.3": 4, "6.4": 4, "6.5": 5, "6.6": 3, "6.8": 4,
	"7.1": 3, "7.2": 4, "7.3": 2, "7.4": 5, "7.5": 2, "7.6": 2,
	"9.1": 3, "9.2": 4,
	"10.1": 2, "10.2": 2, "10.3": 4, "10.4": 11, "10.5": 5, "10.6": 2, "10.7": 3,
}

// Each requirement that asvs.md calls met has a test, which is there; each other one a reason.
func TestASVSHasTests(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	there := map[string]bool{}
	for _, rooms := range []string{"control", "agent", "test"} {
		programs.Must(t, filepath.WalkDir(filepath.Join(root, rooms), func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.Name() == "node_modules" || e.Name() == "testdata":
				return filepath.SkipDir
			case e.IsDir():
				for name := range testNames(t, path) {
					there[name] = true
				}
			case strings.HasSuffix(path, ".test.mjs"):
				there[e.Name()] = true
			}
			return nil
		}))
	}
	attacks := string(programs.Got(os.ReadFile(filepath.Join(root, "test", "attack", "main.go")))(t))
	for _, m := range regexp.MustCompile(`(?m)^\t\{"([a-z0-9-]+)", `).FindAllStringSubmatch(attacks, -1) {
		there["attack:"+m[1]] = true
	}
	page := string(programs.Got(os.ReadFile(filepath.Join(root, "docs", "measured", "asvs.md")))(t))
	row := regexp.MustCompile(`(?m)^\| ((\d+\.\d+)\.\d+) \| ([a-z ]+) \| (.+) \|$`)
	named := regexp.MustCompile(`\b(?:Test|Fuzz)\w+|attack:[a-z0-9-]+|[a-z-]+\.test\.mjs`)
	asked := map[string]int{}
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		asked[m[2]]++
		tests := named.FindAllString(m[4], -1)
		if !slices.Contains([]string{"met", "not met", "na"}, m[3]) || m[3] == "met" && len(tests) == 0 {
			t.Errorf("%s: %s without a test", m[1], m[3])
		}
		for _, name := range tests {
			if !there[name] {
				t.Errorf("%s: there is no %s", m[1], name)
			}
		}
	}
	for section, want := range asvsAsked {
		if asked[section] != want {
			t.Errorf("%s: %d requirements, want %d", section, asked[section], want)
		}
	}
	if len(asked) != len(asvsAsked) {
		t.Errorf("the page has the sections %v", asked)
	}
}

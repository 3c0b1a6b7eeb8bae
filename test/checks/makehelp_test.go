package checks

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// TestMakeHelpListsEveryTarget: README and CONTRIBUTING send people to make help for
// all there is. What only prepares the others (setup-…) is left out.
func TestMakeHelpListsEveryTarget(t *testing.T) {
	t.Parallel()
	makefile := programs.Got(os.ReadFile("../../Makefile"))(t)
	phony := regexp.MustCompile(`(?m)^\.PHONY:((?:.*\\\n)*.*)$`).FindStringSubmatch(string(makefile))
	if phony == nil {
		t.Fatal("the Makefile has no .PHONY")
	}
	help := exec.Command("make", "--no-print-directory", "help")
	help.Dir = "../.."
	out := programs.Got(help.Output())(t)
	var listed []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 {
			listed = append(listed, f[1]) // make TARGET what it does
		}
	}
	targets := strings.Fields(strings.ReplaceAll(phony[1], "\\\n", " "))
	for _, target := range targets {
		if !strings.HasPrefix(target, "setup-") && !slices.Contains(listed, target) {
			t.Errorf("make help does not list %s", target)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):(?:[^=]|$)`).FindAllStringSubmatch(string(makefile), -1) {
		if !slices.Contains(targets, m[1]) {
			t.Errorf("%s is no file, and not in .PHONY", m[1])
		}
	}
}

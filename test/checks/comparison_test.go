package checks

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// TestEveryCellOfTheComparisonHasItsSource: what is said of somebody else's program can be
// looked up, and it says of which day it is.
func TestEveryCellOfTheComparisonHasItsSource(t *testing.T) {
	t.Parallel()
	raw := programs.Got(os.ReadFile("../../docs/comparison.md"))(t)
	text := string(raw)
	if !regexp.MustCompile(`Reviewed on \d{1,2} [A-Z][a-z]+ 20\d\d`).MatchString(text) {
		t.Error("docs/comparison.md does not say when it was reviewed")
	}
	link := regexp.MustCompile(`^\[[^\]]+\](?:\(\S+\)|\[([a-z0-9-]+)\])$`)
	cells := 0
	for line := range strings.Lines(text) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(row) < 3 || strings.HasPrefix(line, "| |") || strings.HasPrefix(line, "| **") {
			continue
		}
		for _, cell := range row[1:] {
			cell = strings.TrimSpace(cell)
			found := link.FindStringSubmatch(cell)
			switch {
			case cell == "–":
			case found == nil:
				t.Errorf("%s: %q has no source", row[0], cell)
			case found[1] != "" && !strings.Contains(text, "\n["+found[1]+"]: https://"):
				t.Errorf("%s: [%s] leads nowhere", row[0], found[1])
			}
			cells++
		}
	}
	if cells < 60 {
		t.Errorf("only %d cells were read", cells)
	}
}

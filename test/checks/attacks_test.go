package checks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// Each published attack that attacks.md names has a test, which is there.
func TestPublishedAttacksAreTried(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page := programs.Got(os.ReadFile(filepath.Join(root, "docs", "measured", "attacks.md")))(t)
	there := map[string]bool{}
	for _, dir := range []string{"", "gate", "http2"} {
		for name := range testNames(t, filepath.Join(root, "agent", "proxy", dir)) {
			there[name] = true
		}
	}
	attacks := 0
	for row := range strings.Lines(string(page)) {
		found := len(regexp.MustCompile(`CVE-20\d\d-\d{4,}`).FindAllString(row, -1))
		if found == 0 {
			continue
		}
		attacks += found
		tests := regexp.MustCompile(`\b(Test|Fuzz)\w+`).FindAllString(row, -1)
		if len(tests) == 0 {
			t.Errorf("no test is named: %s", row)
		}
		for _, name := range tests {
			if !there[name] {
				t.Errorf("there is no %s: %s", name, row)
			}
		}
	}
	if attacks < 50 {
		t.Errorf("%d attacks are in the table, so this looks in vain", attacks)
	}
}

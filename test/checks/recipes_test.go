package checks

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// docs/recipes.md says of each section whether `make test-apps` runs it, and that is
// true: test/apps has an app for it, and for no section that is not there.
func TestRecipesSayWhatIsRun(t *testing.T) {
	page := programs.Got(os.ReadFile("../../docs/recipes.md"))(t)
	files, err := filepath.Glob("../apps/apps/*.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no apps are tried: %v", err)
	}
	var tried []string
	for _, file := range files {
		source := programs.Got(os.ReadFile(file))(t)
		for _, heading := range regexp.MustCompile(`heading: '([^']+)'`).FindAllStringSubmatch(string(source), -1) {
			tried = append(tried, heading[1])
		}
	}
	for _, wrong := range recipesUntrue(string(page), tried) {
		t.Error(wrong)
	}
}

// The check above is worth something only if it sees what is wrong.
func TestAnUntrueRecipeIsSeen(t *testing.T) {
	t.Parallel()
	page := "### One\n\nRun.\n\n### Two\n\nNot run.\n\n### Three\n\nA word.\n"
	for want, tried := range map[string][]string{
		"Two: it is run, and the page does not say so":             {"One", "Two"},
		"One: the page says that it is run, and no test does":      {},
		"Three: the page does not say whether it is run":           {"One"},
		"Four: it is run, and docs/recipes.md has no such section": {"One", "Four"},
		"fewer than 20 recipes: 3":                                 {"One"},
	} {
		if got := recipesUntrue(page, tried); !slices.Contains(got, want) {
			t.Errorf("%q is not seen: %q", want, got)
		}
	}
}

// recipesUntrue says in sentences where a page and the apps that are tried differ.
func recipesUntrue(page string, tried []string) (wrong []string) {
	sections := strings.Split("\n"+page, "\n### ")[1:]
	if len(sections) < 20 {
		wrong = append(wrong, fmt.Sprintf("fewer than 20 recipes: %d", len(sections)))
	}
	missing := slices.Clone(tried)
	for _, section := range sections {
		heading, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == heading })
		run := slices.Contains(tried, heading)
		paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
		last := paragraphs[len(paragraphs)-1]
		switch {
		case strings.HasPrefix(last, "Run"):
			if !run {
				wrong = append(wrong, heading+": the page says that it is run, and no test does")
			}
		case strings.HasPrefix(last, "Not run"):
			if run {
				wrong = append(wrong, heading+": it is run, and the page does not say so")
			}
		default:
			wrong = append(wrong, heading+": the page does not say whether it is run")
		}
	}
	for _, name := range missing {
		wrong = append(wrong, name+": it is run, and docs/recipes.md has no such section")
	}
	return wrong
}

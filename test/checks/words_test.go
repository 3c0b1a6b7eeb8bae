package checks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"porchlight/test/programs"
)

const (
	mostWords    = 45_000 // of all papers together, as wc counts them
	mostSentence = 35     // words
)

// What people read stays short: a paper that grows loses as much elsewhere, and a
// sentence that is longer is two.
func TestPapersAreShort(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	papers := programs.Got(filepath.Glob(filepath.Join(root, "docs", "*.md")))(t)
	words := 0
	for _, paper := range append(papers, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text := programs.Got(os.ReadFile(paper))(t)
		name := filepath.Base(paper)
		if name == "limits.md" {
			continue // written from the code
		}
		words += len(strings.Fields(string(text)))
		for _, long := range longSentences(string(text)) {
			t.Errorf("%s: more than %d words: %s", name, mostSentence, long)
		}
	}
	if words > mostWords {
		t.Errorf("%d words in all papers, want at most %d", words, mostWords)
	}
}

func TestALongSentenceIsSeen(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a ", mostSentence) + "b"
	for text, want := range map[string]int{
		long + ".":                                        1,
		"- It is\n  " + long + ".":                        1,
		"| a | " + long + " | c |":                        1,
		long[:40] + ". " + long[:40] + ".":                0,
		long[:40] + "\n\n" + long[:40]:                    0,
		"- " + long[:40] + "\n- " + long:                  1,
		"```\n" + long + "\n```":                          0,
		"Type:\n\n    " + long + "\n":                     0,
		"`" + long + "` is one word.":                     0,
		"[one](" + long[:2] + "\n) " + long[:len(long)-6]: 0,
	} {
		if got := longSentences(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

var (
	indented = regexp.MustCompile(`\n\s*\n(?:    .*\n)+`)
	inline   = regexp.MustCompile("`[^`]*`")
	apart    = regexp.MustCompile(`\n\s*\n|\n\s*(?:[-*#]|\d+\.) |\||\n\|`)
	endOf    = regexp.MustCompile(`[.!?][)"*_]*\s+`)
	aWord    = regexp.MustCompile(`\S*[\p{L}\p{N}]\S*`)
	marks    = regexp.MustCompile(`(?s)<[a-z/!][^>]*>`)
	leadsTo  = regexp.MustCompile(`(?m)\]\([^)]*\)|^\[[^\]]+\]: .*$`)
)

// longSentences are those of a page that people cannot read in one breath. Code counts as
// one word; a line of a list and a cell of a table stand for themselves.
func longSentences(page string) (long []string) {
	page = fenced.ReplaceAllString("\n"+page, "\n\n")
	page = indented.ReplaceAllString(page, "\n\n")
	page = leadsTo.ReplaceAllString(inline.ReplaceAllString(marks.ReplaceAllString(page, ""), "code"), "]")
	for _, part := range apart.Split(page, -1) {
		for _, sentence := range endOf.Split(part, -1) {
			if len(aWord.FindAllString(sentence, -1)) > mostSentence {
				long = append(long, strings.Join(strings.Fields(sentence), " "))
			}
		}
	}
	return long
}

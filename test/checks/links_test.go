package checks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"porchlight/test/programs"
)

var (
	mdLink = regexp.MustCompile(`\]\(([^)\s]+)\)|(?m:^\[[^\]]+\]: (\S+)$)|\b(?:src|srcset|href)="([^"]+)"`)
	// sourcePath is a package, or a file of source, as documents name it.
	sourcePath = regexp.MustCompile("`((?:agent|assets|build|control|desktop|docs|frontend|internal|test)/(?:[\\w./-]*\\.(?:go|ts|svelte|mjs|md|yaml|sh|css|txt)|[\\w/-]*))`")
	heading    = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	noSlug     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	fenced     = regexp.MustCompile("(?ms)^```.*?^```$")
)

// A document that names a file, a package or a heading that is not there leads
// nobody anywhere. Web addresses are not visited.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	pages := programs.Got(filepath.Glob(filepath.Join(root, "docs", "*.md")))(t)
	measured := programs.Got(filepath.Glob(filepath.Join(root, "docs", "measured", "*.md")))(t)
	pages = append(pages, measured...)
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, wrong := range deadLinks(root, page, string(text)) {
			t.Errorf("%s: %s", filepath.Base(page), wrong)
		}
	}
}

// What a document installs is found on a machine that was set up a moment ago: its list
// of packages is brought up to date in the same block.
func TestInstallsKnowThePackages(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	pages := programs.Got(filepath.Glob(filepath.Join(root, "docs", "*.md")))(t)
	seen := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
		}
		for _, block := range fenced.FindAllString(string(text), -1) {
			before, _, installs := strings.Cut(block, "apt install")
			if !installs {
				continue
			}
			if seen++; !strings.Contains(before, "apt update") {
				t.Errorf("%s installs without 'apt update' before it:\n%s", filepath.Base(page), block)
			}
		}
	}
	if seen == 0 {
		t.Error("no document installs anything, so this looks in vain")
	}
}

func TestADeadLinkIsSeen(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "page.md")
	for text, wrong := range map[string]int{
		"[a](decisions.md) [b](../README.md#reading-on) `test/checks` [c](https://example.org/none)": 0,
		"[a](none.md)":                            1,
		"[a]\n\n[a]: none.md":                     1,
		"```\nfound[i](err)\n```":                 0,
		"[a](../README.md#none)":                  1,
		"`agent/none` and `agent/none/none.go`":   2,
		`<img src="pictures/none.png">`:           1,
		"# A heading, here\n[a](#a-heading-here)": 0,
	} {
		if got := deadLinks(filepath.Join("..", ".."), page, text); len(got) != wrong {
			t.Errorf("%q: %q, want %d", text, got, wrong)
		}
	}
}

// deadLinks says what in the text of a page leads to nothing.
func deadLinks(root, page, text string) (dead []string) {
	text = fenced.ReplaceAllString(text, "") // programs have brackets of their own
	for _, found := range mdLink.FindAllStringSubmatch(text, -1) {
		target := found[1] + found[2] + found[3]
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		path, anchor, _ := strings.Cut(target, "#")
		body := text
		if path != "" {
			path = filepath.Join(filepath.Dir(page), path)
			if _, err := os.Stat(path); err != nil {
				dead = append(dead, "there is no "+target)
				continue
			}
			if strings.HasSuffix(path, ".md") {
				raw, _ := os.ReadFile(path) // there a moment ago; without its text no anchor is found
				body = string(raw)
			}
		}
		if anchor != "" && !hasHeading(body, anchor) {
			dead = append(dead, "there is no heading "+target)
		}
	}
	for _, found := range sourcePath.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, found[1])); err != nil {
			dead = append(dead, "there is no "+found[1])
		}
	}
	return dead
}

// Decisions are found by their date and by the code they are about; few and short, so
// that they are read. What only says how something behaves belongs to its code.
func TestDecisionsHaveADateAndAPlace(t *testing.T) {
	t.Parallel()
	raw := programs.Got(os.ReadFile("../../docs/decisions.md"))(t)
	defined := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^\[([^\]]+)\]: `).FindAllStringSubmatch(string(raw), -1) {
		defined[found[1]] = true
	}
	entries := 0
	entry := regexp.MustCompile(`^- 20\d\d-[01]\d-[0-3]\d · \S.*[.:] (\[[^\]]+\] ?)+$`)
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		if entries++; utf8.RuneCountInString(line) > 400 {
			t.Errorf("more than 400 characters: %.60s…", line)
		}
		if !entry.MatchString(line) {
			t.Errorf("no decision of the form \"- 2026-01-31 · What was decided, and why. [code]\": %.60s…", line)
		}
		for _, place := range regexp.MustCompile(`\[([^\]]+)\](?: |$)`).FindAllStringSubmatch(line, -1) {
			if !defined[place[1]] {
				t.Errorf("[%s] leads nowhere: %.60s…", place[1], line)
			}
		}
	}
	if entries == 0 || entries > 80 {
		t.Errorf("%d decisions, want 1 to 80: take one out for one that comes", entries)
	}
}

// hasHeading says whether a page has a heading whose anchor is this one.
func hasHeading(body, anchor string) bool {
	for _, found := range heading.FindAllStringSubmatch(body, -1) {
		slug := noSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(found[1])), "")
		if strings.ReplaceAll(slug, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// Code cites the interface by a heading of docs/interface.md, or by a promise.
func TestCommentsCiteWhatIsThere(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/interface.md")
	programs.Must(t, err)
	var headings []string
	for _, found := range heading.FindAllStringSubmatch(string(raw), -1) {
		headings = append(headings, found[1])
	}
	broken := regexp.MustCompile(`\n\s*// ?`)
	const cited = "docs/interface.md, "
	err = filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{"node_modules", "out", ".tools"}, entry.Name()) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || filepath.Base(path) == "links_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, rest := range strings.Split(broken.ReplaceAllString(string(text), " "), cited) {
			if i > 0 && !slices.ContainsFunc(headings, func(h string) bool { return strings.HasPrefix(rest, h) }) {
				t.Errorf("%s cites %s%.40q…, which is no heading there", path, cited, rest)
			}
		}
		return nil
	})
	programs.Must(t, err)
}

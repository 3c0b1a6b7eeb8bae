// Package pseudo finds what was never said through internal/words: a page or a mail in
// the pseudo-locale has no plain vowel but in what it was given, names and addresses.
package pseudo

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	unread  = regexp.MustCompile(`(?s)<(style|script)[^>]*>.*?</(style|script)>|<!--.*?-->|<!doctype[^>]*>`)
	read    = regexp.MustCompile(`\b(?:aria-label|placeholder|title|alt)="([^"]*)"`)
	tag     = regexp.MustCompile(`<[^>]*>`)
	address = regexp.MustCompile(`https?://\S+|[^\s"'<>()„“,;:]+@[^\s"'<>()„“,;:]+|/?[\w-]+([./][\w-]+)+/?(:\d+)?`)
	vowel   = regexp.MustCompile(`[aeiou]`)
	months  = regexp.MustCompile(`January|February|March|April|May|June|July|August|September|October|November|December`)
)

// Unsaid are the texts of a page, or of a mail's text, with a plain vowel in them after
// what was given and addresses are left out. Months stand in dates that browsers and Go
// write.
func Unsaid(page string, given ...string) (found []string) {
	page = unread.ReplaceAllString(page, "")
	var texts []string
	for _, m := range read.FindAllStringSubmatch(page, -1) {
		texts = append(texts, m[1])
	}
	texts = append(texts, strings.Split(tag.ReplaceAllString(page, "\n"), "\n")...)
	given = slices.Clone(given)
	slices.SortFunc(given, func(a, b string) int { return len(b) - len(a) })
	for _, text := range texts {
		plain := address.ReplaceAllString(html.UnescapeString(text), " ")
		for _, one := range given {
			plain = strings.ReplaceAll(plain, one, " ")
		}
		plain = months.ReplaceAllString(plain, " ")
		if vowel.MatchString(plain) {
			found = append(found, strings.TrimSpace(plain))
		}
	}
	return found
}

// Check fails a test where a page in the pseudo-locale has a text that was not said.
func Check(t *testing.T, what, page string, given ...string) {
	t.Helper()
	if !strings.Contains(page, "~]") {
		t.Errorf("%s is not in the pseudo-locale", what)
	}
	for _, text := range Unsaid(page, given...) {
		t.Errorf("%s says %q outside of the catalogue", what, text)
	}
}

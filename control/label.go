package control

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// validLabel says whether an app's label may be shown to people. An agent checks
// its labels by rules that are no wider; this is for one that does not, because
// what it reports is read on pages and in mails of this service.
func validLabel(label string) bool {
	if label != strings.TrimSpace(label) || !utf8.ValidString(label) || utf8.RuneCountInString(label) > maxLabel {
		return false
	}
	seen := false
	for _, r := range label {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || steersText(r) {
			return false
		}
		seen = seen || unicode.IsGraphic(r) && !unicode.IsSpace(r)
	}
	return seen
}

// steersText is true for characters that change the direction of the text around
// them, with which a label could pass for another, or rewrite the sentence it
// stands in.
func steersText(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}

package language

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWords is the longest text of a menu line, in characters.
const maxWords = 48

// Shorten makes one printable line of at most maxWords characters. Labels and
// program names come from other programs, addresses and clients' names from a
// control plane; the agent has looked at most of them. None may reverse the
// words around it, also where the agent let it through.
func Shorten(s string) string { return shortenTo(s, maxWords) }

func shortenTo(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
	if r := []rune(s); len(r) > most {
		return strings.TrimRightFunc(string(r[:most-1]), unicode.IsSpace) + "…"
	}
	return s
}

// Wrap breaks a text into lines of at most maxWords characters, each sentence on
// a line of its own; there is at least one.
func Wrap(text string) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		joined := strings.TrimPrefix(*last+" "+word, " ")
		if *last == "" || !strings.HasSuffix(*last, ".") && len([]rune(joined)) <= maxWords {
			*last = joined
		} else {
			lines = append(lines, word)
		}
	}
	for i := range lines {
		lines[i] = Shorten(lines[i])
	}
	return lines
}

// Isolate keeps the letters of a right-to-left label from reordering the words
// around it. GTK takes a line's direction from its first letter, isolated or not;
// the mark in front is that letter.
func Isolate(s string) string {
	for _, r := range s {
		if unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko) {
			return "\u200e\u2068" + s + "\u2069"
		}
	}
	return s
}

func UpperFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// Named is a name from elsewhere, fit to stand in a sentence.
func Named(s string) string { return Isolate(Shorten(s)) }

// Beside is named for a name that stands beside another one: half as long.
func Beside(s string) string { return Isolate(shortenTo(s, maxWords/2)) }

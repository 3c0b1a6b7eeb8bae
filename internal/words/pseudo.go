package words

import (
	"regexp"
	"strings"
)

var (
	accented = strings.NewReplacer(
		"a", "å", "c", "ç", "e", "é", "i", "î", "n", "ñ", "o", "ö", "s", "š", "u", "û", "y", "ý", "z", "ž",
		"A", "Å", "C", "Ç", "E", "É", "I", "Î", "N", "Ñ", "O", "Ö", "S", "Š", "U", "Û", "Y", "Ý", "Z", "Ž",
	)
	// keptAsIs are fmt's verbs, marks of HTML and its entities.
	keptAsIs = regexp.MustCompile(`%(?:\[\d+\])?[a-z%]|<[^>]*>|&\w+;`)
)

// pseudo is a sentence as Pseudo has it: its letters with accents, two fifths longer,
// in brackets.
func pseudo(sentence string) string {
	var b strings.Builder
	b.WriteString("[")
	end := 0
	for _, span := range keptAsIs.FindAllStringIndex(sentence, -1) {
		b.WriteString(accented.Replace(sentence[end:span[0]]))
		b.WriteString(sentence[span[0]:span[1]])
		end = span[1]
	}
	b.WriteString(accented.Replace(sentence[end:]))
	letters := len([]rune(keptAsIs.ReplaceAllString(sentence, "")))
	if more := letters * 2 / 5; more > 0 {
		b.WriteString(" " + strings.Repeat("~", more))
	}
	return b.String() + "]"
}

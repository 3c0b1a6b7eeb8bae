package words

import (
	"strings"

	"golang.org/x/text/language"
)

// maxAccepted is how much of an Accept-Language header is read, in bytes: some
// twenty languages.
const maxAccepted = 200

// matcher chooses among All.
var matcher = func() language.Matcher {
	var tags []language.Tag
	for _, l := range All() {
		tags = append(tags, language.MustParse(l.Tag()))
	}
	return language.NewMatcher(tags)
}()

// Accepted is the language for somebody whose browser sent this Accept-Language
// header: what they like best of what there is, and English where that is nothing.
func Accepted(header string) Language {
	if strings.EqualFold(strings.TrimSpace(header), Pseudo.tag) {
		return Pseudo
	}
	if len(header) > maxAccepted {
		header = header[:max(0, strings.LastIndexByte(header[:maxAccepted], ','))]
	}
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return English
	}
	_, index, confidence := matcher.Match(tags...)
	if confidence == language.No {
		return English
	}
	return All()[index]
}

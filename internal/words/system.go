package words

import (
	"os"
	"strings"

	"golang.org/x/text/language"
)

// System is the language of this computer's desktop, and English where it is none of
// ours.
func System() Language {
	for _, name := range locales() {
		if l, ok := Named(name); ok {
			return l
		}
	}
	return English
}

// Locale is the tag of the desktop's locale, for dates and numbers ("de-AT"); empty
// where it says none.
func Locale() string {
	for _, name := range locales() {
		if tag := tagOf(name); tag != "" {
			return tag
		}
	}
	return ""
}

// environment has the locales that variables name, as POSIX ranks them.
func environment() []string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := os.Getenv(name); v != "" {
			return []string{v}
		}
	}
	return nil
}

// tagOf is a locale's name as a BCP 47 tag; empty for C, POSIX and what is none.
func tagOf(locale string) string {
	name, _, _ := strings.Cut(locale, ".")
	name, _, _ = strings.Cut(name, "@")
	tag, err := language.Parse(strings.ReplaceAll(name, "_", "-"))
	if err != nil || tag == language.Und {
		return ""
	}
	return tag.String()
}

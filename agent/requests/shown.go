package requests

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shownPath writes a path as an address does: every byte that is not a printing
// character of ASCII as %XX, so that nothing in it can steer a terminal, turn the
// direction of what follows, or look like another path.
func shownPath(path []byte) string {
	more := len(path) > maxPath
	if more {
		path = path[:maxPath]
	}
	var b strings.Builder
	b.Grow(len(path) + len("…"))
	for _, c := range path {
		if c > ' ' && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if more {
		b.WriteString("…")
	}
	return b.String()
}

// shown writes a text with what does not print as \u and its number.
func shown(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == utf8.RuneError:
			b.WriteString("\ufffd")
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

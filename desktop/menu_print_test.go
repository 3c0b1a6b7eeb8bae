package desktop

import (
	"fmt"
	"strings"
	"testing"

	"porchlight/desktop/verbs"
)

// String draws the menu as the golden files keep it.
func (m menu) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "(%s)\n", m.icon)
	write(&b, 0, m.lines)
	return b.String()
}

func write(b *strings.Builder, depth int, lines []line) {
	for _, l := range lines {
		indent := strings.Repeat("    ", depth)
		switch {
		case l.rule:
			fmt.Fprintf(b, "%s--\n", indent)
			continue
		case l.text == "":
			continue
		}
		text := map[mark]string{markOn: "[x] ", markOff: "[ ] "}[l.mark] + l.text
		if len(l.sub) > 0 {
			fmt.Fprintf(b, "%s%s >\n", indent, text)
			write(b, depth+1, l.sub)
			continue
		}
		fmt.Fprintf(b, "%s%s", indent, text)
		if l.do.Verb != verbs.Nothing {
			words := []string{string(l.do.Verb)}
			for _, s := range []string{l.do.Name, l.do.Person, l.do.App, l.do.Grant, l.do.Text, l.do.View} {
				if s != "" {
					words = append(words, s)
				}
			}
			if l.do.Verb == verbs.Login {
				words = append(words, fmt.Sprint(l.do.On))
			}
			fmt.Fprintf(b, "  [%s]", strings.Join(words, " "))
		}
		b.WriteString("\n")
	}
}

// lineOf finds a line by the texts on the way to it.
func lineOf(t *testing.T, lines []line, path ...string) line {
	t.Helper()
	for _, l := range lines {
		if l.text == path[0] {
			if len(path) == 1 {
				return l
			}
			return lineOf(t, l.sub, path[1:]...)
		}
	}
	t.Fatalf("there is no line %q", path[0])
	return line{}
}

package menu_test

import (
	"fmt"
	"strings"
	"testing"

	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
)

// printed is the menu as the golden files keep it.
func printed(m menu.Menu) string {
	var b strings.Builder
	fmt.Fprintf(&b, "(%s)\n", m.Icon)
	write(&b, 0, m.Lines)
	return b.String()
}

func write(b *strings.Builder, depth int, lines []menu.Line) {
	for _, l := range lines {
		indent := strings.Repeat("    ", depth)
		switch {
		case l.Rule:
			fmt.Fprintf(b, "%s--\n", indent)
			continue
		case l.Text == "":
			continue
		}
		text := l.Text
		switch l.Mark {
		case menu.NoMark:
		case menu.MarkOn:
			text = "[x] " + text
		default:
			text = "[ ] " + text
		}
		if len(l.Sub) > 0 {
			fmt.Fprintf(b, "%s%s >\n", indent, text)
			write(b, depth+1, l.Sub)
			continue
		}
		fmt.Fprintf(b, "%s%s", indent, text)
		if l.Do.Verb != verbs.Nothing {
			words := []string{string(l.Do.Verb)}
			for _, s := range []string{l.Do.Name, l.Do.Person, l.Do.App, l.Do.Grant, l.Do.Text, l.Do.View} {
				if s != "" {
					words = append(words, s)
				}
			}
			if l.Do.Verb == verbs.Login {
				words = append(words, fmt.Sprint(l.Do.On))
			}
			fmt.Fprintf(b, "  [%s]", strings.Join(words, " "))
		}
		b.WriteString("\n")
	}
}

// lineOf finds a line by the texts on the way to it.
func lineOf(t *testing.T, lines []menu.Line, path ...string) menu.Line {
	t.Helper()
	for _, l := range lines {
		if l.Text == path[0] {
			if len(path) == 1 {
				return l
			}
			return lineOf(t, l.Sub, path[1:]...)
		}
	}
	t.Fatalf("there is no line %q", path[0])
	return menu.Line{}
}

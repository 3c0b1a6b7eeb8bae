// Package words says what people read, in their language. A sentence is known by its
// English words: they are the key, and what is said where a language has nothing for
// them. It comes in as a format string with arguments, and goes out as text for
// exactly one language: of the desktop, of a page's request, or of a mail.
//
// It never decides what is said, and nothing that a program reads (JSON, codes,
// logs, the command line) goes through it.
package words

import (
	"slices"
	"strings"
)

// And joins what a sentence names: "Notes", "Notes and Photos", "Notes, Photos and
// Wiki".
func (l Language) And(items ...string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return l.Say("%[1]s and %[2]s", strings.Join(items[:last], ", "), items[last])
}

// List is And for names of which at most so many items are shown: of more, the
// last item counts the rest.
func (l Language) List(names []string, most int) string { return l.list(ListOf(names, most)) }

func (l Language) list(n Names) string {
	if n.More > 0 {
		return l.And(append(slices.Clone(n.Names), l.Count(n.More, "%d more", "%d more"))...)
	}
	return l.And(n.Names...)
}

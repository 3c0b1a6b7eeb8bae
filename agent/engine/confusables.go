package engine

import (
	_ "embed"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// confusables says which characters are drawn like which others, as UTS #39 has it: a
// line for each, of six hexadecimal digits and then those of what it is like, sorted.
// The version is at the beginning.
//
//go:embed confusables.txt
var confusables string

// skeleton is what a text looks like (UTS #39, section 4): two that look alike have the
// same. It is for comparing and never shown. What is invisible must be gone from it.
func skeleton(text string) string {
	var out strings.Builder
	for _, r := range norm.NFD.String(text) {
		like, found := drawnLike(r)
		if !found {
			out.WriteRune(r)
			continue
		}
		for hex := range strings.FieldsSeq(like) {
			if to, err := strconv.ParseUint(hex, 16, 32); err == nil {
				out.WriteRune(rune(to))
			}
		}
	}
	return norm.NFD.String(out.String())
}

// drawnLike are the hexadecimal digits of what a character is drawn like.
func drawnLike(r rune) (like string, found bool) {
	key := fmt.Sprintf("%06X ", r)
	i := sort.Search(len(confusables), func(i int) bool {
		_, after, _ := strings.Cut(confusables[i:], "\n")
		return after == "" || after >= key
	})
	_, after, _ := strings.Cut(confusables[i:], "\n")
	line, _, _ := strings.Cut(after, "\n")
	return strings.CutPrefix(line, key)
}

// looksOf is what a label looks like, as it is written and in small letters: I and l are
// alike in the one, m and rn in the other.
func looksOf(label string) [2]string {
	return [2]string{cases.Fold().String(skeleton(visible(label))), skeleton(foldLabel(label))}
}

// resembled is the label of another approved app that a request's label could be taken
// for, or empty. mu is held.
func (a *Apps) resembled(app *App) string {
	for _, other := range a.shown.Load().byLabel {
		if other.Name == app.Name || other.ID == "" {
			continue
		}
		if other.looks[0] == app.looks[0] || other.looks[1] == app.looks[1] {
			return other.Label
		}
	}
	return ""
}

// Package words puts into words what people read in more than one place.
package words

import (
	"fmt"
	"slices"
	"strings"
)

// And joins what a sentence names: "Notes", "Notes and Photos", "Notes, Photos and
// 7 more".
func And(items ...string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// List is And for names of which at most so many items are shown: of more, the
// last item counts the rest.
func List(names []string, most int) string {
	if rest := len(names) - most; rest > 0 {
		names = append(slices.Clone(names[:most-1]), fmt.Sprintf("%d more", rest+1))
	}
	return And(names...)
}

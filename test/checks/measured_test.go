package checks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// A table of performance.md whose first heading is empty has rows and columns of the
// tables that the commands write into docs/measured, and says what they say.
func TestThePaperSaysWhatWasMeasured(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "docs")
	measured := map[string]bool{}
	for _, name := range []string{"bench.md", "load.md"} {
		for _, c := range cells(t, filepath.Join(docs, "measured", name)) {
			measured[c.String()] = true
		}
	}
	said := cells(t, filepath.Join(docs, "performance.md"))
	if len(said) < 50 {
		t.Errorf("%d figures are in the paper, so this looks in vain", len(said))
	}
	for _, c := range said {
		if !measured[c.String()] {
			t.Errorf("docs/measured does not have %v", c)
		}
	}
}

// cell is a figure of a table.
type cell struct{ row, column, value string }

func (c cell) String() string { return c.row + " | " + c.column + " | " + c.value }

// cells are all of the tables of a page whose first heading is empty. Where the second
// is, too, the first names several rows, each with a name of its own beside it.
func cells(t *testing.T, page string) (all []cell) {
	text := programs.Got(os.ReadFile(page))(t)
	var head []string
	name := ""
	for line := range strings.Lines(string(text)) {
		line, isRow := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !isRow {
			if !strings.HasPrefix(line, "|--") {
				head = nil
			}
			continue
		}
		row := strings.Split(strings.TrimSuffix(line, "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if head == nil {
			head = row
			continue
		}
		if head[0] != "" || len(row) != len(head) {
			continue
		}
		label, from := row[0], 1
		if head[1] == "" {
			if row[0] != "" {
				name = row[0]
			}
			label, from = name+": "+row[1], 2
		}
		for i := from; i < len(row); i++ {
			if head[i] != "" {
				all = append(all, cell{label, head[i], row[i]})
			}
		}
	}
	return all
}

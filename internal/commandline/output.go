package commandline

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"porchlight/internal/oneline"
)

// PrintJSON prints v for programs: indented, one document.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// PrintTable prints rows in columns under a header. What is in the rows comes from
// other programs, and is made printable.
func PrintTable(w io.Writer, header []string, rows [][]string) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(header, "\t"))
	for _, row := range rows {
		shown := make([]string, len(row))
		for i, cell := range row {
			shown[i] = oneline.Printable(cell)
		}
		fmt.Fprintln(columns, strings.Join(shown, "\t"))
	}
	return columns.Flush()
}

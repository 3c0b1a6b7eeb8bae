package main

import (
	"encoding/json"
	"fmt"
	"io"
	"porchlight/agent/agentapi"
	"strings"
	"text/tabwriter"
	"time"
)

// terminal is where a command prints: results to out, remarks to err.
type terminal struct {
	out, err io.Writer
}

func newTerminal(out, err io.Writer) *terminal { return &terminal{out: out, err: err} }

// json prints v for programs: indented, one document.
func (t *terminal) json(v any) error {
	enc := json.NewEncoder(t.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (t *terminal) line(format string, args ...any) {
	fmt.Fprintf(t.out, format+"\n", args...)
}

func (t *terminal) remark(format string, args ...any) {
	fmt.Fprintf(t.err, format+"\n", args...)
}

// table prints rows in columns under a header.
func (t *terminal) table(header []string, rows [][]string) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = printable(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// moment is a time as tables show it, to the minute.
func moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// printable is what may be shown in a terminal: labels come from other programs.
func printable(s string) string { return agentapi.Printable(s) }

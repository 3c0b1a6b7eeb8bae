package main

import (
	"fmt"
	"io"
	"time"

	"porchlight/internal/commandline"
	"porchlight/internal/oneline"
)

// terminal is where a command prints: results to out, remarks to err.
type terminal struct {
	out, err io.Writer
	in       io.Reader // what secrets are read from; nil for standard input
}

func newTerminal(out, err io.Writer) *terminal { return &terminal{out: out, err: err} }

// json prints v for programs: indented, one document.
func (t *terminal) json(v any) error {
	return commandline.PrintJSON(t.out, v)
}

func (t *terminal) line(format string, args ...any) {
	fmt.Fprintf(t.out, format+"\n", args...)
}

func (t *terminal) remark(format string, args ...any) {
	fmt.Fprintf(t.err, format+"\n", args...)
}

// table prints rows in columns under a header.
func (t *terminal) table(header []string, rows [][]string) error {
	return commandline.PrintTable(t.out, header, rows)
}

// list prints a table with a row for each of all, or where there is nothing, none.
func list[T any](t *terminal, none string, header []string, all []T, row func(T) []string) error {
	if len(all) == 0 {
		t.line("%s", none)
		return nil
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = row(one)
	}
	return t.table(header, rows)
}

// moment is a time as tables show it, to the minute.
func moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// printable is what may be shown in a terminal: labels come from other programs.
func printable(s string) string { return oneline.Printable(s) }

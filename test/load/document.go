package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// document writes what was measured of a part into the document, between its marks, and
// what follows from it into operating.md. All else there is written by hand.
func document(file string, k kept, part string) error {
	var rows []row
	for _, row := range k.Rows {
		if row.Part == part {
			rows = append(rows, row)
		}
	}
	var section strings.Builder
	printRows(&section, k.Parts[part], rows)
	if err := between(file, "load-"+part, section.String()); err != nil {
		return err
	}
	if part == costPart(1) {
		if err := between(file, "load-paper", paper(rows)); err != nil {
			return err
		}
	}
	return operating(file)
}

// between puts a section in the place of what stands between its marks.
func between(file, mark, section string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- measured: "+mark+" -->\n", "<!-- end: "+mark+" -->"
	head, rest, ok1 := bytes.Cut(text, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no place for %s: want %s and %s", file, mark, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(file, bytes.Join([][]byte{head, []byte(begin), []byte(section), []byte(end), tail}, nil), 0o644)
}

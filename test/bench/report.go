package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// document writes what was measured of a part into the document, between its marks, and
// its plot beside it. All else there is written by hand. On a machine that was not quiet
// nothing is written.
func (r *results) document(p part) error {
	if r.docs == "" || !r.about.Quiet {
		return nil
	}
	text, err := os.ReadFile(r.docs)
	if err != nil {
		return err
	}
	begin, end := "<!-- measured: "+p.name+" -->\n", "<!-- end: "+p.name+" -->"
	head, rest, ok1 := bytes.Cut(text, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no place for the part %s: want %s and %s", r.docs, p.name, strings.TrimSpace(begin), end)
	}
	var section strings.Builder
	if slices.ContainsFunc(r.rows(p), row.judged) {
		plot := "performance-" + p.name + ".svg"
		if err := os.WriteFile(filepath.Join(filepath.Dir(r.docs), plot), []byte(plotOf(p, r.rows(p))), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&section, "![What the part %s measured, beside its goals](%s)\n\n", p.name, plot)
	}
	r.print(&section, p)
	return os.WriteFile(r.docs, bytes.Join([][]byte{head, []byte(begin), []byte(section.String()), []byte(end), tail}, nil), 0o644)
}

// plotOf draws every row that has a goal as a bar, by how its ratio compares with the
// goal; the line is the goal itself. What is missed is hollow.
func plotOf(p part, rows []row) string {
	const left, width, high, most = 470, 300, 22, 2.0
	var bars strings.Builder
	y := 40
	for _, row := range rows {
		if row.Goal == nil || *row.Goal == 0 {
			continue
		}
		share := min(row.Ratio / *row.Goal, most) / most * width
		fill, verdict := "#2f6f5e", "met"
		if !row.met() {
			fill, verdict = "none", "missed"
		}
		sign := "≤"
		if row.Better == "higher" {
			sign = "≥"
		}
		name := fmt.Sprintf("%s, %s, beside %s", row.Name, row.Metric, row.Peer)
		fmt.Fprintf(&bars, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.0f" height="12" fill="%s" stroke="#2f6f5e"/><text x="%d" y="%d">%.2f (%s %.2f), %s</text>`+"\n",
			left-8, y+10, html.EscapeString(name), left, y, max(share, 1), fill, left+width+8, y+10, row.Ratio, sign, *row.Goal, verdict)
		y += high
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 %d" font-family="sans-serif" font-size="11">
<rect width="960" height="%d" fill="#fff"/>
<text x="%d" y="20" font-size="13">%s: measured ÷ goal; the line is the goal</text>
%s<line x1="%d" y1="30" x2="%d" y2="%d" stroke="#b03a2e" stroke-width="1.5"/>
</svg>
`, y+12, y+12, left, p.name, bars.String(), left+width/2, left+width/2, y)
}

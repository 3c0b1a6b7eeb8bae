package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// measure is what figures are of.
type measure struct{ part, name, metric, of string }

// results of a run: every round's figure of every measure, in the order in which
// they came up.
type results struct {
	settings
	about   about
	order   []measure
	figures map[measure][]float64
	failed  []error // each an alone
}

// about says under which circumstances a part was measured.
type about struct {
	Began   time.Time `json:"began"`
	Load    string    `json:"load"` // the machine's, before anything was started
	Quiet   bool      `json:"quiet"`
	Rounds  int       `json:"rounds"`
	Span    string    `json:"span"`
	Machine string    `json:"machine"`
}

func newResults(s settings, load string) *results {
	return &results{settings: s, figures: map[measure][]float64{}, about: about{
		Began: time.Now().UTC().Truncate(time.Second), Load: load, Quiet: isQuiet(load), Rounds: s.rounds, Span: s.span.String(), Machine: machine(s),
	}}
}

func (r *results) add(part, name, metric, of string, figure float64) {
	m := measure{part, name, metric, of}
	if _, known := r.figures[m]; !known {
		r.order = append(r.order, m)
	}
	r.figures[m] = append(r.figures[m], figure)
}

// median of the rounds; ok is false for what was not measured.
func (r *results) median(m measure) (figure float64, ok bool) {
	figures := slices.Sorted(slices.Values(r.figures[m]))
	if len(figures) == 0 {
		return 0, false
	}
	return figures[len(figures)/2], true
}

// goal is a ratio of ours to a peer's that is to be reached. Without a peer, limit is
// that of the figure itself.
type goal struct {
	name, metric, ours, peer string
	limit                    float64
	atLeast                  bool // otherwise at most
}

// theGoal stands for the peer where a figure has a limit of its own.
const theGoal = "the goal"

// row compares one figure of ours with one of a peer. Better is "lower" or "higher";
// Goal is the ratio that is to be reached, where there is one.
type row struct {
	Part   string   `json:"part"`
	Name   string   `json:"name"`
	Metric string   `json:"metric"`
	Who    string   `json:"who"` // of ours
	Ours   float64  `json:"ours"`
	Peer   string   `json:"peer"`
	Theirs float64  `json:"theirs"`
	Ratio  float64  `json:"ratio"`
	Goal   *float64 `json:"goal"`
	Better string   `json:"better"`
}

// met reports whether a row reaches its goal.
// judged says whether there is a goal.
func (r row) judged() bool { return r.Goal != nil }

func (r row) met() bool {
	if r.Better == "higher" {
		return r.Ratio >= *r.Goal
	}
	return r.Ratio <= *r.Goal
}

// rates are the metrics of which more is better.
func isRate(metric string) bool {
	return strings.HasSuffix(metric, "/s") || strings.HasSuffix(metric, "a second")
}

func isOurs(name string) bool { return strings.HasPrefix(name, "Porchlight") }

// rows are every figure of ours beside every peer's of the same, those with a goal
// first, in the order of the goals.
func (r *results) rows(p part) (rows []row) {
	for _, g := range append(p.goals, r.against(p)...) {
		if row, ok := r.row(p, g); ok {
			row.Goal = &g.limit
			if g.peer == "" {
				one := 1.
				row.Goal = &one
			}
			rows = append(rows, row)
		}
	}
	for _, ours := range r.order {
		for _, theirs := range r.order {
			same := ours.part == p.name && theirs.part == p.name && ours.name == theirs.name && ours.metric == theirs.metric
			if !same || !isOurs(ours.of) || isOurs(theirs.of) {
				continue
			}
			g := goal{name: ours.name, metric: ours.metric, ours: ours.of, peer: theirs.of, atLeast: isRate(ours.metric)}
			known := slices.ContainsFunc(p.goals, func(had goal) bool {
				return had.name == g.name && had.metric == g.metric && had.ours == g.ours && had.peer == g.peer
			})
			if row, ok := r.row(p, g); ok && !known {
				rows = append(rows, row)
			}
		}
	}
	return append(rows, r.alone(p, rows)...)
}

// alone are the figures of ours that are compared with nobody's.
func (r *results) alone(p part, compared []row) (rows []row) {
	for _, m := range r.order {
		if m.part != p.name || !isOurs(m.of) || slices.ContainsFunc(compared, func(had row) bool {
			return had.Name == m.name && had.Metric == m.metric && had.Who == m.of
		}) {
			continue
		}
		better := "lower"
		if isRate(m.metric) {
			better = "higher"
		}
		ours, _ := r.median(m)
		rows = append(rows, row{Part: p.name, Name: m.name, Metric: m.metric, Who: m.of, Ours: ours, Better: better})
	}
	return rows
}

// against are the goals beside an earlier version: to be no slower.
func (r *results) against(p part) (goals []goal) {
	for _, m := range r.order {
		before := strings.Replace(m.of, "Porchlight", "Porchlight before", 1)
		if _, measured := r.figures[measure{p.name, m.name, m.metric, before}]; m.part != p.name || before == m.of || !measured {
			continue
		}
		g := goal{name: m.name, metric: m.metric, ours: m.of, peer: before, limit: 1.05}
		if isRate(m.metric) {
			g.limit, g.atLeast = .95, true
		}
		goals = append(goals, g)
	}
	return goals
}

func (r *results) row(p part, g goal) (row, bool) {
	ours, ok1 := r.median(measure{p.name, g.name, g.metric, g.ours})
	theirs, ok2 := r.median(measure{p.name, g.name, g.metric, g.peer})
	peer := g.peer
	if peer == "" {
		peer, theirs, ok2 = theGoal, g.limit, true
	}
	if !ok1 || !ok2 || theirs == 0 {
		return row{}, false
	}
	better := "lower"
	if g.atLeast {
		better = "higher"
	}
	return row{p.name, g.name, g.metric, g.ours, ours, peer, theirs, ours / theirs, nil, better}, true
}

// kept is out/bench/results.json.
type kept struct {
	Quiet bool             `json:"quiet"` // of every part
	Parts map[string]about `json:"parts"`
	Rows  []row            `json:"rows"`
}

// keep puts the rows of a whole part in the place of what an earlier run left of it,
// and writes the document if the machine was quiet.
func (r *results) keep(p part) error {
	if r.out == "" || !r.whole() {
		return nil
	}
	var k kept
	raw, err := os.ReadFile(r.out)
	if err == nil {
		err = json.Unmarshal(raw, &k)
	} else if errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(filepath.Dir(r.out), 0o755)
	}
	if err != nil {
		return err
	}
	if k.Parts == nil {
		k.Parts = map[string]about{}
	}
	k.Rows = append(slices.DeleteFunc(k.Rows, func(had row) bool { return had.Part == p.name }), r.rows(p)...)
	k.Parts[p.name] = r.about
	k.Quiet = true
	for _, about := range k.Parts {
		k.Quiet = k.Quiet && about.Quiet
	}
	if raw, err = json.MarshalIndent(k, "", "\t"); err != nil {
		return err
	}
	if err := os.WriteFile(r.out, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return r.document(p)
}

// print writes two tables in Markdown: the figures, and ours divided by a peer's
// beside the goals, where there are any.
func (r *results) print(w io.Writer, p part) {
	fmt.Fprintf(w, "%s; load average %s before the start; %s.\n\n", r.about.Began.Format("2 January 2006, 15:04 UTC"), r.about.Load, r.about.Machine)
	r.printFigures(w, p)
	if slices.ContainsFunc(r.rows(p), row.judged) {
		fmt.Fprint(w, "\n| | measured | goal | |\n|---|---|---|---|\n")
	}
	for _, row := range r.rows(p) {
		if !row.judged() {
			continue
		}
		sign, verdict := "≤", "missed"
		if row.Better == "higher" {
			sign = "≥"
		}
		if row.met() {
			verdict = "met"
		}
		if row.Peer == theGoal {
			fmt.Fprintf(w, "| %s, %s: %s | %s | %s %s | %s |\n", row.Name, row.Metric, row.Who, short(row.Ours), sign, short(row.Theirs), verdict)
		} else {
			fmt.Fprintf(w, "| %s, %s: %s ÷ %s | %.2f | %s %.2f | %s |\n", row.Name, row.Metric, row.Who, row.Peer, row.Ratio, sign, *row.Goal, verdict)
		}
	}
	fmt.Fprintln(w)
	if !r.about.Quiet {
		fmt.Fprintf(os.Stderr, "not quiet: the load average was %s before the start, and is to be at most %v\n", r.about.Load, quietLoad)
	}
	if r.rounds < 3 {
		fmt.Fprintln(os.Stderr, "fewer than three rounds: take the figures for a glance")
	}
}

func (r *results) printFigures(w io.Writer, p part) {
	var names, works []string
	for _, m := range r.order {
		if m.part != p.name {
			continue
		}
		if !slices.Contains(names, m.of) {
			names = append(names, m.of)
		}
		if work := m.name + "\x00" + m.metric; !slices.Contains(works, work) {
			works = append(works, work)
		}
	}
	fmt.Fprintf(w, "| | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, work := range works {
		name, metric, _ := strings.Cut(work, "\x00")
		fmt.Fprintf(w, "| %s, %s |", name, metric)
		for _, of := range names {
			if figure, ok := r.median(measure{p.name, name, metric, of}); ok {
				fmt.Fprintf(w, " %s |", short(figure))
			} else {
				fmt.Fprint(w, " – |")
			}
		}
		fmt.Fprintln(w)
	}
}

// short prints a figure with three digits or all of its whole part.
func short(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.2f", f)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is one figure. Goal is what it is to reach, where there is something.
type row struct {
	Part   string   `json:"part"`
	Name   string   `json:"name"`
	Metric string   `json:"metric"`
	Value  float64  `json:"value"`
	Goal   *float64 `json:"goal"`
	Better string   `json:"better"` // lower or higher
}

func (r row) met() bool {
	if r.Better == "higher" {
		return r.Value >= *r.Goal
	}
	return r.Value <= *r.Goal
}

// about says under which circumstances a part was measured.
type about struct {
	Began   time.Time `json:"began"`
	Load    string    `json:"load"` // the machine's, before anything was started
	Quiet   bool      `json:"quiet"`
	Quick   bool      `json:"quick"`
	Whole   bool      `json:"whole"` // nothing failed
	Machine string    `json:"machine"`
}

// kept is out/load/results.json.
type kept struct {
	Quiet bool             `json:"quiet"` // of every part
	Parts map[string]about `json:"parts"`
	Rows  []row            `json:"rows"`
}

// results are the rows of a run.
type results struct {
	settings
	about about
	part  string
	rows  *[]row
	bare  bool // goals are left out
}

func newResults(ctx context.Context, s settings) *results {
	load := awaitQuiet(ctx, s.wait)
	return &results{settings: s, rows: new([]row), about: about{
		Began: time.Now().UTC().Truncate(time.Second), Load: load, Quiet: isQuiet(load), Quick: s.quick, Machine: machine(),
	}}
}

// of is where a part writes its rows.
func (r *results) of(part string) *results {
	own := *r
	own.part = part
	return &own
}

// add notes a figure of which less is better.
func (r *results) add(name, metric string, value float64) { r.note(name, metric, value, nil, "lower") }

// atMost and atLeast note one with a goal.
func (r *results) atMost(name, metric string, value, goal float64) {
	r.note(name, metric, value, &goal, "lower")
}

func (r *results) atLeast(name, metric string, value, goal float64) {
	r.note(name, metric, value, &goal, "higher")
}

// judging notes goals, or leaves them out: a few computers share what a node costs alone.
func (r *results) judging(so bool) *results {
	own := *r
	own.bare = !so
	return &own
}

func (r *results) note(name, metric string, value float64, goal *float64, better string) {
	if r.bare {
		goal = nil
	}
	if r.verbose {
		fmt.Fprintf(os.Stderr, "  %s, %s: %s\n", name, metric, short(value))
	}
	*r.rows = append(*r.rows, row{r.part, name, metric, value, goal, better})
}

// get is a figure that was noted, of any part.
func get(rows []row, name, metric string) (float64, bool) {
	for _, row := range rows {
		if row.Name == name && row.Metric == metric {
			return row.Value, true
		}
	}
	return 0, false
}

// keep prints a part, puts its rows in the place of what an earlier run left of it, and
// writes the document if the machine was quiet and nothing was made small.
func (r *results) keep(part string, whole bool) error {
	rows := slices.DeleteFunc(slices.Clone(*r.rows), func(had row) bool { return had.Part != part })
	is := r.about
	is.Whole = whole
	printRows(os.Stdout, is, rows)
	if part == costPart(1) {
		fmt.Println(paper(rows))
	}
	if !is.Quiet {
		fmt.Fprintf(os.Stderr, "not quiet: the load average was %s before the start, and is to be at most %v\n", is.Load, quietLoad)
	}
	if r.out == "" {
		return nil
	}
	k, err := readKept(r.out)
	if err != nil {
		return err
	}
	k.Rows = append(slices.DeleteFunc(k.Rows, func(had row) bool { return had.Part == part }), rows...)
	k.Parts[part] = is
	k.Quiet = true
	for _, about := range k.Parts {
		k.Quiet = k.Quiet && about.Quiet
	}
	raw, err := json.MarshalIndent(k, "", "\t")
	if err == nil {
		err = os.WriteFile(r.out, append(raw, '\n'), 0o644)
	}
	if err == nil && r.docs != "" && is.Quiet && !is.Quick && whole {
		err = document(r.docs, k, part)
	}
	return err
}

func readKept(file string) (k kept, err error) {
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &k)
	} else if errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if k.Parts == nil {
		k.Parts = map[string]about{}
	}
	return k, err
}

// printRows writes a table: a line for each name, and the goals below.
func printRows(w io.Writer, is about, rows []row) {
	fmt.Fprintf(w, "%s; load average %s before the start; %s.\n\n", is.Began.Format("2 January 2006, 15:04 UTC"), is.Load, is.Machine)
	fmt.Fprint(w, "| | | measured | goal | |\n|---|---|---|---|---|\n")
	for i, row := range rows {
		name := row.Name
		if i > 0 && rows[i-1].Name == name {
			name = ""
		}
		goal, verdict := "", ""
		if row.Goal != nil {
			goal, verdict = "≤ "+short(*row.Goal), "missed"
			if row.Better == "higher" {
				goal = "≥ " + short(*row.Goal)
			}
			if row.met() {
				verdict = "met"
			}
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", name, row.Metric, short(row.Value), goal, verdict)
	}
	fmt.Fprintln(w)
}

// short prints a figure with three digits or all of its whole part.
func short(f float64) string {
	switch {
	case f == float64(int64(f)) || f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= .1:
		return fmt.Sprintf("%.2f", f)
	default:
		return strconv.FormatFloat(f, 'g', 2, 64)
	}
}

// quietLoad is the load average up to which a machine counts as quiet.
const quietLoad = .3

// awaitQuiet waits for at most so long until the machine is quiet, and returns its load
// averages.
func awaitQuiet(ctx context.Context, atMost time.Duration) (load string) {
	for end := time.Now().Add(atMost); ; {
		raw, _ := os.ReadFile("/proc/loadavg") // where it is not, the machine is not called quiet
		f := strings.Fields(string(raw))
		load = strings.Join(f[:min(3, len(f))], " ")
		if isQuiet(load) || time.Now().After(end) || rest(ctx, 2*time.Second) != nil {
			return load
		}
	}
}

func isQuiet(load string) bool {
	first, _, _ := strings.Cut(load, " ")
	f, err := strconv.ParseFloat(first, 64)
	return err == nil && f <= quietLoad
}

// machine names where was measured.
func machine() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease") // empty where it is not known
	postgres := "PostgreSQL not known"
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(found) > 0 {
		if out, err := exec.Command(found[len(found)-1], "--version").Output(); err == nil {
			postgres = strings.TrimSpace(string(out))
		}
	}
	return fmt.Sprintf("%d cores, kernel %s, %s, %s", runtime.NumCPU(), strings.TrimSpace(string(release)), runtime.Version(), postgres)
}

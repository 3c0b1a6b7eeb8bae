package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// operating writes what operators choose machines by into operating.md, one
// folder above the document, from the document's tables of every part: the two say the
// same.
func operating(file string) error {
	rows, err := tables(file)
	if err != nil {
		return err
	}
	paper := filepath.Join(filepath.Dir(file), "..", "operating.md")
	return errors.Join(between(paper, "load-sizing", sizing(rows)), between(paper, "load-failover", failover(rows)))
}

// tables are the rows of all tables of the load model in the document, as they are printed.
func tables(file string) (rows []row, err error) {
	text, err := os.ReadFile(file)
	part, name := "", ""
	for line := range strings.Lines(string(text)) {
		if mark, begins := strings.CutPrefix(line, "<!-- measured: load-"); begins {
			part = strings.TrimSuffix(strings.TrimSpace(mark), " -->")
		} else if strings.HasPrefix(line, "<!-- end: ") {
			part = ""
		}
		cells := strings.Split(line, "|")
		if part == "" || len(cells) != 7 {
			continue
		}
		if said := strings.TrimSpace(cells[1]); said != "" {
			name = said
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(cells[3]), 64); err == nil {
			rows = append(rows, row{Part: part, Name: name, Metric: strings.TrimSpace(cells[2]), Value: value})
		}
	}
	return rows, err
}

// span is from where to where a figure goes on one node and several, by what the row's
// name begins with, in a unit of so many of the row's.
func span(rows []row, name, metric string, unit float64) string {
	low, high, found := 0., 0., false
	for _, row := range rows {
		if strings.HasPrefix(row.Part, "cost-") && row.Metric == metric && strings.HasPrefix(row.Name, name) {
			if !found {
				low, high, found = row.Value, row.Value, true
			}
			low, high = min(low, row.Value), max(high, row.Value)
		}
	}
	switch from, to := digits(low/unit), digits(high/unit); {
	case !found:
		return "not measured"
	case from == to:
		return from
	default:
		return from + " to " + to
	}
}

// digits prints a figure with two digits or all of its whole part.
func digits(f float64) string {
	if f >= 10 {
		return fmt.Sprintf("%.0f", f)
	}
	return strconv.FormatFloat(f, 'g', 2, 64)
}

// sizing is the table by which an operator chooses a machine.
func sizing(rows []row) string {
	const visit, gigabyte, signIn, token, thousand = "a visit, ", "a GB to visitors, ", "a sign-in by mail, ", "a token refreshed, ", "1000 computers asleep, "
	return fmt.Sprintf(`| | grows with | look at |
|---|---|---|
| processor | visits (%s ms each), bytes (%s s a GB), sign-ins (%s ms), refreshed tokens (%s ms) | `+"`rate(process_cpu_seconds_total[5m])`"+` |
| memory | computers that are there: of a thousand %s KB each, of ten thousand %s | `+"`process_resident_memory_bytes`"+` |
| open files | computers (1 to 6 each) and visitors (2 each) | `+"`process_open_fds` beside `process_max_fds`"+` |
| PostgreSQL | sign-ins (%s statements, %s ms of its processor), refreshed tokens (%s and %s), changes, and everybody coming back at once | `+"`porchlight_store_waiting`"+` |
`,
		span(rows, visit, eachMicro, 1000), span(rows, gigabyte, perGB, 1000), span(rows, signIn, eachMicro, 1000), span(rows, token, eachMicro, 1000),
		span(rows, thousand, eachMemory, 1), span(rows, "10000 computers asleep, ", eachMemory, 1),
		span(rows, signIn, eachAsked, 1), span(rows, signIn, eachMicroDB, 1000), span(rows, token, eachAsked, 1), span(rows, token, eachMicroDB, 1000))
}

// failover says how long changes waited for a new primary.
func failover(rows []row) string {
	order, _ := get(rows, "a Patroni switchover", longestPause)
	death, _ := get(rows, "the primary's machine killed (kill -9)", longestPause)
	return fmt.Sprintf(`With these settings a switchover kept changes waiting for %s s at most, and a primary whose machine died for %s s.
`, digits(order), digits(death))
}

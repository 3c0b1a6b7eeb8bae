package main

import (
	"fmt"
	"math"
	"strings"
)

// What the paper takes a computer's day to be, and how many of them come in the busiest
// hour as a multiple of the mean. They are guesses of a personal computer with a family's
// apps on it; another guess is another constant.
const (
	visitsADay    = 200.
	gigabytesADay = .5
	refreshesADay = 48.
	signInsADay   = .5
	changesADay   = 20. // to who may open what, or to where the computer is
	busiest       = 3.
	secondsADay   = 24 * 3600.
)

// And what machines are: nodes and a database whose cores are half used at most.
const (
	nodeCores    = 2.
	nodeGB       = 4.
	nodeMaxFiles = 220_000.
	baseCores    = 16.
	halfUsed     = .5
	// beatsASec is how often every node tells each other one how much it has said
	// (control/news).
	beatsASec = 1.
	// oneKnown is what every node keeps of a computer that is anywhere, in KB: the
	// interest in its name, measured once with an embedded message server.
	oneKnown = 1.3
)

// each is what one computer uses, with its part of the day's work.
type each struct {
	cpu, memory, files        float64 // of a node: ms/s, KB
	base, statements, written float64 // of the database: ms/s, and a second
	messages                  float64 // a second, of all nodes together for each other node
}

// eachOf reads the rows of the largest number of computers that was all there on one node.
func eachOf(rows []row) (e each, computers float64, ok bool) {
	name, none := "", asleepName(0, 1)
	for _, row := range rows {
		n := 0.
		if c, err := fmt.Sscanf(row.Name, "%g computers asleep, 1 node", &n); c == 1 && err == nil && row.Metric == there && row.Value >= n && n > computers {
			computers, name = n, row.Name
		}
	}
	if computers == 0 {
		return e, 0, false
	}
	of := func(name, metric string) float64 {
		v, found := get(rows, name, metric)
		ok = ok && found
		return v
	}
	ok = true
	more := func(metric string) float64 { return max(0, of(name, metric)-of(none, metric)) / computers }
	e = each{cpu: max(0, of(name, eachCPU)), memory: of(name, eachMemory), files: of(name, eachFiles),
		base: more(baseCPU), statements: more(statements), written: more(rowsSaved)}
	for work, times := range map[string]float64{"a visit": visitsADay, "a token refreshed": refreshesADay, "a sign-in by mail": signInsADay} {
		times *= busiest / secondsADay
		e.cpu += times * of(work+", 1 node", eachMicro) / 1000
		e.base += times * of(work+", 1 node", eachMicroDB) / 1000
		e.statements += times * of(work+", 1 node", eachAsked)
	}
	e.cpu += busiest / secondsADay * gigabytesADay * of("a GB to visitors, 1 node", perGB)
	e.messages = busiest / secondsADay * changesADay
	return e, computers, ok
}

// need is for how many nodes, or cores, one thing is the reason.
type need struct {
	why string
	n   float64
}

// nodes are those that n computers need, and why not fewer.
func (e each) nodes(n float64) need {
	most := need{"processor time", n * e.cpu / (nodeCores * 1000 * halfUsed)}
	memory := nodeGB*halfUsed - n*oneKnown/1e6
	for _, other := range []need{
		{"memory", n * e.memory / 1e6 / max(memory, 1e-9)},
		{"open files", n * e.files / nodeMaxFiles / halfUsed},
	} {
		if other.n > most.n {
			most = other
		}
	}
	most.n = math.Ceil(most.n)
	return most
}

// messages between nodes a second: each hears of every change at the others, and of each
// of them a beat.
func messages(changes, nodes float64) float64 { return (changes + nodes*beatsASec) * max(0, nodes-1) }

// cores of the database that n computers need.
func (e each) cores(n float64) float64 { return math.Ceil(n * e.base / 1000 / halfUsed) }

// paper carries what was measured to a million computers.
func paper(rows []row) string {
	e, measured, ok := eachOf(rows)
	if !ok {
		return "Not measured yet: the part cost has to be whole.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `Measured with %.0f computers on one node, and multiplied. Each takes %s CPU ms/s, %s KB and %s files of a node. Of PostgreSQL it
takes %s CPU ms/s and %s statements/s. That is a sleeping computer and its part of the busiest hour, %.0f times the mean of a day of %.0f visits, %s GB, %.0f refreshed
tokens and %s sign-ins. A node has %.0f cores, %.0f GB and %.0f files, and half of each is used.

| computers | nodes | because of | PostgreSQL, cores | statements/s | rows written/s | messages between nodes/s |
|---|---|---|---|---|---|---|
`, measured, short(e.cpu), short(e.memory), short(e.files), short(e.base), short(e.statements),
		busiest, visitsADay, short(gigabytesADay), refreshesADay, short(signInsADay), nodeCores, nodeGB, nodeMaxFiles)
	for _, n := range []float64{10_000, 100_000, 1_000_000, 10_000_000} {
		nodes := e.nodes(n)
		count, said := fmt.Sprintf("%.0f", nodes.n), fmt.Sprintf("%.0f", messages(n*e.messages, nodes.n))
		if n*oneKnown/1e6 >= nodeGB*halfUsed {
			count, said = "no number", "–" // each keeps where all the computers are
		}
		fmt.Fprintf(&b, "| %.0f | %s | %s | %.0f | %.0f | %.0f | %s |\n",
			n, count, nodes.why, e.cores(n), n*e.statements, n*e.written, said)
	}
	first, then := e.breaks()
	fmt.Fprintf(&b, `
What breaks first is %s, at %s computers. Next is %s, at %s. More nodes do not help with either: every node asks the one
database and hears of every computer. The next change is cells: an account belongs to a cell, which is a database and its
nodes, and a directory that rarely changes says which (account → cell). A name leads to its cell by DNS or by the
directory, nodes of different cells say nothing to each other, and each line above holds for a cell: 10,000,000 computers
are %.0f of them. [test/cells](../../test/cells/cells.go) is a model of it, in which accounts move while they are visited.
`, first.why, thousands(first.n), then.why, thousands(then.n), math.Ceil(10_000_000/math.Min(first.n, then.n)))
	return b.String()
}

// breaks are the two things that no further node helps with, by the number of computers
// at which they end.
func (e each) breaks() (first, then need) {
	first = need{fmt.Sprintf("the processor time of a PostgreSQL with %.0f cores", baseCores), baseCores * 1000 * halfUsed / max(e.base, 1e-9)}
	then = need{"the memory in which every node keeps where each computer is", nodeGB * halfUsed * 1e6 / oneKnown}
	if then.n < first.n {
		first, then = then, first
	}
	return first, then
}

// thousands is a number to two digits.
func thousands(n float64) string {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(n))-1))
	return fmt.Sprintf("%.0f", math.Round(n/unit)*unit)
}

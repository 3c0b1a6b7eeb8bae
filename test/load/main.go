// Command load measures what many computers cost a control plane of one or more nodes,
// and what they meet when something of it dies.
//
// The nodes are real processes of porchlight-control on a real PostgreSQL. The computers
// are simulated, in processes of their own, because a process may open only so many
// files: each has the agent's own tunnel and sync, an app that answers a few words, and
// an address of its own among 127.0.0.0/8. Only nodes and database count.
//
//	go run ./test/load [-part cost] [-quick] [-computers 1,10,100] [-nodes 1,2,3]
//
// `make load` runs all parts and keeps their rows in out/load/results.json; on a quiet
// machine it writes docs/measured/load.md. README.md says how to use one part alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"porchlight/control/controlapi/tunnelwire"
)

// settings of a run.
type settings struct {
	part      string
	quick     bool
	computers []int         // of the part cost, one after the other
	clusters  []int         // of the part cost: how many nodes
	most      int           // computers of the part many
	herd      int           // computers of the part herd
	bulk      uint64        // bytes of one download
	distance  time.Duration // of the database in the part herd; 0 for both
	window    time.Duration // for which something is looked at; unless given, whole beats of all who sleep
	patience  time.Duration // for all computers to be there
	before    string        // of the part upgrade: the commit that computers and nodes are of first
	programs  string        // where porchlight-control is; empty: it is built
	out, docs string        // where rows and tables go; empty for nowhere
	wait      time.Duration // for the machine to become quiet
	verbose   bool
}

// part is one thing that is measured.
type part struct {
	name string
	kept string // what its rows and its table are kept as: the cost of each cluster as its own
	long bool   // only run where it is named
	run  func(context.Context, settings, *results) error
}

func parts(clusters ...int) (all []part) {
	for _, n := range clusters {
		all = append(all, part{name: "cost", kept: costPart(n), run: func(ctx context.Context, s settings, r *results) error { return cost(ctx, s, r, n) }})
	}
	for _, p := range []part{
		{name: "herd", run: herd}, {name: "outage", run: outage}, {name: "withdrawal", run: withdrawal},
		{name: "pass", run: pass}, {name: "small", run: inAFile}, {name: "ha", run: ha}, {name: "upgrade", run: upgrade},
		{name: "many", run: many, long: true},
	} {
		p.kept = p.name
		all = append(all, p)
	}
	return all
}

func costPart(nodes int) string { return fmt.Sprint("cost-", nodes) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv(roleVariable) != "" {
		if err := beComputers(ctx, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "load: computers:", err)
			os.Exit(1)
		}
		return
	}
	s, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, s)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.StringVar(&s.part, "part", "all", "all, or one of "+strings.Join(names(), ", "))
	f.BoolVar(&s.quick, "quick", false, "small numbers and short looks: five minutes for all parts")
	f.Func("computers", "cost: how many computers, as 1,10,100", numbers(&s.computers))
	f.Func("nodes", "cost: how many nodes, as 1,2,3", numbers(&s.clusters))
	f.IntVar(&s.herd, "herd", 0, "herd: how many computers come back")
	f.DurationVar(&s.distance, "away", 0, "herd: how far the database is away, in round trips; 10 ms and 50 ms unless given, and 10 ms with -quick")
	f.StringVar(&s.before, "before", "c3b4a6fe", "upgrade: the commit of before 0.1.0 that computers and nodes are of")
	f.DurationVar(&s.window, "window", 0, "for how long something is looked at")
	f.DurationVar(&s.patience, "patience", 0, "how long computers may take to be there")
	f.StringVar(&s.programs, "programs", "", "directory with porchlight-control; empty to build it")
	f.StringVar(&s.out, "out", "", "write the rows to this file")
	f.StringVar(&s.docs, "docs", "", "write the tables of a quiet machine to this document")
	f.DurationVar(&s.wait, "wait", 0, "how long to wait for the machine to become quiet")
	f.IntVar(&s.most, "most", manyComputers, "the number of computers of the part many")
	f.BoolVar(&s.verbose, "v", false, "say what is going on")
	err := f.Parse(args)
	if err == nil && s.most < 1 {
		err = errors.New("-most is at least 1")
	}
	return s.complete(), err
}

// complete fills in what was not given.
func (s settings) complete() settings {
	full := settings{computers: []int{1, 10, 100, 1000, 10_000}, clusters: []int{1, 2, 3}, herd: 3000, bulk: 256 << 20, window: 2 * tunnelwire.BeatAsleep, patience: 3 * time.Minute}
	if s.quick { // one cluster, and one way to the database: the others are as long again
		full = settings{computers: []int{1, 100}, clusters: []int{1}, herd: 200, distance: 10 * time.Millisecond, bulk: 32 << 20, window: 8 * time.Second, patience: time.Minute}
	}
	if s.distance == 0 {
		s.distance = full.distance
	}
	if s.computers == nil {
		s.computers = full.computers
	}
	if s.clusters == nil {
		s.clusters = full.clusters
	}
	if s.herd == 0 {
		s.herd = full.herd
	}
	s.bulk = full.bulk
	if s.window == 0 {
		s.window = full.window
	}
	if s.patience == 0 {
		s.patience = full.patience
	}
	return s
}

func numbers(into *[]int) func(string) error {
	return func(value string) error {
		for word := range strings.SplitSeq(value, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number of them", word)
			}
			*into = append(*into, n)
		}
		slices.Sort(*into)
		*into = slices.Compact(*into)
		return nil
	}
}

func names() (names []string) {
	for _, p := range parts(1) {
		names = append(names, p.name)
	}
	return names
}

func run(ctx context.Context, s settings) error {
	if s.part != "all" && !slices.Contains(names(), s.part) {
		return fmt.Errorf("there is no part %q; say all or one of %s", s.part, strings.Join(names(), ", "))
	}
	raiseFiles()
	r := newResults(ctx, s)
	var failed error
	for _, p := range parts(s.clusters...) {
		if s.part != p.name && (s.part != "all" || p.long) || ctx.Err() != nil {
			continue
		}
		began := time.Now()
		err := p.run(ctx, s, r.of(p.kept))
		if err != nil {
			err = fmt.Errorf("%s: %w", p.kept, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %.0f s\n", p.kept, time.Since(began).Seconds())
		failed = errors.Join(failed, err, r.keep(p.kept, err == nil))
	}
	return errors.Join(failed, ctx.Err())
}

// raiseFiles gives this process and those it starts all the files they may have.
func raiseFiles() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) // without the right to it the limit stays
	}
}

// Command bench measures Porchlight beside its peers, on one machine, in one run.
//
// Peers take turns at every piece of work in every round, so that whatever else
// the machine does meets all of them, and each figure is the median of the rounds.
// The steady one is the processor time of the processes under measurement for a
// unit of work; rates are bounded here by the load, which shares the cores.
//
//	go run ./test/bench [-part agent] [-rounds 5] [-span 1s] [-only requests,latency] [-contenders Porchlight] [-before PROGRAM]
//
// `make bench` installs what is compared with and runs all parts. A run of whole
// parts leaves its rows in out/bench/results.json, and on a quiet machine writes
// docs/measured/bench.md. The same program, called with a role, is the app, an
// authoriser or our own side, each in a process of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// host is what visitors ask for; nothing resolves it.
const (
	rootHost = "maya.porch.test"
	appName  = "notes"
	host     = appName + "." + rootHost
	authHost = "control.porch.test" // of the relay
)

// settings of a run.
type settings struct {
	part                     string
	rounds                   int
	span                     time.Duration // of one measurement of load
	settle                   time.Duration // how long connections are opened before measuring begins
	rate                     int           // requests a second where latency is measured
	connections              int
	handshakes               int
	idle                     int            // connections at rest
	bulk                     int64          // bytes of one download
	grants                   int            // of others in a control plane\'s store
	accounts                 int            // in a store that operators ask
	signIns                  int            // people who sign in
	sockets, resting, clicks int            // of the owner\'s click: what it is measured among, and how often
	programs                 string         // where ours are
	tools                    string         // where the peers that we build are
	profile                  string         // where our processes write their profiles; empty for none
	only                     string         // groups of work, joined by commas; empty for all
	contenders               *regexp.Regexp // what the names of those measured match; nil for all
	before                   string         // this program as an earlier version built it; empty for none
	verbose                  bool
	tiny                     bool          // for the test of the parts: no browser is started
	out                      string        // where results.json goes; empty for nowhere
	docs                     string        // the document to write on a quiet machine; empty for none
	wait                     time.Duration // for the machine to become quiet
}

func (s settings) wants(group string) bool {
	return s.only == "" || strings.Contains(","+s.only+",", ","+group+",")
}

// measures reports whether a contender is measured.
func (s settings) measures(name string) bool {
	return s.contenders == nil || s.contenders.MatchString(name)
}

// whole reports whether everything is measured, so that the run may replace what
// an earlier one has left.
func (s settings) whole() bool {
	return s.only == "" && s.contenders == nil && s.before == ""
}

// tool is a peer of those that we build, or the one that is installed.
func (s settings) tool(name string) string {
	if built := filepath.Join(s.tools, name); isFile(built) {
		return built
	}
	return name
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(ctx, role, os.Args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", role, err)
			os.Exit(1)
		}
		return
	}
	s := full()
	flag.StringVar(&s.part, "part", s.part, "all, or one of agent, relay, tunnel, control, sign-in, desktop, growth")
	flag.IntVar(&s.rounds, "rounds", s.rounds, "how often each peer takes its turn")
	flag.DurationVar(&s.span, "span", s.span, "how long one measurement of load lasts")
	flag.IntVar(&s.rate, "rate", s.rate, "requests a second where latency is measured")
	flag.IntVar(&s.connections, "connections", s.connections, "visitors' connections")
	flag.IntVar(&s.handshakes, "handshakes", s.handshakes, "handshakes of one measurement")
	flag.StringVar(&s.tools, "tools", s.tools, "where the peers are that make bench builds")
	flag.StringVar(&s.programs, "programs", s.programs, "where porchlight-desktop and porchlight are")
	flag.StringVar(&s.profile, "profile", "", "have our processes write their profiles here: a directory, or a file for one of the agent's")
	flag.StringVar(&s.only, "only", "", "measure only these groups, joined by commas, such as requests, sizes, posts, websockets, latency, handshakes, bulk, idle, clicks, dark")
	flag.Func("contenders", "measure only those whose names match this regular expression", func(value string) (err error) {
		s.contenders, err = regexp.Compile(value)
		return err
	})
	flag.StringVar(&s.before, "before", "", "measure the proxy of an earlier version, too: this program, built from that version")
	flag.BoolVar(&s.verbose, "v", false, "print each measurement")
	flag.StringVar(&s.out, "out", "", "write the rows of whole parts to this file")
	flag.StringVar(&s.docs, "docs", "", "write whole parts of a quiet machine to this document")
	flag.DurationVar(&s.wait, "wait", 0, "how long to wait for the machine to become quiet")
	flag.Parse()
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// full are the settings of make bench.
func full() settings {
	return settings{
		part: "agent", rounds: 5, span: 800 * time.Millisecond, settle: 200 * time.Millisecond, rate: 2000, connections: 48, handshakes: 1000, idle: 1000,
		bulk: 256 << 20, grants: 50_000, accounts: 100_000, sockets: 4000, resting: 10_000, clicks: 100, signIns: 400, tools: "out/bench", programs: "bin",
	}
}

func run(ctx context.Context, s settings, out *os.File) error {
	chosen, err := chosenParts(s.part)
	if err != nil {
		return err
	}
	// Ten thousand visitors take more files than some systems give; without the right to
	// raise that the limit stays.
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1 << 16, Max: 1 << 16})
	dir, err := os.MkdirTemp("", "porchlight-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeCertificate(dir); err != nil {
		return err
	}
	r := newResults(s, awaitQuiet(ctx, s.wait))
	var failed error
	for _, p := range chosen {
		err := p.play(ctx, s, dir, r)
		if err == nil {
			r.print(out, p)
			err = r.keep(p) // whatever becomes of the others
		}
		failed = errors.Join(failed, err)
	}
	return errors.Join(append(r.failed, failed)...)
}

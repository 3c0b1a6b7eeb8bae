// Command bench puts the proxy beside its peers: nginx without authentication,
// Caddy without it and with forward_auth, all in front of one small app, on one
// machine, in one run.
//
// Peers take turns in every round, so that whatever else the machine does meets
// all of them, and each figure is the median of the rounds. The steady one is
// CPU time of the proxying processes for a unit of work; requests a second are
// bounded here by the load generator and the app, which share the cores.
//
//	go run ./test/bench [-rounds 3] [-span 3s] [-only requests,latency,handshakes,bulk] [-before PROGRAM]
//
// `make bench` installs nginx and h2load from Debian, builds Caddy from the module
// beside this file, and runs this. The same program, called with a role, is
// the app, Caddy's authoriser and our proxy, each in a process of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// host is what visitors ask for; nothing resolves it.
const (
	rootHost = "maya.porch.test"
	appName  = "notes"
	host     = appName + "." + rootHost
)

// bulkSize is one download of the bulk measurement, in bytes.
const bulkSize = 256 << 20

// settings of a run.
type settings struct {
	rounds      int
	span        time.Duration // of one measurement of load
	rate        int           // requests a second where latency is measured
	connections int
	handshakes  int
	caddy       string // the program
	profile     string // where our proxy writes its CPU profile; empty for none
	only        string // measurements, joined by commas; empty for all
	contenders  string // what the names of those measured contain; empty for all
	before      string // this program as an earlier version built it; empty for none
}

func (s settings) wants(measurement string) bool {
	return s.only == "" || strings.Contains(","+s.only+",", ","+measurement+",")
}

func (s settings) chosen(all ...contender) []contender {
	return slices.DeleteFunc(all, func(c contender) bool { return c.addr == "" || !strings.Contains(c.name, s.contenders) })
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
	var s settings
	flag.IntVar(&s.rounds, "rounds", 3, "how often each peer takes its turn")
	flag.DurationVar(&s.span, "span", 3*time.Second, "how long one measurement of load lasts")
	flag.IntVar(&s.rate, "rate", 2000, "requests a second where latency is measured")
	flag.IntVar(&s.connections, "connections", 48, "visitors' connections")
	flag.IntVar(&s.handshakes, "handshakes", 1000, "handshakes of one measurement")
	flag.StringVar(&s.caddy, "caddy", "caddy", "the Caddy to compare with")
	flag.StringVar(&s.profile, "profile", "", "write a CPU profile of our proxy to this file")
	flag.StringVar(&s.only, "only", "", "measure only these, joined by commas: requests, latency, handshakes, bulk")
	flag.StringVar(&s.contenders, "contenders", "", "measure only those whose names contain this")
	flag.StringVar(&s.before, "before", "", "measure the proxy of an earlier version, too: this program, built from that version")
	flag.Parse()
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, out *os.File) error {
	dir, err := os.MkdirTemp("", "porchlight-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeCertificate(dir); err != nil {
		return err
	}
	results := &results{settings: s, load: loadAverage(), versions: versions(s.caddy), began: time.Now()}
	for round := range s.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, s.rounds)
		if err := playRound(ctx, s, fmt.Sprintf("%s/%d", dir, round), dir, results); err != nil {
			return err
		}
	}
	results.print(out)
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// measure is what a row of the table shows of a contender.
type measure struct{ kind, of string }

// Kinds of measures. CPU is the proxying processes' own; an authoriser's is not
// counted.
const (
	cpuH1        = "HTTP/1.1, CPU µs a request"
	cpuH2        = "HTTP/2, CPU µs a request"
	rateH1       = "HTTP/1.1, requests/s"
	rateH2       = "HTTP/2, requests/s"
	latency50    = "p50 at the fixed rate, ms"
	latency99    = "p99 at the fixed rate, ms"
	cpuFull      = "TLS handshake, CPU µs"
	cpuResumed   = "TLS handshake resumed, CPU µs"
	cpuHybrid    = "TLS handshake with X25519MLKEM768, CPU µs"
	cpuBulk      = "download, CPU s a GB"
	bytesPerBulk = "download, MB/s"
)

var kinds = []string{cpuH1, cpuH2, rateH1, rateH2, latency50, latency99, cpuFull, cpuResumed, cpuHybrid, cpuBulk, bytesPerBulk}

// results of a run: every round's figure of every measure.
type results struct {
	settings
	began    time.Time
	load     string // the machine's, before anything was started
	versions []string
	figures  map[measure][]float64
}

func (r *results) add(kind string, c contender, figure float64) {
	if r.figures == nil {
		r.figures = map[measure][]float64{}
	}
	m := measure{kind, c.name}
	r.figures[m] = append(r.figures[m], figure)
}

// playRound measures every contender once, with processes of its own.
func playRound(ctx context.Context, s settings, dir, certificates string, r *results) error {
	st, err := openStage(ctx, s, dir, certificates)
	if err != nil {
		return err
	}
	defer st.close()
	all := s.chosen(st.cookie, st.beforeCookie, st.bearer, st.beforeBearer, st.nginx, st.caddy, st.caddyAuth)
	if s.wants("requests") {
		for _, c := range all {
			for _, http2 := range []bool{false, true} {
				perRequest, rate, err := saturate(ctx, s, c, http2)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				cpu, many := cpuH1, rateH1
				if http2 {
					cpu, many = cpuH2, rateH2
				}
				r.add(cpu, c, micro(perRequest))
				r.add(many, c, rate)
			}
		}
	}
	if s.wants("latency") {
		for _, c := range all {
			took, err := paced(ctx, s, c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			r.add(latency50, c, micro(took[len(took)/2])/1e3)
			r.add(latency99, c, micro(took[len(took)*99/100])/1e3)
		}
	}
	withoutAuth := s.chosen(st.cookie, st.beforeCookie, st.nginx, st.caddy)
	if s.wants("handshakes") {
		for kind, name := range []string{fullHandshake: cpuFull, resumedHandshake: cpuResumed, hybridHandshake: cpuHybrid} {
			for _, c := range withoutAuth {
				each, err := handshakes(ctx, s, c, handshake(kind))
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				r.add(name, c, micro(each))
			}
		}
	}
	if s.wants("bulk") {
		for _, c := range withoutAuth {
			perGB, rate, err := download(ctx, c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			r.add(cpuBulk, c, perGB.Seconds())
			r.add(bytesPerBulk, c, rate/1e6)
		}
	}
	return nil
}

func micro(d time.Duration) float64 { return float64(d) / 1e3 }

// median of the rounds; ok is false for what was not measured.
func (r *results) median(kind, of string) (figure float64, ok bool) {
	figures := slices.Sorted(slices.Values(r.figures[measure{kind, of}]))
	if len(figures) == 0 {
		return 0, false
	}
	return figures[len(figures)/2], true
}

// goal is a ratio of ours to a peer's that is to be reached.
type goal struct {
	kind, ours, peer string
	limit            float64
	atLeast          bool // otherwise at most
}

var goals = []goal{
	{cpuH1, oursCookie, caddy, 1. / 3, false},
	{cpuH2, oursCookie, caddy, 1. / 3, false},
	{cpuH1, oursCookie, caddyAuth, 1. / 7, false},
	{cpuH2, oursCookie, caddyAuth, 1. / 7, false},
	{cpuH1, oursCookie, nginx, 1, false},
	{cpuH2, oursCookie, nginx, 1, false},
	{rateH1, oursBearer, oursCookie, .95, true},
	{rateH2, oursBearer, oursCookie, .95, true},
	{latency99, oursCookie, caddy, .5, false},
	{cpuFull, oursCookie, nginx, 1.1, false},
	{cpuResumed, oursCookie, nginx, 1.1, false},
	{cpuBulk, oursCookie, nginx, .6, false},
}

// goals are those of every run, and where an earlier version was measured, to be no slower
// than that.
func (r *results) goals() []goal {
	all := slices.Clone(goals)
	for _, kind := range kinds {
		limit, atLeast := 1.05, false
		if kind == rateH1 || kind == rateH2 || kind == bytesPerBulk {
			limit, atLeast = .95, true
		}
		all = append(all, goal{kind, oursCookie, beforeCookie, limit, atLeast}, goal{kind, oursBearer, beforeBearer, limit, atLeast})
	}
	return all
}

// print writes two tables in Markdown: the figures, and ours divided by a
// peer's beside the goals.
func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "%s; %d cores, load average %s before the start; %s.\n", r.began.UTC().Format("2 January 2006, 15:04 UTC"), runtime.NumCPU(), r.load, strings.Join(r.versions, ", "))
	fmt.Fprintf(w, "%d connections, answers of 100 bytes, median of %d rounds of %s; fixed rate: %d requests/s.\n\n", r.connections, r.rounds, r.span, r.rate)
	names := []string{oursCookie, oursBearer, nginx, caddy, caddyAuth}
	if r.before != "" {
		names = append(names, beforeCookie, beforeBearer)
	}
	fmt.Fprintf(w, "| | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, kind := range kinds {
		row, any := "| "+kind+" |", false
		for _, name := range names {
			figure, ok := r.median(kind, name)
			if !ok {
				row += " – |"
				continue
			}
			any = true
			row += " " + short(figure) + " |"
		}
		if any {
			fmt.Fprintln(w, row)
		}
	}
	fmt.Fprint(w, "\n| ratio | measured | goal | |\n|---|---|---|---|\n")
	for _, g := range r.goals() {
		ours, ok1 := r.median(g.kind, g.ours)
		peer, ok2 := r.median(g.kind, g.peer)
		if !ok1 || !ok2 || peer == 0 {
			continue
		}
		ratio, sign, verdict := ours/peer, "≤", "missed"
		if g.atLeast {
			sign = "≥"
		}
		if g.atLeast == (ratio >= g.limit) || ratio == g.limit {
			verdict = "met"
		}
		fmt.Fprintf(w, "| %s: %s ÷ %s | %.2f | %s %.2f | %s |\n", g.kind, g.ours, g.peer, ratio, sign, g.limit, verdict)
	}
	if r.rounds < 3 {
		fmt.Fprintln(os.Stderr, "fewer than three rounds: take the figures for a glance")
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

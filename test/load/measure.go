package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// ticks is how many of them /proc counts in a second.
const ticks = 100

// spent is what nodes and database have used so far; of a span, what they used in it.
type spent struct {
	when       time.Time
	took       time.Duration // of a span
	nodes      time.Duration // of processor time
	houses     time.Duration
	database   time.Duration
	statements float64
	writes     float64 // rows
	resident   float64 // bytes, of all nodes, at the end
	files      float64 // of the node that has the most, at the end
}

const (
	// countStatements has the database do so.
	countStatements = "create extension pg_stat_statements"
	// sweep deletes what has expired, as each node does every five minutes.
	sweep = "delete from kv where expires <= now()"
)

// do has the database do something.
func (w *world) do(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, w.database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

func (w *world) spent(ctx context.Context) (s spent, err error) {
	s.when = time.Now()
	for _, n := range w.running {
		select {
		case <-n.Done():
			continue // what it used before it ended is not asked for
		default:
		}
		if err := s.addNode(n.PID()); err != nil {
			return s, err
		}
	}
	for _, h := range w.houses {
		used, err := processor(h.cmd.Process.Pid)
		if err != nil {
			return s, err
		}
		s.houses += used
	}
	if s.database, err = family(w.server.PID()); err != nil {
		return s, err
	}
	conn, err := pgx.Connect(ctx, w.database)
	if err != nil {
		return s, err
	}
	defer conn.Close(ctx)
	// Counts of a backend that rests are handed in within a second.
	return s, conn.QueryRow(ctx, `select
		(select coalesce(sum(calls), 0) from pg_stat_statements),
		(select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) from pg_stat_user_tables)`).Scan(&s.statements, &s.writes)
}

// processor is what a process has used of it.
func processor(pid int) (time.Duration, error) {
	// The clock of a whole process, as clock_getcpuclockid(3) names it.
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &used); err != nil {
		return 0, fmt.Errorf("the processor time of %d: %w", pid, err)
	}
	return time.Duration(used.Nano()), nil
}

func (s *spent) addNode(pid int) error {
	used, err := processor(pid)
	if err != nil {
		return err
	}
	s.nodes += used
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	s.files = max(s.files, float64(len(open)))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return err
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(status))[1], 64)
	s.resident += pages * float64(os.Getpagesize())
	return err
}

// family is the processor time of a process and its children, those that have ended
// included.
func family(parent int) (total time.Duration, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, file := range stats {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended, and its parent has what it used
		}
		// The second field is a name that may hold anything, in parentheses.
		pid, _, _ := strings.Cut(string(raw), " ")
		f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		used := f[11:13]
		switch strconv.Itoa(parent) {
		case pid:
			used = f[11:15]
		case f[1]:
		default:
			continue
		}
		for _, field := range used {
			n, err := strconv.Atoi(field)
			if err != nil {
				return 0, err
			}
			total += time.Duration(n) * time.Second / ticks
		}
	}
	return total, nil
}

// during is what is used while do runs.
func (w *world) during(ctx context.Context, do func() error) (spent, error) {
	before, err := w.spent(ctx)
	if err != nil {
		return before, err
	}
	if err := do(); err != nil {
		return before, err
	}
	after, err := w.spent(ctx)
	s := after
	s.took = after.when.Sub(before.when)
	s.nodes -= before.nodes
	s.houses -= before.houses
	s.database -= before.database
	s.statements -= before.statements + 1 // but for the look before
	s.writes -= before.writes
	return s, err
}

// besides is during without what computers that sleep use in that time anyhow.
func (w *world) besides(ctx context.Context, do func() error) (spent, error) {
	s, err := w.during(ctx, do)
	part := s.took.Seconds() / max(w.calm.took.Seconds(), 1e-9)
	less := func(used, calm float64) float64 { return max(0, used-part*calm) }
	s.nodes = time.Duration(less(float64(s.nodes), float64(w.calm.nodes)))
	s.houses = time.Duration(less(float64(s.houses), float64(w.calm.houses)))
	s.database = time.Duration(less(float64(s.database), float64(w.calm.database)))
	s.statements, s.writes = less(s.statements, w.calm.statements), less(s.writes, w.calm.writes)
	return s, err
}

// rest lets time pass.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile of what is sorted, or 0 of nothing.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

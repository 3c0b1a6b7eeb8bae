package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// part is one of the parts of the benchmarks: who stands on its stage, and what
// is measured of them.
type part struct {
	name string
	// start starts the contenders of one round.
	start func(*stage, context.Context) error
	work  []work
	goals []goal
	// derive adds figures that follow from those of all rounds; nil for none.
	derive func(*results)
}

// work is one thing that contenders are measured at, each in turn.
type work struct {
	group string   // what -only names
	name  string   // as results have it
	on    []string // contenders; those that are not on the stage are left out
	do    func(context.Context, *stage, contender) ([]reading, error)
}

// alone is an error of one work that keeps the figures of all the rest: the run goes on,
// says so, and ends with it.
type alone struct{ error }

// reading is one figure of one measurement.
type reading struct {
	metric string
	value  float64
}

// parts in the order in which they are played.
func parts() []part {
	return []part{agentPart(), relayPart(), tunnelPart(), controlPart(), signInPart(), desktopPart(), growthPart()}
}

// chosenParts are those a name stands for.
func chosenParts(name string) ([]part, error) {
	all := parts()
	if name == "all" {
		return all, nil
	}
	var names []string
	for _, p := range all {
		if p.name == name {
			return []part{p}, nil
		}
		names = append(names, p.name)
	}
	return nil, fmt.Errorf("there is no part %q; say all or one of %s", name, strings.Join(names, ", "))
}

// play measures everything of a part, in rounds: every contender has its turn at
// every work before anybody has another.
func (p part) play(ctx context.Context, s settings, dir string, r *results) error {
	for round := range s.rounds {
		fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", p.name, round+1, s.rounds)
		here := filepath.Join(dir, fmt.Sprint(p.name, "-", round))
		if err := os.MkdirAll(here, 0o700); err != nil {
			return err
		}
		if err := p.playRound(ctx, s, round, here, r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if p.derive != nil {
		p.derive(r)
	}
	return nil
}

func (p part) playRound(ctx context.Context, s settings, round int, dir string, r *results) error {
	st, err := openStage(ctx, s, dir, p.start)
	if err != nil {
		return err
	}
	defer st.close()
	for _, w := range p.work {
		if !s.wants(w.group) || w.group == "clicks" && round > 0 { // which has rounds of its own
			continue
		}
		for _, c := range st.contenders {
			if !slices.Contains(w.on, c.name) {
				continue
			}
			began := time.Now()
			readings, err := w.do(ctx, st, c)
			if err != nil {
				err = fmt.Errorf("%s: %s: %w", w.name, c.name, err)
				if _, goesOn := errors.AsType[alone](err); !goesOn || ctx.Err() != nil {
					return err
				}
				r.failed = append(r.failed, err)
				fmt.Fprintln(os.Stderr, err)
			}
			for _, reading := range readings {
				r.add(p.name, w.name, reading.metric, c.name, reading.value)
			}
			if s.verbose {
				fmt.Fprintf(os.Stderr, "%6.2f s  %s: %s %v\n", time.Since(began).Seconds(), w.name, c.name, readings)
			}
		}
	}
	return nil
}

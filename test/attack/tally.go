//go:build linux

package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const mostShown = 12 // failing cases of a part

// tally counts what a part did. It is safe for concurrent use.
type tally struct {
	name  string
	floor int
	took  time.Duration
	broke error // what stopped the part

	mu      sync.Mutex // protects what follows
	tried   int
	through []string
	skipped string // why there is nothing to try
}

// skip says why a part cannot be tried here.
func (t *tally) skip(why string) {
	t.skipped = why
	fmt.Println("   skipped:", why)
}

// try counts attacks that were carried out.
func (t *tally) try(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried += n
}

// got notes an attack that got through.
func (t *tally) got(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.through = append(t.through, fmt.Sprintf(format, args...))
}

// report prints the table and says what was wrong.
func report(tallies []*tally) error {
	failed := false
	fmt.Printf("\n%-12s %8s %12s %8s\n", "part", "tried", "got through", "seconds")
	for _, t := range tallies {
		note := ""
		switch {
		case t.broke != nil:
			note = "  stopped: " + t.broke.Error()
		case t.skipped != "":
			note = "  skipped: " + t.skipped
		case t.tried < t.floor:
			note = fmt.Sprintf("  fewer than the %d it should try", t.floor)
		}
		failed = failed || len(t.through) > 0 || t.broke != nil || t.skipped == "" && t.tried < t.floor
		fmt.Printf("%-12s %8d %12d %8.0f%s\n", t.name, t.tried, len(t.through), t.took.Seconds(), note)
	}
	for _, t := range tallies {
		for i, what := range t.through {
			if i == mostShown {
				fmt.Printf("%s: and %d more\n", t.name, len(t.through)-i)
				break
			}
			fmt.Printf("%s: %s\n", t.name, what)
		}
	}
	if failed {
		return errors.New("something got through, or was not tried")
	}
	return nil
}

// grid is the product of axes.
type grid struct {
	names []string
	sizes []int
}

// axis adds one of n values.
func (g grid) axis(name string, n int) grid {
	return grid{append(g.names[:len(g.names):len(g.names)], name), append(g.sizes[:len(g.sizes):len(g.sizes)], n)}
}

func (g grid) size() int {
	n := 1
	for _, s := range g.sizes {
		n *= s
	}
	return n
}

// at is the i-th combination, an index for every axis.
func (g grid) at(i int) []int {
	out := make([]int, len(g.sizes))
	for a := len(g.sizes) - 1; a >= 0; a-- {
		out[a] = i % g.sizes[a]
		i /= g.sizes[a]
	}
	return out
}

// pick prints the axes and returns the combinations to try: all of them, or about
// some, spread so that every value of every axis is among them when some allows.
func (g grid) pick(quick bool, some int) [][]int {
	var words []string
	for i, name := range g.names {
		words = append(words, fmt.Sprintf("%s %d", name, g.sizes[i]))
	}
	n, step := g.size(), 1
	if quick && n > some {
		step = n / some
		for !g.spreads(step) {
			step--
		}
	}
	var picked [][]int
	for i := 0; i < n; i += step {
		picked = append(picked, g.at(i))
	}
	fmt.Printf("   %s = %d", strings.Join(words, " × "), n)
	if step > 1 {
		fmt.Printf(", of which %d", len(picked))
	}
	fmt.Println()
	return picked
}

// spreads says whether steps of this size share no factor with any axis.
func (g grid) spreads(step int) bool {
	for _, size := range g.sizes {
		if gcd(step, size) != 1 {
			return false
		}
	}
	return true
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// atOnce calls do for every index below n, a few at a time, until one fails.
func atOnce(n, workers int, do func(i int) error) error {
	next := make(chan int)
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	stop := make(chan struct{})
	for range workers {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					once.Do(func() { first = err; close(stop) })
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-stop:
			break feed
		}
	}
	close(next)
	wg.Wait()
	return first
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What is measured of everybody coming back.
const (
	reported  = "computers that reported their apps"
	toldAfter = "all have reported their apps for the first time after s"
	backAfter = "all back after s"
	halfBack  = "half of them after s"
	triedEach = "syncs tried ÷ needed"
	starved   = "starved: not back, or only after 3 × the median and 3 s more"
)

// herd kills the only node while everybody is connected, with the database away.
func herd(ctx context.Context, s settings, r *results) error {
	distances := []struct {
		away time.Duration
		goal float64 // seconds until all are back
	}{{10 * time.Millisecond, 30}, {50 * time.Millisecond, 60}}
	for _, d := range distances {
		if s.distance != 0 && s.distance != d.away {
			continue
		}
		w, err := openWorld(ctx, s, shape{nodes: 1, linked: true, away: d.away})
		if err == nil {
			err = errors.Join(w.comeBack(ctx, r, d.goal), w.close())
		}
		if err != nil {
			return fmt.Errorf("the database %v away: %w", d.away, err)
		}
	}
	return nil
}

// comeBack has the computers connect, kills the node, starts it again and waits for all.
func (w *world) comeBack(ctx context.Context, r *results, goal float64) error {
	if err := w.populate(ctx, w.herd); err != nil {
		return err
	}
	began := time.Now()
	was, err := w.await(ctx)
	if err != nil {
		return err
	}
	n := len(was.Back)
	name := fmt.Sprintf("%d computers back after kill -9, PostgreSQL %v away", w.herd, w.away)
	r.atLeast(name, there, float64(n), float64(w.herd))
	all, err := w.awaitAll(ctx, func(r report) int { return r.Reported })
	if err != nil {
		return err
	}
	r.atLeast(name, reported, float64(all.Reported), float64(w.herd))
	if all.Reported == w.herd {
		r.add(name, toldAfter, time.Since(began).Seconds())
	}
	w.says("%d computers were there, and %d have reported their apps", n, all.Reported)

	w.running[0].Kill()
	killed := time.Now()
	if _, err := w.tell(order{Mark: true}); err != nil {
		return err
	}
	if err := w.start(ctx, w.running[0]); err != nil {
		return err
	}
	is, err := w.await(ctx)
	if err != nil {
		return err
	}
	after := func(i int) float64 { return is.Back[i].Sub(killed).Seconds() }
	last, median := w.patience.Seconds(), w.patience.Seconds()
	if len(is.Back) > n/2 {
		median = after(n / 2)
	}
	late := max(0, n-len(is.Back))
	for i := range is.Back {
		if after(i) > 3*median+3 {
			late++
		}
	}
	if len(is.Back) >= n {
		last = after(len(is.Back) - 1)
	}
	r.atMost(name, backAfter, last, goal)
	r.add(name, halfBack, median)
	r.atMost(name, triedEach, float64(is.Tried)/float64(max(1, n)), 1.2)
	r.atMost(name, starved, float64(late), 0)
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control"
	"porchlight/control/controlapi"
)

const (
	// writeEvery is how often each writer writes, where it is answered in that time.
	writeEvery = 100 * time.Millisecond
	// writeWait bounds a write that gets no answer: longer than a node looks for the
	// outcome of a commit.
	writeWait = 2 * time.Minute
	// Each of a few owners gives and withdraws the apps of one computer.
	givers, givenTo, givenApps = 16, 4, 500
)

// writers change what is kept at the nodes, and know what they were told was kept.
type writers struct{ all []*writer }

// writer does one write after the other.
type writer struct {
	// write does the next one. readBack counts what was acknowledged and is not there, and
	// what was kept without being heard of.
	write    func(context.Context) error
	readBack func(context.Context) (lost, unheard int, err error)
	close    func()

	mu      sync.Mutex    // protects what follows
	acked   int           // writes
	failed  int           // tries
	last    error         // of those
	began   time.Time     // the last acknowledged write
	ackedAt time.Time     // and its acknowledgement
	pause   time.Duration // the longest between two of them
	over    bool          // it can write no more
}

// errRefused is an answer that no further try will change.
var errRefused = errors.New("refused")

// writers are half programs that refresh tokens, half owners that give and withdraw apps.
func (w *world) writers(ctx context.Context) (*writers, error) {
	tokens, err := w.grants(ctx)
	if err != nil {
		return nil, err
	}
	all := &writers{}
	for i := range tokens.tokens {
		all.all = append(all.all, w.refresher(&tokens, i))
	}
	service, done, err := w.domainOf(ctx)
	if err != nil {
		return all, err
	}
	for i := range givers {
		g, err := w.giver(ctx, service, i)
		if err != nil {
			return all, errors.Join(err, done())
		}
		all.all = append(all.all, g)
	}
	return all, done()
}

// refresher has a token of which each refresh depends on the last: one that is lost ends it.
func (w *world) refresher(c *refreshing, i int) *writer {
	client := w.clientAt(w.running[i%len(w.running)].address, writeWait)
	lost, unheard, doubtful := 0, 0, false
	write := func(ctx context.Context) error {
		next, err := refresh(ctx, client, w.authURL(), c, c.tokens[i])
		switch {
		case err == nil:
			c.tokens[i], doubtful = next, false
		case !errors.Is(err, errRefused):
			doubtful = true
		case doubtful: // an earlier try of it was kept, and its answer was an error
			unheard++
		default:
			lost++
		}
		return err
	}
	return &writer{write: write, close: client.CloseIdleConnections, readBack: func(ctx context.Context) (int, int, error) {
		if lost+unheard > 0 {
			return lost, unheard, nil
		}
		err := write(ctx)
		if errors.Is(err, errRefused) {
			err = nil // and counted
		}
		return lost, unheard, err
	}}
}

// giver owns a computer with many apps, and gives each to everybody, then withdraws them,
// one at a time, and so on.
func (w *world) giver(ctx context.Context, service *control.Service, i int) (*writer, error) {
	short := fmt.Sprint("giving", i)
	enrolled, err := service.Computers.Ensure(ctx, short+"@example.net", short)
	if err != nil {
		return nil, err
	}
	api := &controlapi.Client{BaseURL: w.authURL(), Credential: enrolled.Credential, HTTP: w.clientAt(w.running[i%len(w.running)].address, writeWait)}
	var apps controlapi.Apps
	for n := range givenApps {
		name := fmt.Sprint("app", n)
		apps.Apps = append(apps.Apps, controlapi.App{ID: name, Name: name, Label: name, Live: true})
	}
	if err := api.PutApps(ctx, apps); err != nil {
		return nil, err
	}
	var people []string
	for n := range givenTo {
		p, err := api.Invite(ctx, controlapi.Invite{Email: fmt.Sprintf("guest%d@%s.example.net", n, short), Apps: []string{apps.Apps[0].ID}})
		if err != nil {
			return nil, err
		}
		people = append(people, p.AccountID)
	}
	has := map[controlapi.SetAccess]bool{} // by person and app
	for _, id := range people {
		has[controlapi.SetAccess{AccountID: id, App: apps.Apps[0].ID}] = true
	}
	next, doubtful := 0, false
	nextCell := func() controlapi.SetAccess {
		return controlapi.SetAccess{AccountID: people[next%givenTo], App: apps.Apps[next/givenTo%givenApps].ID}
	}
	write := func(ctx context.Context) error {
		cell := nextCell()
		asked := cell
		asked.Granted = next/(givenTo*givenApps)%2 == 0
		if _, err := api.SetAccess(ctx, asked); err != nil {
			doubtful = true
			return err
		}
		has[cell], doubtful = asked.Granted, false
		next++
		return nil
	}
	return &writer{write: write, close: api.HTTP.CloseIdleConnections, readBack: func(ctx context.Context) (lost, unheard int, err error) {
		is, err := api.People(ctx)
		if err != nil {
			return 0, 0, err
		}
		found := map[controlapi.SetAccess]bool{}
		for _, p := range is.Members {
			for _, id := range p.Apps {
				found[controlapi.SetAccess{AccountID: p.AccountID, App: id}] = true
			}
		}
		for cell, want := range has {
			if found[cell] != want && !(doubtful && cell == nextCell()) {
				lost++
			}
		}
		return lost, 0, nil
	}}, nil
}

// start has all of them write until it is stopped, which awaits every answer.
func (all *writers) start(ctx context.Context) (stop func()) {
	writing, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, w := range all.all {
		w.reset()
		wg.Go(func() { w.run(writing) })
	}
	return func() { end(); wg.Wait() }
}

func (w *writer) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked, w.failed, w.last, w.pause, w.ackedAt = 0, 0, nil, 0, time.Now()
}

func (w *writer) run(ctx context.Context) {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for !w.isOver() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		w.note(began, w.write(context.WithoutCancel(ctx)))
	}
}

func (w *writer) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

func (w *writer) note(began time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed++
		w.last = err
		w.over = errors.Is(err, errRefused)
		return
	}
	now := time.Now()
	w.acked++
	w.pause = max(w.pause, now.Sub(w.ackedAt))
	w.began, w.ackedAt = began, now
}

// goOn waits until each has written something that it began after then.
func (all *writers) goOn(ctx context.Context, then time.Time) error {
	for _, w := range all.all {
		for end := time.Now().Add(writeWait); !w.wroteSince(then); {
			if time.Now().After(end) {
				return fmt.Errorf("the writers do not go on: %w", w.last)
			}
			if err := rest(ctx, lookEvery/5); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) wroteSince(then time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over || w.began.After(then)
}

// note says how they did since they were started.
func (all *writers) note(r *results, name string) {
	var pause time.Duration
	acked, failed := 0, 0
	for _, w := range all.all {
		acked, failed, pause = acked+w.acked, failed+w.failed, max(pause, w.pause)
		if w.last != nil && r.verbose {
			fmt.Fprintln(os.Stderr, "  a write failed:", w.last)
		}
	}
	r.atMost(name, longestPause, pause.Seconds(), 30)
	r.add(name, writesFailed, float64(failed))
	r.note(name, writesKept, float64(acked), nil, "higher")
}

// readAll looks for everything that was acknowledged.
func (all *writers) readAll(ctx context.Context, r *results, name string) error {
	var mu sync.Mutex
	lost, unheard := 0, 0
	var g errgroup.Group
	for _, w := range all.all {
		g.Go(func() error {
			l, u, err := w.readBack(ctx)
			mu.Lock()
			defer mu.Unlock()
			lost, unheard = lost+l, unheard+u
			return err
		})
	}
	err := g.Wait()
	r.atMost(name, lostWrites, float64(lost), 0)
	r.add(name, unheardWrites, float64(unheard))
	return err
}

func (all *writers) close() {
	for _, w := range all.all {
		w.close()
	}
}

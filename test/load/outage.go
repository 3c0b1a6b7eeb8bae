package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// outage has visitors come to three nodes while the database is stopped, one node cannot
// reach it, one is drained, and two are killed.
func outage(ctx context.Context, s settings, r *results) error {
	w, err := openWorld(ctx, s, shape{nodes: 3, linked: true, drain: 3 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(w.outages(ctx, r), w.close())
}

func (w *world) outages(ctx context.Context, r *results) error {
	n, away, cut := 300, 60*time.Second, 40*time.Second
	if w.quick {
		n, away, cut = 60, 8*time.Second, 8*time.Second
	}
	if err := w.populate(ctx, n); err != nil {
		return err
	}
	is, err := w.await(ctx)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d computers, 3 nodes, %d visits a second", n, visitsASec)
	r.atLeast(name, there, float64(len(is.Back)), float64(n))
	if err := errors.Join(w.awaitTunnels(ctx, r, name), w.introduce(ctx)); err != nil {
		return err
	}
	if err := w.databaseStops(ctx, r, away); err != nil {
		return err
	}
	if err := w.nodeCutOff(ctx, r, cut); err != nil {
		return err
	}
	if err := w.nodeDrains(ctx, r); err != nil {
		return err
	}
	return w.twoKilled(ctx, r)
}

// introduce has every computer be visited once by every node: who was never there is no
// known visitor.
func (w *world) introduce(ctx context.Context) error {
	for _, n := range w.running {
		left := slices.Clone(w.homes)
		for began := time.Now(); len(left) > 0 && time.Since(began) < w.patience && ctx.Err() == nil; {
			left = w.unreached(ctx, n, left)
		}
		if len(left) > 0 {
			return fmt.Errorf("%d computers are not reached by %s", len(left), n.name)
		}
	}
	return nil
}

// visitedWhile sends visits while do runs, and notes how many failed.
func (w *world) visitedWhile(ctx context.Context, r *results, name string, goal float64, node func() string, do func(context.Context) error) error {
	t, began := tally{}, time.Now()
	visiting, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { w.visiting(visiting, &t, visitsASec, node) })
	err := do(ctx)
	stop()
	wg.Wait()
	if t.failed > 0 {
		w.says("%d visits failed, from %.1f to %.1f s: %v", t.failed, t.when[0].Sub(began).Seconds(), t.when[1].Sub(began).Seconds(), t.last)
	}
	r.atMost(name, failures, t.failedOf100(), goal)
	r.add(name, nearlyAll, ms(quantile(t.took, .99)))
	return err
}

// databaseStops for a while. Everybody who visits was there before.
func (w *world) databaseStops(ctx context.Context, r *results, away time.Duration) error {
	name := fmt.Sprintf("PostgreSQL stopped for %.0f s", away.Seconds())
	return w.visitedWhile(ctx, r, name, 0, w.anyNode, func(ctx context.Context) error {
		if err := w.server.Shutdown(); err != nil {
			return err
		}
		err := rest(ctx, away)
		return errors.Join(err, w.server.StartAgain(), rest(ctx, w.window/4))
	})
}

// nodeCutOff from the database, which swallows what the node says.
func (w *world) nodeCutOff(ctx context.Context, r *results, cut time.Duration) error {
	name := fmt.Sprintf("one node cut off from PostgreSQL for %.0f s", cut.Seconds())
	return w.visitedWhile(ctx, r, name, 1, w.anyNode, func(ctx context.Context) error {
		w.links[2].part()
		defer w.links[2].join()
		return rest(ctx, cut)
	})
}

// nodeDrains while a balancer, or a name server, looks at /readyz twice a second. The
// node is started again then.
func (w *world) nodeDrains(ctx context.Context, r *results) error {
	b := &balancer{client: &http.Client{Timeout: time.Second}}
	b.look(w.running)
	looking, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		for rest(looking, time.Second/2) == nil {
			b.look(w.running)
		}
	})
	return w.visitedWhile(ctx, r, "one node drained", 0, b.node, func(ctx context.Context) error {
		last := w.running[2]
		last.Signal(syscall.SIGTERM)
		last.Wait()
		return errors.Join(w.start(ctx, last), rest(ctx, w.window/2))
	})
}

// balancer knows which nodes are ready.
type balancer struct {
	client *http.Client
	mu     sync.Mutex
	ready  []string // guarded by mu
}

func (b *balancer) look(nodes []*node) {
	var ready []string
	for _, n := range nodes {
		if res, err := b.client.Get(n.ready()); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				ready = append(ready, n.address)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = ready
}

func (b *balancer) node() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return nodeAddress(0, 1) // where nobody listens
	}
	return b.ready[rand.N(len(b.ready))]
}

// twoKilled of three, at once: how long until everybody is reached by the one that is
// left.
func (w *world) twoKilled(ctx context.Context, r *results) error {
	is, err := w.await(ctx)
	if err != nil {
		return err
	}
	if len(is.Back) < len(w.homes) {
		w.says("only %d computers are there", len(is.Back))
	}
	var killing sync.WaitGroup
	for _, n := range w.running[1:] {
		killing.Go(n.Kill)
	}
	killing.Wait()
	began := time.Now()
	left := slices.Clone(w.homes)
	for len(left) > 0 && time.Since(began) < w.patience && ctx.Err() == nil {
		left = w.unreached(ctx, w.running[0], left)
	}
	r.atMost("two of three nodes killed", "everybody reached after s", time.Since(began).Seconds(), 5)
	r.atMost("two of three nodes killed", "never reached", float64(len(left)), 0)
	return ctx.Err()
}

// unreached visits each once by a node and returns whom it did not reach.
func (w *world) unreached(ctx context.Context, by *node, homes []home) (left []home) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(4 * atOnceVisits)
	for _, h := range homes {
		g.Go(func() error {
			conn, err := visit(ctx, by.address, h.Name)
			if err == nil {
				_ = conn.Close()
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			left = append(left, h)
			return nil
		})
	}
	_ = g.Wait() // who was not reached is the answer
	return left
}

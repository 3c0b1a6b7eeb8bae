package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// What is measured of those who visit, sign in and refresh tokens.
const (
	failures     = "failed, of 100"
	eachMicro    = "nodes, CPU µs each"
	eachMicroAt  = "computers, CPU µs each"
	eachMicroDB  = "PostgreSQL, CPU µs each"
	eachAsked    = "statements each"
	half         = "p50 ms"
	nearlyAll    = "p99 ms"
	perGB        = "nodes, CPU ms a GB"
	eachRate     = "a second"
	visitsASec   = 20
	manyVisits   = 500
	atOnceVisits = 8
)

func (w *world) visitName(rate int) string {
	if rate == visitsASec {
		return "a visit, " + onNodes(w.nodes)
	}
	return fmt.Sprintf("a visit of %d a second, %s", rate, onNodes(w.nodes))
}

func spreadName(nodes int) string { return "all asleep, each in its own time, " + onNodes(nodes) }

// tally is how visits went.
type tally struct {
	mu     sync.Mutex
	took   []time.Duration // guarded by mu
	failed int             // guarded by mu
	last   error           // guarded by mu: of those that failed
	when   [2]time.Time    // guarded by mu: the first and the last that failed
}

func (t *tally) note(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if t.failed++; t.failed == 1 {
			t.when[0] = time.Now()
		}
		t.last, t.when[1] = err, time.Now()
		return
	}
	t.took = append(t.took, took)
}

func (t *tally) all() int { return len(t.took) + t.failed }

func (t *tally) failedOf100() float64 { return 100 * float64(t.failed) / float64(max(1, t.all())) }

// visited are the computers that have visitors: a few among all.
func (w *world) visited() []home { return w.homes[:min(20, len(w.homes))] }

// visiting sends visits to random nodes at a fixed rate until ctx ends, whatever becomes
// of them. at chooses the node.
func (w *world) visiting(ctx context.Context, t *tally, rate int, node func() string) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		node, name := node(), w.visited()[i%len(w.visited())].Name
		wg.Go(func() {
			began := time.Now()
			conn, err := visit(context.WithoutCancel(ctx), node, name)
			if err == nil {
				_ = conn.Close()
			} else {
				err = fmt.Errorf("%s by %s: %w", name, node, err)
			}
			t.note(time.Since(began), err)
		})
	}
}

func (w *world) anyNode() string { return w.running[rand.N(len(w.running))].address }

// visits measures visitors who come and go while everybody else sleeps: what each costs
// beside what the sleepers do.
//
// What the sleepers do is looked at anew: at first they came all together, and so did their
// beats, which then cost little; after they started again one by one the beats are spread, as
// those of many people's computers are.
func (w *world) visits(ctx context.Context, r *results) (err error) {
	if w.nodes == 1 && !w.quick { // each of the three looks holds one of the minute's writes
		if err := errors.Join(w.awaitSeen(ctx, len(w.homes)), rest(ctx, time.Minute/2)); err != nil {
			return err
		}
	}
	if w.calm, err = w.during(ctx, func() error { return rest(ctx, w.window) }); err != nil {
		return err
	}
	r.add(spreadName(w.nodes), nodeCPU, perSecond(ms(w.calm.nodes), w.calm.took))
	r.add(spreadName(w.nodes), houseCPU, perSecond(ms(w.calm.houses), w.calm.took))
	for _, rate := range []int{visitsASec, manyVisits} {
		if err := w.visitsAt(ctx, r, rate); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) visitsAt(ctx context.Context, r *results, rate int) error {
	var t tally
	s, err := w.besides(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, w.window)
		defer cancel()
		w.visiting(ctx, &t, rate, w.anyNode)
		return nil
	})
	if err != nil {
		return err
	}
	if t.failed > 0 {
		w.says("a visit failed: %v", t.last)
	}
	n, name, most := float64(max(1, t.all())), w.visitName(rate), 1000.
	if rate == manyVisits {
		most = 250
	}
	r.atMost(name, failures, t.failedOf100(), 0)
	judged := r.judging(w.nodes == 1 && !w.quick)
	judged.atMost(name, eachMicro, float64(s.nodes.Microseconds())/n, most)
	judged.atMost(name, eachMicroAt, float64(s.houses.Microseconds())/n, most)
	r.add(name, eachMicroDB, float64(s.database.Microseconds())/n)
	r.add(name, eachAsked, s.statements/n)
	r.add(name, half, ms(quantile(t.took, .5)))
	r.add(name, nearlyAll, ms(quantile(t.took, .99)))
	return nil
}

// waking measures what the first visitor of a computer pays that parks nothing while it
// sleeps, beside the next one: the way to the agent and back once more.
func (w *world) waking(ctx context.Context, r *results) error {
	for i, what := range []string{"the first visit of a computer asleep, ", "the next visit, "} {
		var t tally
		for _, h := range w.visited() {
			began := time.Now()
			conn, err := visit(ctx, w.running[0].address, h.Name)
			if err == nil {
				_ = conn.Close()
			}
			t.note(time.Since(began), err)
		}
		if i == 0 { // the computers park for the next one
			if err := rest(ctx, settleFor); err != nil {
				return err
			}
		}
		r.atMost(what+onNodes(w.nodes), failures, t.failedOf100(), 0)
		r.add(what+onNodes(w.nodes), half, ms(quantile(t.took, .5)))
		r.add(what+onNodes(w.nodes), nearlyAll, ms(quantile(t.took, .99)))
	}
	return nil
}

// restingVisitors measures those who keep a connection and say nothing.
func (w *world) restingVisitors(ctx context.Context, r *results) error {
	n := 1000
	if w.quick {
		n = 100
	}
	before, err := w.spent(ctx)
	if err != nil {
		return err
	}
	conns, err := w.open(ctx, n)
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	if err != nil {
		return err
	}
	s, err := w.during(ctx, func() error { return rest(ctx, w.window/2) })
	if err != nil {
		return err
	}
	name := "a resting visitor, " + onNodes(w.nodes)
	r.add(name, eachMemory, max(0, s.resident-before.resident)/1024/float64(n))
	r.add(name, eachFiles, (s.files-before.files)/float64(n))
	return nil
}

// open keeps n visits.
func (w *world) open(ctx context.Context, n int) (conns []*tls.Conn, err error) {
	conns = make([]*tls.Conn, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnceVisits)
	for i := range conns {
		g.Go(func() (err error) {
			conns[i], err = visit(ctx, w.anyNode(), w.visited()[i%len(w.visited())].Name)
			return err
		})
	}
	err = g.Wait()
	return slices.DeleteFunc(conns, func(c *tls.Conn) bool { return c == nil }), err
}

// bytes measures downloads, by random nodes.
func (w *world) bytes(ctx context.Context, r *results) error {
	took, err := w.download(ctx, w.anyNode)
	if err != nil {
		return err
	}
	r.add("a GB to visitors, "+onNodes(w.nodes), perGB, took)
	return nil
}

// download has apps give bytes and returns what a GB of them costs the nodes, in ms.
func (w *world) download(ctx context.Context, node func() string) (float64, error) {
	const streams = 8
	s, err := w.besides(ctx, func() error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(atOnceVisits / 2)
		for i := range streams {
			g.Go(func() error {
				conn, err := visit(ctx, node(), w.visited()[i%len(w.visited())].Name)
				if err != nil {
					return err
				}
				defer conn.Close()
				return ask(conn, w.bulk)
			})
		}
		return g.Wait()
	})
	return ms(s.nodes) / (float64(w.bulk*streams) / 1e9), err
}

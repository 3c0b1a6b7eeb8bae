package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"porchlight/control/controlapi/tunnelwire"
)

// What is measured of sleeping computers, all together.
const (
	there      = "computers there"
	nodeCPU    = "nodes, CPU ms/s"
	houseCPU   = "computers, CPU ms/s"
	nodeMemory = "nodes, resident MB"
	nodeFiles  = "open files of one node"
	baseCPU    = "PostgreSQL, CPU ms/s"
	statements = "statements/s"
	rowsSaved  = "rows written/s"
)

// And of one.
const (
	eachCPU    = "nodes, CPU ms/s each"
	eachMemory = "nodes, resident KB each"
	eachFiles  = "open files each" // of those past the first hundred, where there are so many
	growing    = "CPU each ÷ that among the first hundred"
	eachOpened = "connections opened each"
	eachMilli  = "nodes, CPU ms each"
	eachSaved  = "rows written each"
)

// settleFor is how long what coming cost lasts, closesFor how long the connections do by which
// computers heard of their relays, and leftFor how long the rows live that it left.
const (
	settleFor = 3 * time.Second
	closesFor = 13 * time.Second
	leftFor   = time.Minute
)

// wholeBeats holds each computer's beats as often as any other's, and whole minutes: nodes
// write once in each of these when computers were last seen.
const wholeBeats = 12 * tunnelwire.BeatAsleep

// fewestForGrowth computers are those that growth is measured from.
const fewestForGrowth = 100

// cost is what computers, visitors, bytes, sign-ins and refreshed tokens cost on a cluster
// of some nodes.
func cost(ctx context.Context, s settings, r *results, nodes int) error {
	w, err := openWorld(ctx, s, shape{nodes: nodes})
	if err != nil {
		return err
	}
	return errors.Join(w.costs(ctx, r), w.close())
}

func onNodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprint(n, " nodes")
}

// costs measures one cluster: nobody, then more and more computers that sleep, and then
// what is done besides.
func (w *world) costs(ctx context.Context, r *results) error {
	empty, err := w.asleep(ctx, r, 0)
	if err != nil {
		return err
	}
	first, files, of := 0., empty.files, 0 // what growth is measured from
	for _, n := range w.computers {
		s, err := w.asleep(ctx, r, n)
		if err != nil {
			return err
		}
		r := r.judging(n == w.computers[len(w.computers)-1] && w.nodes == 1)
		each := (perSecond(ms(s.nodes), s.took) - perSecond(ms(empty.nodes), empty.took)) / float64(n)
		name := asleepName(n, w.nodes)
		r.atMost(name, eachCPU, each, .02)
		r.atMost(name, eachMemory, (s.resident-empty.resident)/1024/float64(n), 40)
		// What the node has open itself, as its connections to the database, is no computer's.
		r.atMost(name, eachFiles, math.Round(100*(s.files-files)/float64(n-of))/100, 1)
		if n >= fewestForGrowth && first == 0 {
			first, files, of = each, s.files, n
		} else if first > 0 {
			r.atMost(name, growing, each/first, 1.2)
		}
	}
	for _, measure := range []func(context.Context, *results) error{w.again, w.waking, w.visits, w.restingVisitors, w.bytes, w.refreshes, w.signIns} {
		if err := measure(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func asleepName(n, nodes int) string {
	return fmt.Sprintf("%d computers asleep, %s", n, onNodes(nodes))
}

// asleep has n computers connect and looks at what they use while nobody visits them.
func (w *world) asleep(ctx context.Context, r *results, n int) (spent, error) {
	began, before := time.Now(), len(w.homes)
	were, err := w.tell(order{})
	if err != nil {
		return spent{}, err
	}
	if err := w.populate(ctx, n); err != nil {
		return spent{}, err
	}
	is, err := w.await(ctx)
	if err != nil {
		return spent{}, err
	}
	// One that came a moment ago still tells what apps it has.
	if _, err := w.awaitAll(ctx, func(r report) int { return r.Reported }); err != nil {
		return spent{}, err
	}
	w.says("%d of %d are there after %.1f s (syncs answered %d, tunnels %d; %s)", len(is.Back), n, time.Since(began).Seconds(), is.Answered, is.Welcomed, is.Trouble)
	settle := min(w.window, max(w.window/4, settleFor))
	if n >= fewestForGrowth { // of fewer only rates are of interest
		settle = max(settle, closesFor)
	}
	if err := rest(ctx, settle); err != nil {
		return spent{}, err
	}
	window, judged := w.window, n > 0 && n == w.computers[len(w.computers)-1] && w.nodes == 1
	if judged && !w.quick {
		if err := w.calmDown(ctx, n); err != nil {
			return spent{}, err
		}
		window = max(window, wholeBeats)
	}
	s, err := w.during(ctx, func() error { return rest(ctx, window) })
	if err != nil {
		return s, err
	}
	w.calm = s
	name := asleepName(n, w.nodes)
	r.judging(n > 0).atLeast(name, there, float64(len(is.Back)), float64(n))
	if came := len(w.homes) - before; came > 0 {
		r.add(name, eachOpened, float64(is.Opened-were.Opened)/float64(came))
	}
	r.add(name, nodeCPU, perSecond(ms(s.nodes), s.took))
	r.add(name, nodeMemory, s.resident/1e6)
	r.add(name, nodeFiles, s.files)
	r.add(name, baseCPU, perSecond(ms(s.database), s.took))
	r.judging(judged).atMost(name, statements, perSecond(s.statements, s.took), 1)
	r.add(name, rowsSaved, perSecond(s.writes, s.took))
	return s, nil
}

// calmDown waits until what n computers left by coming is gone, rows that live for a minute,
// which would be swept in one of the next five minutes; and for awaitSeen, so that the look
// holds each minute's.
func (w *world) calmDown(ctx context.Context, n int) error {
	if err := rest(ctx, leftFor); err != nil {
		return err
	}
	if err := w.do(ctx, sweep); err != nil {
		return err
	}
	return w.awaitSeen(ctx, n)
}

// awaitSeen waits until the node has just written when each of n computers was last seen, as
// it does once a minute.
func (w *world) awaitSeen(ctx context.Context, n int) error {
	had, err := w.spent(ctx)
	for end := time.Now().Add(2 * time.Minute); err == nil && time.Now().Before(end); {
		if err = rest(ctx, time.Second); err != nil {
			break
		}
		var has spent
		if has, err = w.spent(ctx); err == nil && has.writes-had.writes >= float64(n) {
			return rest(ctx, settleFor) // the database counts with a delay
		}
	}
	w.says("who was seen was not written in two minutes: a look may hold that more or less often than another")
	return err
}

// again is what it costs when the agents of all computers start again, as after an update
// or a night: the control plane has their apps, and they know its relays.
func (w *world) again(ctx context.Context, r *results) error {
	were, err := w.tell(order{})
	if err != nil {
		return err
	}
	var is report
	s, err := w.besides(ctx, func() (err error) {
		is, err = w.tell(order{Again: w.patience})
		return err
	})
	if err != nil {
		return err
	}
	n := len(w.homes)
	each := func(all float64) float64 { return all / float64(max(1, n)) }
	name := fmt.Sprintf("%d computers start again, %s", n, onNodes(w.nodes))
	r.atLeast(name, there, float64(len(is.Back)), float64(n))
	r.atMost(name, triedEach, each(float64(is.Tried)), 1.2)
	r.judging(w.nodes == 1).atMost(name, eachOpened, each(float64(is.Opened-were.Opened)), 1.05)
	r.add(name, eachMilli, each(ms(s.nodes)))
	r.add(name, eachAsked, each(s.statements))
	r.add(name, eachSaved, each(s.writes))
	return nil
}

func perSecond(n float64, in time.Duration) float64 { return n / in.Seconds() }

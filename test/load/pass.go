package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// passed is what a byte costs that goes by two nodes, as a part of what it costs at one.
const passed = "CPU a GB ÷ that of one node"

const (
	// passRounds is how often each node has its turn.
	passRounds = 5
	// strangers are computers by whose visitors nodes meet.
	strangers = 12
)

// pass measures bytes of visitors who come to a node that has the computer's tunnel, and of
// those who come to another: what passing on costs itself, and then what visitors cost who
// keep coming there, because of whom the computer comes, too.
func pass(ctx context.Context, s settings, r *results) error {
	w, err := openWorld(ctx, s, shape{nodes: 2, pinned: true})
	if err != nil {
		return err
	}
	if err := errors.Join(w.passOn(ctx, r), w.close()); err != nil {
		return err
	}
	if w, err = openWorld(ctx, s, shape{nodes: 3}); err != nil {
		return err
	}
	return errors.Join(w.keepComing(ctx, r), w.close())
}

// passOn has a computer that may use the first node alone, so it stays away from the second.
func (w *world) passOn(ctx context.Context, r *results) error {
	if err := w.populate(ctx, 1); err != nil {
		return err
	}
	if _, err := w.await(ctx); err != nil {
		return err
	}
	// They take turns, so that whatever else the machine does meets both.
	var rounds [2][passRounds]float64
	for round := range passRounds {
		for i := range rounds {
			var err error
			if rounds[i][round], err = w.download(ctx, func() string { return w.running[i].address }); err != nil {
				return err
			}
		}
	}
	var each [2]float64
	for i, name := range []string{"a GB by the node with the tunnel", "a GB passed on by another node"} {
		slices.Sort(rounds[i][:])
		each[i] = rounds[i][passRounds/2]
		r.add(name, perGB, each[i])
	}
	r.add("a GB passed on by another node", passed, each[1]/each[0])
	return nil
}

// keepComing has a computer that uses two of three nodes, and visitors at the third from the
// first one on: what counts is all of them together. Only the nodes have met before, by
// visitors of other computers.
func (w *world) keepComing(ctx context.Context, r *results) error {
	if err := w.populate(ctx, 1); err != nil {
		return err
	}
	if _, err := w.await(ctx); err != nil {
		return err
	}
	with, without, err := w.apart(ctx)
	if err != nil {
		return err
	}
	if err := w.populate(ctx, 1+strangers); err != nil {
		return err
	}
	if _, err := w.await(ctx); err != nil {
		return err
	}
	for i := range 2 * strangers { // too few for theirs to come
		conn, err := visit(ctx, without.address, w.homes[1+i%strangers].Name)
		if err != nil {
			return err
		}
		_ = conn.Close()
	}
	before, err := without.counted(ctx, "porchlight_relay_passed_on_total")
	if err != nil {
		return err
	}
	w.homes = w.homes[:1] // who has visitors from now on
	const name = "a GB to visitors who keep coming to another node, the first included"
	var sum [2]float64
	var first float64
	for round := range passRounds {
		for i, n := range []*node{with, without} {
			took, err := w.download(ctx, func() string { return n.address })
			if err != nil {
				return err
			}
			if sum[i] += took; round == 0 {
				first = took // in the end of those who come to the node without the tunnel
			}
		}
	}
	away, err := without.counted(ctx, "porchlight_relay_passed_on_total")
	if err != nil {
		return err
	}
	r.add(name, perGB, sum[1]/passRounds)
	r.atMost(name, passed, sum[1]/sum[0], 1.7)
	r.add(name, "in the first of the turns, CPU ms a GB", first)
	r.add(name, "visitors passed on", away-before)
	return nil
}

// apart waits until the only computer is at two nodes, and is one of them and one without.
func (w *world) apart(ctx context.Context) (with, without *node, err error) {
	for end := time.Now().Add(w.patience); time.Now().Before(end); {
		tunnels := 0.0
		with, without = nil, nil
		for _, n := range w.running {
			here, err := n.counted(ctx, "porchlight_relay_tunnels")
			if err != nil {
				return nil, nil, err
			}
			if tunnels += here; here > 0 {
				with = n
			} else {
				without = n
			}
		}
		if tunnels == 2 && without != nil {
			return with, without, nil
		}
		if err := rest(ctx, lookEvery); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errors.New("the computer is not at two nodes of three")
}

// counted is what a node counts by this name.
func (n *node) counted(ctx context.Context, metric string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(n.ready(), "/readyz")+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(raw), "\n"+metric+" ")
	if !found {
		return 0, fmt.Errorf("%s has no %s", n.name, metric)
	}
	value, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(value, 64)
}

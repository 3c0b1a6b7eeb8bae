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
)

// passed is what a byte costs that goes by two nodes, as a part of what it costs at one.
const passed = "CPU a GB ÷ that of one node"

// passRounds is how often each node has its turn; the median counts.
const passRounds = 5

// pass measures bytes of a visitor who comes to a node that has the computer's tunnel,
// and of one who comes to the other.
func pass(ctx context.Context, s settings, r *results) error {
	w, err := openWorld(ctx, s, shape{nodes: 2, pinned: true})
	if err != nil {
		return err
	}
	return errors.Join(w.passOn(ctx, r), w.close())
}

func (w *world) passOn(ctx context.Context, r *results) error {
	if err := w.populate(ctx, 1); err != nil {
		return err
	}
	if _, err := w.await(ctx); err != nil {
		return err
	}
	for range 2 { // the first visitor between two nodes pays for their getting to know each other
		conn, err := visit(ctx, w.running[1].address, w.homes[0].Name)
		if err != nil {
			return err
		}
		_ = conn.Close()
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
	r.atMost("a GB passed on by another node", passed, each[1]/each[0], 1.5)
	plain, err := w.running[1].counted(ctx, "porchlight_relay_passed_on_plain_total")
	if err != nil {
		return err
	}
	all, err := w.running[1].counted(ctx, "porchlight_relay_passed_on_total")
	if err != nil {
		return err
	}
	r.note("a GB passed on by another node", "visitors without TLS between the nodes, of 100", 100*plain/max(1, all), nil, "higher")
	return nil
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

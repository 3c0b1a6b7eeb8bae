package main

import (
	"context"
	"errors"
)

// passed is what a byte costs that goes by two nodes, as a part of what it costs at one.
const passed = "CPU a GB ÷ that of one node"

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
	var each [2]float64
	for i, name := range []string{"a GB by the node with the tunnel", "a GB passed on by another node"} {
		var err error
		if each[i], err = w.download(ctx, func() string { return w.running[i].address }); err != nil {
			return err
		}
		r.add(name, perGB, each[i])
	}
	r.atMost("a GB passed on by another node", passed, each[1]/each[0], 1.5)
	return nil
}

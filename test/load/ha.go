package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What is measured of changes while the primary is replaced.
const (
	lostWrites    = "acknowledged writes lost"
	longestPause  = "longest any writer waited, s"
	writesKept    = "writes acknowledged"
	writesFailed  = "tries answered by an error"
	unheardWrites = "kept, though the answer was an error"
)

// ha has programs refresh tokens and owners give and withdraw apps while the primary of
// three PostgreSQL servers is replaced: by an order, and because its machine dies. Known
// visitors go on meanwhile.
func ha(ctx context.Context, s settings, r *results) error {
	w, err := openWorld(ctx, s, shape{nodes: 3, servers: 3})
	if err != nil {
		return err
	}
	return errors.Join(w.replacements(ctx, r), w.close())
}

func (w *world) replacements(ctx context.Context, r *results) error {
	n := 300
	if w.quick {
		n = 60
	}
	if err := w.populate(ctx, n); err != nil {
		return err
	}
	if is, err := w.await(ctx); err != nil || len(is.Back) < n {
		return errors.Join(err, fmt.Errorf("%d of %d computers are there", len(is.Back), n))
	}
	all, err := w.writers(ctx)
	if err != nil {
		return err
	}
	defer all.close()
	if err := w.replaced(ctx, r, all, "a Patroni switchover", w.cluster.switchover); err != nil {
		return err
	}
	var dead *member
	err = w.replaced(ctx, r, all, "the primary's machine killed (kill -9)", func(ctx context.Context) (err error) {
		dead, err = w.cluster.killPrimary(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if !w.quick { // what was kept is where it is, whether or not a third server copies it
		if err := w.cluster.begin(dead); err != nil {
			return err
		}
		_, err = w.cluster.formed(ctx)
		w.says("%s is back, and copies; %v", dead.name, err)
	}
	return errors.Join(err, all.readAll(ctx, r, "after both, everything read back"))
}

// replaced has everybody write and visit while the primary is replaced.
func (w *world) replaced(ctx context.Context, r *results, all *writers, name string, replace func(context.Context) error) error {
	if _, err := w.cluster.formed(ctx); err != nil {
		return err
	}
	return w.visitedWhile(ctx, r, name, 0, w.anyNode, func(ctx context.Context) error {
		stop := all.start(ctx)
		err := rest(ctx, w.window/8)
		began := time.Now()
		if err == nil {
			err = replace(ctx)
		}
		w.says("%s: the order took %.1f s", name, time.Since(began).Seconds())
		if err == nil {
			err = all.goOn(ctx, time.Now())
		}
		err = errors.Join(err, rest(ctx, w.window/8))
		stop()
		all.note(r, name)
		return err
	})
}

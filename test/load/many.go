package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// What the part many is: as many nodes as hold two connections of each computer, where a
// process has 20,000 files, of which a node gives computers three quarters, and of those three
// quarters to who has another connection; and steps in which computers come.
const (
	manyComputers = 100_000
	manyNodes     = 20
	manyStep      = 5000
	// spareMemory is what the machine keeps: the part ends before it begins to kill.
	spareMemory = 2 << 30
)

// many has more and more computers connect to a cluster, until there are all of them or the
// machine has no memory left for more, and visits some. Each computer keeps two tunnels.
// Where the processors end first, who comes pushes others out: then only how many were there
// is noted.
func many(ctx context.Context, s settings, r *results) error {
	n, nodes, step := s.most, manyNodes, manyStep
	if s.quick {
		n, nodes, step = min(n, 200), 3, 100
	}
	s.patience *= 3 // they come through the cores that measure
	w, err := openWorld(ctx, s, shape{nodes: nodes, dense: true})
	if err != nil {
		return err
	}
	return errors.Join(w.fill(ctx, r, n, step), w.close())
}

func (w *world) fill(ctx context.Context, r *results, n, step int) error {
	empty, err := w.spent(ctx)
	if err != nil {
		return err
	}
	name := fmt.Sprint("computers asleep, ", onNodes(w.nodes))
	for at := 0; at < n; at += step {
		free, err := freeMemory()
		if err != nil {
			return err
		}
		w.says("%d computers, %.1f GB of memory free", at, float64(free)/1e9)
		if free < spareMemory {
			break
		}
		if err := w.populate(ctx, min(n, at+step)); err != nil {
			return err
		}
		is, err := w.await(ctx)
		if err != nil {
			return err
		}
		if len(is.Back) < is.Computers {
			fmt.Fprintf(os.Stderr, "load: of %d computers %d are there: %s\n", is.Computers, len(is.Back), is.Trouble)
			r.atLeast(name, there, float64(len(is.Back)), float64(n))
			return nil
		}
	}
	r.atLeast(name, there, float64(len(w.homes)), float64(n))
	if err := rest(ctx, min(w.window, closesFor)); err != nil {
		return err
	}
	if w.calm, err = w.during(ctx, func() error { return rest(ctx, w.window) }); err != nil {
		return err
	}
	each := float64(max(1, len(w.homes)))
	r.add(name, nodeCPU, perSecond(ms(w.calm.nodes), w.calm.took))
	r.add(name, houseCPU, perSecond(ms(w.calm.houses), w.calm.took))
	r.add(name, nodeMemory, w.calm.resident/1e6)
	r.atMost(name, eachMemory, (w.calm.resident-empty.resident)/1024/each, 30)
	r.add(name, nodeFiles, w.calm.files)
	r.add(name, statements, perSecond(w.calm.statements, w.calm.took))
	r.add(name, baseCPU, perSecond(ms(w.calm.database), w.calm.took))
	return w.visitsAt(ctx, r, visitsASec)
}

// freeMemory is what the machine can still give, in bytes.
func freeMemory() (uint64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("the system does not say how much memory is free")
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// settles is how long a node is ready before visitors are sent to it, as balancers
	// wait for a few good answers: nodes have to learn of each other.
	settles = 6 * time.Second
	// forgets is how long after the last node of before nobody counts on it any more.
	forgets = 3 * time.Second
)

var errNoHistory = errors.New("is not in this clone, so the version of before cannot be built: git fetch --unshallow")

// upgrade replaces three nodes of an earlier version by those of this one, one after the
// other, while visitors come, and goes back.
func upgrade(ctx context.Context, s settings, r *results) error {
	dir, err := buildBefore(ctx, s.before)
	if errors.Is(err, errNoHistory) && s.part == "all" {
		fmt.Fprintln(os.Stderr, "upgrade: left out:", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	old := filepath.Join(dir, "porchlight-control")
	w, err := openWorld(ctx, s, shape{nodes: 3, drain: 3 * time.Second, program: old})
	if err != nil {
		return err
	}
	return errors.Join(w.upgrades(ctx, r, old), w.close())
}

// buildBefore builds the server of a commit, in a directory of its own.
func buildBefore(ctx context.Context, commit string) (dir string, err error) {
	if exec.CommandContext(ctx, "git", "cat-file", "-e", commit+"^{commit}").Run() != nil {
		return "", fmt.Errorf("the commit %s %w", commit, errNoHistory)
	}
	if dir, err = os.MkdirTemp("", "porchlight-before-"); err != nil {
		return "", err
	}
	tree := filepath.Join(dir, "tree")
	build := exec.CommandContext(ctx, "sh", "-ec", `mkdir "$2" && git archive "$1" | tar -x -C "$2" && cd "$2" && go build -trimpath -o .. ./control/cmd/porchlight-control`, "sh", commit, tree)
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("building %s: %w\n%s", commit, err, out), os.RemoveAll(dir))
	}
	return dir, os.RemoveAll(tree)
}

func (w *world) upgrades(ctx context.Context, r *results, old string) error {
	n := 300
	if w.quick {
		n = 60
	}
	if err := w.populate(ctx, n); err != nil {
		return err
	}
	is, err := w.await(ctx)
	if err != nil {
		return err
	}
	r.atLeast(fmt.Sprintf("%d computers, 3 nodes of %s, %d visits a second", n, w.before, visitsASec), there, float64(len(is.Back)), float64(n))
	b := newBalancer(settles)
	for len(b.admitted()) < len(w.running) {
		b.look(w.running)
		if err := rest(ctx, time.Second/4); err != nil {
			return err
		}
	}
	if err := w.awaitTunnels(ctx, r, "before the first is replaced"); err != nil {
		return err
	}
	if err := w.replaceEach(ctx, r, b, w.running, "new", w.program); err != nil {
		return err
	}
	if err := w.withoutRows(ctx, r); err != nil {
		return err
	}
	back := w.running
	if w.quick { // the first is what new nodes have to get on with
		back = back[:1]
	}
	return w.replaceEach(ctx, r, b, back, w.before, old)
}

// replaceEach puts another program in the place of that of each of some nodes, while
// visitors come.
func (w *world) replaceEach(ctx context.Context, r *results, b *balancer, nodes []*node, called, program string) error {
	looking, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		for rest(looking, time.Second/2) == nil {
			b.look(w.running)
		}
	})
	for i, n := range nodes {
		if called == "new" {
			if err := w.mayUpgrade(ctx); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("%s replaced by %s, %d of 3 are", n.name, called, i+1)
		err := w.visitedWhile(ctx, r, name, 0, b.node, func(ctx context.Context) error {
			n.Signal(syscall.SIGTERM)
			n.Wait()
			n.program = program
			if err := w.start(ctx, n); err != nil {
				return err
			}
			if err := rest(ctx, settles+w.window/4); err != nil {
				return err
			}
			is, err := w.await(ctx)
			r.atLeast(name, there, float64(is.Welcomed), float64(len(w.homes)))
			return errors.Join(err, w.awaitTunnels(ctx, r, name))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitTunnels waits until every computer is at two nodes again: who has one tunnel is
// away for a moment when that node is next.
func (w *world) awaitTunnels(ctx context.Context, r *results, name string) error {
	want := float64(2 * len(w.homes))
	for began := time.Now(); ; {
		var all float64
		for _, n := range w.running {
			some, err := n.metric("porchlight_relay_tunnels")
			if err != nil {
				return err
			}
			all += some
		}
		if all >= want || time.Since(began) > w.patience {
			r.atLeast(name, "tunnels", all, want)
			r.add(name, "until each had two, s", time.Since(began).Seconds())
			return nil
		}
		if err := rest(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// metric is what a node says of itself under a name.
func (n *node) metric(name string) (value float64, err error) {
	res, err := http.Get(strings.TrimSuffix(n.ready(), "/readyz") + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, fmt.Errorf("%s does not tell %s", n.name, name)
}

func (b *balancer) admitted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

// mayUpgrade asks the new program.
func (w *world) mayUpgrade(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, w.program, "upgrade", "--check", "--json", "--postgres", w.database)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("upgrade --check: %w\n%s", err, out)
	}
	var u struct {
		Next string `json:"next"`
	}
	if err := json.Unmarshal(out, &u); err != nil {
		return err
	}
	w.says("upgrade --check: %s", u.Next)
	return nil
}

// withoutRows counts what nodes write and ask while nobody does anything, once no node of
// before is there.
func (w *world) withoutRows(ctx context.Context, r *results) error {
	if err := rest(ctx, forgets); err != nil {
		return err
	}
	newest := func() (at string, err error) {
		conn, err := pgx.Connect(ctx, w.database)
		if err != nil {
			return "", err
		}
		defer conn.Close(ctx)
		return at, conn.QueryRow(ctx, `select coalesce(max(xmin::text::bigint), 0)::text from kv where key >= 'relay-tunnel/' and key < 'relay-tunnel0'`).Scan(&at)
	}
	before, err := newest()
	if err != nil {
		return err
	}
	used, err := w.during(ctx, func() error {
		// Computers come and go, which rows would tell of.
		if err := w.populate(ctx, len(w.homes)+10); err != nil {
			return err
		}
		_, err := w.await(ctx)
		return errors.Join(err, rest(ctx, forgets))
	})
	if err != nil {
		return err
	}
	after, err := newest()
	if err != nil {
		return err
	}
	written := 0.0
	if after != before {
		written = 1
	}
	r.atMost("all nodes are new, and 10 computers came", "rows of tunnels were written", written, 0)
	w.says("%.1f statements a second meanwhile", used.statements/used.took.Seconds())
	used, err = w.during(ctx, func() error { return rest(ctx, w.window) })
	r.add("all nodes are new, and everybody sleeps", "statements a second, 3 nodes", used.statements/used.took.Seconds())
	return err
}

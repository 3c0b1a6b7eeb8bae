package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"porchlight/control/controlapi"
)

// triesAMinute is how often a computer of before may ask for its sync once it was told to
// update: it waits five minutes, and a part of them begin to wait in the time looked at.
const triesAMinute = 2

var errNoHistory = errors.New("is not in this clone, so the version of before cannot be built: git fetch --unshallow")

// upgrade has computers and nodes of before version 0.1.0 meet nodes of this one: they are
// told to update, do not storm, and are all there once they are replaced.
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
	w, err := openWorld(ctx, s, shape{nodes: 3, drain: 3 * time.Second, program: old, houses: filepath.Join(dir, "load")})
	if err != nil {
		return err
	}
	return errors.Join(w.upgrades(ctx, r, old), w.close())
}

// buildBefore builds the server and this program of a commit, in a directory of its own.
func buildBefore(ctx context.Context, commit string) (dir string, err error) {
	if exec.CommandContext(ctx, "git", "cat-file", "-e", commit+"^{commit}").Run() != nil {
		return "", fmt.Errorf("the commit %s %w", commit, errNoHistory)
	}
	if dir, err = os.MkdirTemp("", "porchlight-before-"); err != nil {
		return "", err
	}
	tree := filepath.Join(dir, "tree")
	build := exec.CommandContext(ctx, "sh", "-ec", `mkdir "$2" && git archive "$1" | tar -x -C "$2" && cd "$2" && go build -trimpath -o .. ./control/cmd/porchlight-control ./test/load`, "sh", commit, tree)
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
	r.atLeast(fmt.Sprintf("%d computers and 3 nodes of %s", n, w.before), there, float64(len(is.Back)), float64(n))

	for _, node := range w.running { // all of them, before the first of this version
		node.Signal(syscall.SIGTERM)
		node.Wait()
	}
	if _, err := w.tell(order{Mark: true}); err != nil {
		return err
	}
	for _, node := range w.running {
		node.program = w.program
		if err := w.start(ctx, node); err != nil {
			return err
		}
	}
	is, err = w.awaitTold(ctx)
	if err != nil {
		return err
	}
	name, counted := "3 nodes of this version", 0.0
	if strings.Contains(is.Trouble, controlapi.SayOutdated) {
		counted = 1
	}
	r.atLeast(name, "computers of before are told to update", counted, 1)
	if is, err = w.tell(order{Mark: true}); err != nil {
		return err
	}
	if err := rest(ctx, time.Minute); err != nil {
		return err
	}
	if is, err = w.tell(order{}); err != nil {
		return err
	}
	r.atMost(name, "computers of before there", float64(len(is.Back)), 0)
	r.atMost(name, "syncs tried a minute, each", float64(is.Tried)/float64(n), triesAMinute)

	for _, h := range w.houses {
		if err := h.stop(); err != nil {
			return err
		}
	}
	homes := len(w.homes)
	w.houses, w.shape.houses, w.homes = nil, "", nil
	if err := w.populate(ctx, homes); err != nil {
		return err
	}
	if is, err = w.await(ctx); err != nil {
		return err
	}
	r.atLeast("and the computers, too", there, float64(len(is.Back)), float64(n))
	return w.refusesBefore(ctx, r, old)
}

// awaitTold waits until a sync of every house was answered by a refusal.
func (w *world) awaitTold(ctx context.Context) (report, error) {
	return w.awaitAll(ctx, func(r report) int {
		if strings.Contains(r.Trouble, controlapi.SayOutdated) {
			return r.Computers
		}
		return -1
	})
}

// refusesBefore puts a node of before beside those of this version.
func (w *world) refusesBefore(ctx context.Context, r *results, old string) error {
	last := w.running[len(w.running)-1]
	last.Signal(syscall.SIGTERM)
	last.Wait()
	last.program = old
	if err := w.start(ctx, last); err != nil {
		return err
	}
	for _, node := range w.running[:len(w.running)-1] {
		if _, err := node.Logs(ctx, "a version before 0\\.1\\.0 uses this database, and is refused"); err != nil {
			return err
		}
	}
	is, err := w.await(ctx)
	r.atLeast("beside one node of "+w.before, there, float64(len(is.Back)), float64(len(w.homes)))
	tunnels, metricErr := last.metric("porchlight_relay_tunnels")
	r.atMost("beside one node of "+w.before, "tunnels there", tunnels, 0)
	return errors.Join(err, metricErr)
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

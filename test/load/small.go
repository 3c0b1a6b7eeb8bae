package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// What a server on a small box is judged by.
const (
	smallComputers = 100
	peakMemory     = "server, resident MiB at most"
)

// inAFile is what a server takes at most whose rows are in a file, with as many computers as a
// box for one house or club has: they connect, and each is visited.
func inAFile(ctx context.Context, s settings, r *results) error {
	w, err := openWorld(ctx, s, shape{nodes: 1, file: true})
	if err != nil {
		return err
	}
	return errors.Join(w.fits(ctx, r), w.close())
}

func (w *world) fits(ctx context.Context, r *results) error {
	server := w.running[0]
	for i := range smallComputers {
		var added struct {
			Credential string `json:"credential"`
		}
		name := fmt.Sprintf("home%05d", i)
		if err := server.Run(&added, "account", "add", name+"@example.net", "--short", name); err != nil {
			return err
		}
		w.homes = append(w.homes, home{Name: name, Credential: added.Credential, Address: homeAddress(i)})
	}
	if err := w.move(0, len(w.homes)); err != nil {
		return err
	}
	is, err := w.await(ctx)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d computers, rows in a file", smallComputers)
	r.atLeast(name, there, float64(len(is.Back)), smallComputers)
	failed := 0.
	for _, h := range w.homes {
		conn, err := visit(ctx, server.address, h.Name)
		if err != nil {
			failed++
			continue
		}
		_ = conn.Close()
	}
	r.atMost(name, failures, failed, 0)
	peak, err := peakOf(server.PID())
	r.atMost(name, peakMemory, peak, 64)
	return err
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s*([0-9]+) kB$`)

// peakOf is the most memory that a process had at a time, in MiB.
func peakOf(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	peak := peakLine.FindSubmatch(status)
	if peak == nil {
		return 0, errors.New("the system does not say how much memory a process had at most")
	}
	kb, err := strconv.ParseFloat(string(peak[1]), 64)
	return kb / 1024, err
}

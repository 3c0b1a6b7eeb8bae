package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

const report = `finished in 3.00s, 13971.00 req/s, 3.12MB/s
requests: 41913 total, 41961 started, 41913 done, 41913 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 41913 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 9.35MB (9807642) total, 5.12MB (5365000) headers (space savings 0.00%), 4.00MB (4191300) data
`

// What was not answered well must not be counted as fast.
func TestSucceeded(t *testing.T) {
	t.Parallel()
	if n, err := succeeded([]byte(report)); n != 41913 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, change := range [][2]string{
		{"41913 2xx, 0 3xx", "41000 2xx, 913 3xx"},
		{"0 4xx", "1 4xx"},
		{"0 5xx", "1 5xx"},
		{"0 failed", "3 failed"},
		{"0 errored", "3 errored"},
		{"41913 2xx", "0 2xx"},
		{"status codes", "codes"},
	} {
		if n, err := succeeded([]byte(strings.Replace(report, change[0], change[1], 1))); err == nil {
			t.Errorf("%s: %d requests succeeded", change[1], n)
		}
	}
}

func TestCPU(t *testing.T) {
	t.Parallel()
	c := contender{pid: os.Getpid()}
	before, err := c.cpu()
	if err != nil {
		t.Fatal(err)
	}
	// Whoever waits for three ticks of the kernel's count sees it grow.
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if after, err := c.cpu(); err != nil {
			t.Fatal(err)
		} else if after >= before+30*time.Millisecond {
			return
		}
	}
	t.Error("thirty seconds of work are not counted")
}

func TestMedianAndGoals(t *testing.T) {
	t.Parallel()
	p := part{name: "agent", goals: []goal{
		{name: smallH1, metric: cpuRequest, ours: oursCookie, peer: caddy, limit: 1. / 3},
		{name: idle, metric: memory, ours: oursCookie, limit: 8},
	}}
	r := &results{figures: map[measure][]float64{}}
	for _, figure := range []float64{9, 1, 3} {
		r.add("agent", smallH1, cpuRequest, oursCookie, figure)
		r.add("agent", smallH1, cpuRequest, caddy, figure*3)
		r.add("agent", smallH1, cpuRequest, nginx, figure)
		r.add("agent", idle, memory, oursCookie, figure)
	}
	rows := r.rows(p)
	if len(rows) != 3 || !rows[0].met() || !rows[1].met() || rows[2].Goal != nil || rows[2].Ratio != 1 {
		t.Errorf("%+v", rows)
	}
	r.add("agent", smallH1, cpuRequest, oursCookie, 9)
	r.add("agent", smallH1, cpuRequest, oursCookie, 9)
	r.add("agent", idle, memory, oursCookie, 9)
	r.add("agent", idle, memory, oursCookie, 9)
	rows = r.rows(p)
	if rows[0].met() || rows[0].Ratio != 1 || rows[1].met() || rows[1].Peer != theGoal {
		t.Errorf("%+v", rows)
	}
	var out strings.Builder
	r.print(&out, p)
	if want := "÷ Caddy, no sign-in | 1.00 | ≤ 0.33 | missed |"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

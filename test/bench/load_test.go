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
	r := &results{}
	ours, peer := contender{name: oursCookie}, contender{name: caddy}
	for _, figure := range []float64{9, 1, 3} {
		r.add(cpuH1, ours, figure)
		r.add(cpuH1, peer, figure*3)
	}
	var out strings.Builder
	r.print(&out)
	if want := "÷ Caddy, no sign-in | 0.33 | ≤ 0.33 | met |"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
	r.add(cpuH1, ours, 9)
	r.add(cpuH1, ours, 9)
	out.Reset()
	r.print(&out)
	if want := "÷ Caddy, no sign-in | 1.00 | ≤ 0.33 | missed |"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

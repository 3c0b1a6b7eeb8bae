package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// TestMain lets this program play the roles that its tests start it for.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// tiny is a run that measures nothing well, and everything.
func tiny(t *testing.T) settings {
	s := full()
	s.rounds, s.span, s.settle, s.rate, s.connections = 1, 20*time.Millisecond, 20*time.Millisecond, 500, 4
	s.handshakes, s.idle, s.bulk, s.grants, s.accounts = 16, 20, 8<<20, 100, 1000
	s.tools, s.programs = "../../out/bench", "../../bin"
	s.tiny, s.verbose = true, testing.Verbose()
	s.sockets, s.resting, s.clicks, s.signIns = 20, 20, 3, 4
	dir := t.TempDir()
	s.out, s.docs = filepath.Join(dir, "out", "results.json"), filepath.Join(dir, "performance.md")
	return s
}

// TestEveryPart plays each part with tiny spans: every figure of ours is there and is
// one, the rows reach their file, and the document is written when the machine was
// quiet, and only then. Peers that are not installed are left out.
func TestEveryPart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("h2load"); err != nil {
		t.Skip("h2load is not installed: build/setup.sh test")
	}
	for _, p := range parts() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := tiny(t)
			if p.name == "desktop" && !isFile(s.programs+"/porchlight") || p.name == "sign-in" && !isFile(s.programs+"/porchlight-control") {
				t.Skip("the programs are not built: make build")
			}
			dir := t.TempDir()
			programs.Must(t, writeCertificate(dir))
			r := newResults(s, "0.10 0.20 0.30")
			programs.Must(t, p.play(t.Context(), s, dir, r))
			for _, w := range p.work {
				checkWork(t, r, p, w)
			}
			checkKept(t, s, r, p)
		})
	}
}

// checkWork looks for a figure of ours of a work, and at all there are.
func checkWork(t *testing.T, r *results, p part, w work) {
	found := false
	for m, figures := range r.figures {
		if m.part != p.name || m.name != w.name {
			continue
		}
		found = found || isOurs(m.of)
		for _, figure := range figures {
			// What idle ones take is less than nothing where memory was given back meanwhile, and a
			// process may have had no processor in so short a span on a busy machine.
			waited := figure == 0 && strings.HasPrefix(m.metric, "CPU ")
			if math.IsNaN(figure) || math.IsInf(figure, 0) || figure <= 0 && !waited && m.metric != memory && m.metric != added50 {
				t.Errorf("%s, %s: %s has %v", m.name, m.metric, m.of, figure)
			}
		}
	}
	if !found && w.group != "page" { // which needs a browser
		t.Errorf("nothing of ours was measured at %s", w.name)
	}
}

func checkKept(t *testing.T, s settings, r *results, p part) {
	const by = "by hand"
	begin, end := "<!-- measured: "+p.name+" -->\n", "<!-- end: "+p.name+" -->\n"
	programs.Must(t, os.WriteFile(s.docs, []byte(by+"\n"+begin+"old\n"+end+by+"\n"), 0o600))
	r.about.Quiet = false
	programs.Must(t, r.keep(p))
	if text, err := os.ReadFile(s.docs); err != nil || !strings.Contains(string(text), "\nold\n") {
		t.Errorf("the document of a machine that was not quiet: %v\n%s", err, text)
	}
	r.about.Quiet = true
	programs.Must(t, r.keep(p))
	text, err := os.ReadFile(s.docs)
	if err != nil || strings.Contains(string(text), "\nold\n") || strings.Count(string(text), by) != 2 {
		t.Errorf("the document: %v\n%s", err, text)
	}
	judged := slices.ContainsFunc(r.rows(p), row.judged) // without a goal there is nothing to draw
	if strings.Contains(string(text), "| goal |") != judged || isFile(filepath.Join(filepath.Dir(s.docs), "performance-"+p.name+".svg")) != judged {
		t.Errorf("goals: %v, and the document says:\n%s", judged, text)
	}
	raw := programs.Got(os.ReadFile(s.out))(t)
	var k kept
	if err := json.Unmarshal(raw, &k); err != nil || len(k.Rows) == 0 || len(k.Rows) != len(r.rows(p)) || !k.Quiet {
		t.Errorf("%v, quiet %v, %d rows of %d", err, k.Quiet, len(k.Rows), len(r.rows(p)))
	}
}

// The document has a place for each part.
func TestDocumentHasEveryPart(t *testing.T) {
	t.Parallel()
	text := programs.Got(os.ReadFile("../../docs/measured/bench.md"))(t)
	for _, p := range parts() {
		for _, mark := range []string{"<!-- measured: " + p.name + " -->\n", "<!-- end: " + p.name + " -->\n"} {
			if strings.Count(string(text), mark) != 1 {
				t.Errorf("%q is not there once", mark)
			}
		}
	}
}

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

// Not beside the others: the parts that they play are children of this process, and
// end meanwhile.
func TestCPU(t *testing.T) {
	c := contender{pid: os.Getpid()}
	before := programs.Got(c.cpu())(t)
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

// Weakness: one page that a slow Chromium did not load in time threw all figures of the
// part away.
// Checked: the rest is kept, and the run ends with what failed; anything else ends it.
func TestAFailedPageKeepsTheRest(t *testing.T) {
	t.Parallel()
	why := errors.New("context deadline exceeded")
	does := func(err error) work {
		return work{"page", wholePage, []string{oursCookie}, func(context.Context, *stage, contender) ([]reading, error) { return nil, err }}
	}
	rest := work{"requests", smallH1, []string{oursCookie}, func(context.Context, *stage, contender) ([]reading, error) {
		return []reading{{cpuRequest, 1}}, nil
	}}
	start := func(st *stage, _ context.Context) error {
		st.contenders = []contender{{name: oursCookie}}
		return nil
	}
	for _, err := range []error{alone{why}, why} {
		r := &results{figures: map[measure][]float64{}}
		dir := t.TempDir()
		programs.Must(t, writeCertificate(dir))
		p := part{name: "agent", start: start, work: []work{does(err), rest}}
		ended := p.play(t.Context(), tiny(t), dir, r)
		_, kept := r.median(measure{"agent", smallH1, cpuRequest, oursCookie})
		_, goesOn := errors.AsType[alone](err)
		if goesOn != kept || goesOn != (ended == nil) || goesOn != (len(r.failed) == 1) {
			t.Errorf("after %T it ends with %v, keeps the rest %v, and tells of %v", err, ended, kept, r.failed)
		}
	}
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

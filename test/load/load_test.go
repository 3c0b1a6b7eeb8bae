package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

var program string

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		if err := beComputers(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(programs.Main(m, func(dir string) { program = dir }, "porchlight/control/cmd/porchlight-control"))
}

func small() settings {
	return settings{
		computers: []int{1}, clusters: []int{2}, most: 200, herd: 2, bulk: 1 << 20, distance: 10 * time.Millisecond,
		window: 200 * time.Millisecond, patience: programs.Patience, programs: program, quick: true,
	}
}

// Every computer of the parts is there, is visited, and comes back, and each figure is a
// row. What the figures are is no matter here.
func TestParts(t *testing.T) {
	for _, tt := range []struct {
		part string
		run  func(context.Context, settings, *results) error
		want map[row]float64 // by name and metric
	}{
		{"cost-2", parts(2)[0].run, map[row]float64{
			{Name: "1 computers asleep, 2 nodes", Metric: there}:      1,
			{Name: "1 computers start again, 2 nodes", Metric: there}: 1,
			{Name: "a visit, 2 nodes", Metric: failures}:              0,
		}},
		{"herd", herd, map[row]float64{
			{Name: "2 computers back after kill -9, PostgreSQL 10ms away", Metric: there}: 2,
		}},
		{"pass", pass, map[row]float64{}},
		{"many", many, map[row]float64{
			{Name: "computers asleep, 3 nodes", Metric: there}: 200,
			{Name: "a visit, 3 nodes", Metric: failures}:       0,
		}},
		{"small", inAFile, map[row]float64{{Name: "100 computers, rows in a file", Metric: there}: smallComputers}},
	} {
		t.Run(tt.part, func(t *testing.T) {
			t.Parallel()
			s := small()
			s.out = filepath.Join(t.TempDir(), "results.json")
			r := newResults(t.Context(), s).of(tt.part)
			programs.Must(t, tt.run(t.Context(), s, r))
			programs.Must(t, r.keep(tt.part, true))
			k, err := readKept(s.out)
			if err != nil || !k.Parts[tt.part].Whole {
				t.Fatalf("%+v, %v", k.Parts, err)
			}
			for want, value := range tt.want {
				if got, ok := get(k.Rows, want.Name, want.Metric); !ok || got != value {
					t.Errorf("%s, %s: %v (noted: %t), not %v", want.Name, want.Metric, got, ok, value)
				}
			}
		})
	}
}

// The paper multiplies what was measured, and says what ends first.
func TestPaper(t *testing.T) {
	t.Parallel()
	var rows []row
	of := func(name string, figures map[string]float64) {
		for metric, value := range figures {
			rows = append(rows, row{Part: costPart(1), Name: name, Metric: metric, Value: value})
		}
	}
	asleep := map[string]float64{there: 1000, eachCPU: .01, eachMemory: 40, eachFiles: 1, baseCPU: 20, statements: 100, rowsSaved: 10}
	of(asleepName(0, 1), map[string]float64{there: 0, baseCPU: 0, statements: 0, rowsSaved: 0})
	of(asleepName(1000, 1), asleep)
	of(asleepName(10_000, 1), map[string]float64{there: 9000}) // did not all come
	if said := paper(rows); !strings.Contains(said, "Not measured") {
		t.Errorf("without visits it says %q", said)
	}
	work := map[string]float64{eachMicro: 0, eachMicroDB: 0, eachAsked: 0}
	for _, name := range []string{"a visit, 1 node", "a token refreshed, 1 node", "a sign-in by mail, 1 node"} {
		of(name, work)
	}
	of("a GB to visitors, 1 node", map[string]float64{perGB: 0})
	said := paper(rows)
	for _, want := range []string{
		"Measured with 1000 computers", "| 10000 | 1 | memory | 1 |", "| 1000000 | 58 | memory | 40 | 100000 | 10000 | 42889 |",
		"| 10000000 | no number | memory | 400 | 1000000 | 100000 | – |",
		"What breaks first is the processor time of a PostgreSQL with 16 cores, at 400000 computers",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q but:\n%s", want, said)
		}
	}
}

// What operating.md tells an operator is what the tables of measured/load.md say: the
// command that writes those writes it, and nobody wrote over it.
func TestOperatorsReadWhatWasMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programs.Must(t, os.Mkdir(filepath.Join(dir, "measured"), 0o700))
	for _, name := range []string{"measured/load.md", "operating.md"} {
		text := programs.Got(os.ReadFile(filepath.Join("..", "..", "docs", name)))(t)
		programs.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	had, _ := os.ReadFile(filepath.Join(dir, "operating.md"))
	programs.Must(t, operating(filepath.Join(dir, "measured", "load.md")))
	if now, _ := os.ReadFile(filepath.Join(dir, "operating.md")); !bytes.Equal(had, now) || bytes.Contains(now, []byte("not measured")) {
		t.Errorf("docs/operating.md does not say what docs/measured/load.md does, which is now:\n%s", now)
	}
}

// A link takes the time of its round trip, and one that is cut keeps what is sent.
func TestLink(t *testing.T) {
	t.Parallel()
	const away = 20 * time.Millisecond
	socket := filepath.Join(t.TempDir(), "s")
	said := echoAt(t, socket)
	l := programs.Got(openLink(socket, away))(t)
	t.Cleanup(func() { _ = l.Close() })
	conn := dial(t, l.addr())
	began := time.Now()
	programs.Must(t, echo(conn))
	if took := time.Since(began); took < away {
		t.Errorf("a round trip of %v took %v", away, took)
	}
	l.part()
	heard := len(said)
	programs.Got(conn.Write([]byte{1}))(t)
	_ = conn.SetReadDeadline(time.Now().Add(2 * away))
	if _, err := conn.Read(make([]byte, 1)); !os.IsTimeout(err) || len(said) != heard {
		t.Errorf("over a link that is cut: %v", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(programs.Patience))
	l.join()
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Errorf("over a link that was mended: %v", err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s, err := parse([]string{"-computers", "100,10", "-quick"})
	if err != nil || !slices.Equal(s.computers, []int{10, 100}) || s.herd == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range [][]string{{"-computers", "0"}, {"-nodes", "two"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	if err := run(t.Context(), settings{part: "nothing"}); err == nil {
		t.Error("a part that is not there runs")
	}
}

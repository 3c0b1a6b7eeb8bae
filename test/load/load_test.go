package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		computers: []int{1}, clusters: []int{2}, herd: 2, distance: 10 * time.Millisecond,
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
		{"cost", cost, map[row]float64{
			{Name: "1 computers asleep, 2 nodes", Metric: there}: 1,
			{Name: "a visit, 2 nodes", Metric: failures}:         0,
		}},
		{"herd", herd, map[row]float64{
			{Name: "2 computers back after kill -9, PostgreSQL 10ms away", Metric: there}: 2,
		}},
	} {
		t.Run(tt.part, func(t *testing.T) {
			t.Parallel()
			s := small()
			s.out = filepath.Join(t.TempDir(), "results.json")
			r := newResults(t.Context(), s).of(tt.part)
			if err := tt.run(t.Context(), s, r); err != nil {
				t.Fatal(err)
			}
			if err := r.keep(tt.part, true); err != nil {
				t.Fatal(err)
			}
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

// A link takes the time of its round trip, and one that is cut keeps what is sent.
func TestLink(t *testing.T) {
	t.Parallel()
	const away = 20 * time.Millisecond
	socket := filepath.Join(t.TempDir(), "s")
	said := echoAt(t, socket)
	l, err := openLink(socket, away)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	conn := dial(t, l.addr())
	began := time.Now()
	if err := echo(conn); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < away {
		t.Errorf("a round trip of %v took %v", away, took)
	}
	l.part()
	heard := len(said)
	if _, err := conn.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
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

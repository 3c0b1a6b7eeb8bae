package main

import (
	"context"
	"fmt"
	"strings"
)

// The contenders of the growth part are one program with more and more to know: so
// many apps, people and sessions of theirs. One of each is what the others are
// compared with.
func ofEach(n int) string { return fmt.Sprintf("Porchlight, %d of each", n) }

var growth = []int{1, 10, 100, 1000}

const (
	atStart = "at rest"
	total   = "MB"
)

func growthPart() part {
	var all []string
	var goals []goal
	for _, n := range growth {
		all = append(all, ofEach(n))
		if n == 1 {
			continue
		}
		for _, name := range []string{smallH1, smallH2} {
			goals = append(goals, goal{name: name, metric: cpuRequest, ours: ofEach(n), peer: ofEach(1), limit: 1.25})
		}
	}
	loads := func(l load) work { return work{"requests", l.name, all, l.saturate} }
	return part{name: "growth", start: (*stage).startGrowthPart, goals: goals, work: []work{
		{"memory", atStart, all, totalMemory},
		loads(load{name: smallH1, path: "/"}),
		loads(load{name: smallH2, path: "/", streams: 1}),
		{"latency", atRate, all, paced},
	}}
}

func (st *stage) startGrowthPart(ctx context.Context) error {
	defer func() { st.env = nil }()
	for _, n := range growth {
		here := fmt.Sprint(st.dir, "/", n)
		if err := st.link(here); err != nil {
			return err
		}
		st.env = []string{scaleVariable + "=" + fmt.Sprint(n)}
		is, pid, err := st.role(ctx, st.self, "proxy", here, port(st.app.Addr), st.profileOf(fmt.Sprint("growth-", n)))
		if err != nil {
			return err
		}
		cookies := strings.Split(is.Cookie, " ")
		st.stand(contender{name: ofEach(n), addr: is.Addr, pid: pid, header: [2]string{"Cookie", cookies[0]}})
	}
	return nil
}

// totalMemory is all that a contender has.
func totalMemory(_ context.Context, _ *stage, c contender) ([]reading, error) {
	bytes, err := c.resident()
	return []reading{{total, bytes / 1e6}}, err
}

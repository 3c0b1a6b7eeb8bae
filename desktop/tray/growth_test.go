//go:build !darwin && !windows

package tray

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"fyne.io/systray"

	"porchlight/agent/agentapi"
	"porchlight/desktop/menu"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

// manyDays is what an owner's computer goes through: apps come, ask, are opened,
// leave, under names old and new; the same n is the same moment.
func manyDays(n int) agentapi.OwnerState {
	s := owner.Everyday()
	s.Seq = uint64(n)
	s.Here = n % 7
	for i := range n / 10 % 20 {
		s.Apps = append(s.Apps, owner.With(owner.Live(fmt.Sprintf("app%d", i), fmt.Sprintf("App %d of %d", i, n/100), 6000+i), func(a *agentapi.OwnerApp) {
			a.Paused = n%50 == 0
			if n%30 == 0 {
				a.Ailment = "not answering"
			}
			for j := range (n/10 + i) % agentapi.MaxNamed {
				a.Here = append(a.Here, fmt.Sprintf("person%d@example.com", j))
			}
			a.OpenTo, a.OpenToCount = a.Here, 2*len(a.Here)
		}))
	}
	for i := range n % 8 {
		s.Apps = append(s.Apps, owner.Pending(fmt.Sprintf("req%d", n+i), "Request", 7000+i))
	}
	for i := range n / 10 % 14 {
		s.Grants = append(s.Grants, agentapi.Grant{ID: fmt.Sprint(n + i), ClientName: "Client", Email: "bob@example.com", CreatedAt: owner.Noon.Add(time.Duration(n) * time.Second)})
	}
	s.Notices = []agentapi.Notice{{ID: uint64(n), Kind: agentapi.ActivityInvited, Text: fmt.Sprint(n)}}
	if n%11 == 0 {
		s.Trouble = owner.Silence
	}
	return s
}

// Ten thousand states (two thousand outside the long runs) leave nothing behind: not in the tray's lines, not in what
// the announcer remembers, and no goroutine. (What the panel is sent of it is
// measured by the desktop tests.) It is alone: it counts what the process holds.
func TestTenThousandStatesLeaveNothing(t *testing.T) {
	tr := New(slog.New(slog.DiscardHandler), func() string { return "dark" }, func(verbs.Action) {})
	tr.build()
	t.Cleanup(systray.ResetMenu) // which ends the goroutines of all lines
	now := owner.Noon
	an := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	grow := func(from, to int) (heap uint64, goroutines int) {
		for n := from; n < to; n++ {
			s := manyDays(n)
			tr.apply(menu.Draw(menu.Picture{OwnerState: s, AtLogin: n%2 == 0, Now: owner.Noon}))
			an.Next(s, func() []string { return nil })
			now = now.Add(time.Second)
		}
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	// As far as every line there can be is made.
	grow(1, 300)
	heap, goroutines := grow(300, 1000)
	states := 2000
	if os.Getenv("PORCHLIGHT_SOAK") != "" {
		states = 10000
	}
	heapThen, goroutinesThen := grow(1000, 1000+states)
	t.Logf("heap %d KiB, and %d KiB after %d states; goroutines %d and %d", heap>>10, heapThen>>10, states, goroutines, goroutinesThen)
	if goroutinesThen != goroutines {
		t.Errorf("%d goroutines became %d", goroutines, goroutinesThen)
	}
	if heapThen > heap+256<<10 {
		t.Errorf("the heap grew from %d to %d bytes", heap, heapThen)
	}
}

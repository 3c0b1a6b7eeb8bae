//go:build rig

package desktop

import (
	"os"
	"testing"
)

// TestDayOfEvents prints what the program holds, with no window, after a day in
// which something happens every half minute (a tenth of that outside the long
// runs): an app is paused and resumed, opened by a guest, and its options are
// changed. The second half of the day must not cost anything of its own.
func TestDayOfEvents(t *testing.T) {
	s := newSession(t, desk{})
	p := s.launch()
	s.trayShows("No app is on", true)
	address := p.approved("notes", "Notes", webApp(t, "notes"))
	bob := p.member("bob@example.com", "Notes")
	owner, ctx := p.ownerTier(), t.Context()
	t.Logf("private memory, no window yet: %.1f MiB (goal: below 30)", p.memory())

	events := 288
	if os.Getenv("PORCHLIGHT_SOAK") != "" {
		events = 2880
	}
	var half float64
	for n := range events {
		var err error
		switch n % 4 {
		case 0:
			_, err = owner.Pause(ctx, "notes")
		case 1:
			err = owner.Resume(ctx, "notes")
		case 2:
			_, err = bob.Open(ctx, address)
		case 3:
			_, err = owner.ChangeOptions(ctx, "notes", map[string]any{"forwarded": n%8 == 3})
		}
		if err != nil {
			t.Fatalf("event %d: %v", n, err)
		}
		if n == events/2 {
			half = p.memory()
		}
	}
	s.trayShows("Notes > Pause", true) // the menu has kept up
	after := p.memory()
	t.Logf("private memory after %d events: %.1f MiB, %.1f MiB half way (goal: below 30)", events, after, half)
	// Garbage comes and goes by a few MiB; 8 KiB kept for each event would not.
	if allowed := 5 + float64(events)/2*8/1024; after > half+allowed {
		t.Errorf("%d events cost %.1f MiB", events/2, after-half)
	}
}

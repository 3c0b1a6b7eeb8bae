package notes

import (
	"fmt"
	"testing"
	"time"

	"porchlight/test/owner"
)

// A program that asks under ever new names must not grow what is remembered.
func TestAnnouncerForgets(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := NewAnnouncer(Told{}, func() time.Time { return now })
	for i := range 1000 {
		a.Next(owner.State(owner.Pending(fmt.Sprintf("n%d", i), "N", 1)), func() []string { return nil })
		now = now.Add(askedAgain)
	}
	a.Next(owner.State(), func() []string { return nil })
	if len(a.requested) > 1 {
		t.Errorf("remembers %d requests that are gone", len(a.requested))
	}
}

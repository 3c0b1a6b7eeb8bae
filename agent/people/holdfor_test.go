package people

import (
	"testing"
	"time"

	"porchlight/internal/words"
)

// Weakness: a removal that is held can be taken back, and the control plane and the
// person hear of it only later. Checked: only the owner's is held; what a program
// asks for is ignored here, too, whatever the API lets through.
func TestHoldForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	program, owner := Actor{Name: words.Of("%s", "wiki"), Process: "7"}, Actor{Owner: true}
	for _, c := range []struct {
		by      Actor
		seconds int
		want    time.Duration
		refused bool
	}{
		{owner, 0, 0, false}, {owner, 1, time.Second, false}, {owner, 60, time.Minute, false}, {owner, 61, 0, true}, {owner, -1, 0, true},
		{program, 0, 0, false}, {program, 60, 0, false}, {program, 61, 0, true}, {Actor{}, 30, 0, false},
	} {
		if got, err := holdFor(c.by, c.seconds); got != c.want || (err != nil) != c.refused {
			t.Errorf("%+v, %d s: %v, %v; want %v", c.by, c.seconds, got, err, c.want)
		}
	}
}

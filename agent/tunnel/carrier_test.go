package tunnel

import (
	"context"
	"testing"
	"time"
)

// The sync goes by a relay that does not ask to be left, though it could not carry it
// lately, or else by the one whose last trouble is longer ago; a sync under way stays.
func TestCarrier(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for name, c := range map[string]struct {
		sessions []*session
		want     int // -1 for none
	}{
		"none":                   {[]*session{}, -1},
		"one has ended":          {[]*session{{ctx: ended}, {ctx: t.Context()}}, 1},
		"one failed":             {[]*session{{ctx: t.Context(), sync: syncing{failed: ago(time.Second)}}, {ctx: t.Context()}}, 1},
		"both failed":            {[]*session{{ctx: t.Context(), sync: syncing{failed: ago(2)}}, {ctx: t.Context(), sync: syncing{failed: ago(time.Second)}}}, 1},
		"the first drains":       {[]*session{{ctx: t.Context(), draining: true}, {ctx: t.Context(), sync: syncing{failed: ago(1)}}}, 1},
		"the second drains":      {[]*session{{ctx: t.Context(), sync: syncing{failed: ago(1)}}, {ctx: t.Context(), draining: true}}, 0},
		"both drain":             {[]*session{{ctx: t.Context(), draining: true, sync: syncing{failed: ago(1)}}, {ctx: t.Context(), draining: true}}, 1},
		"only one, which drains": {[]*session{nil, {ctx: t.Context(), draining: true}}, 1},
		"only an extra one":      {[]*session{nil, nil, {ctx: t.Context()}}, -1},
		"one carries it":         {[]*session{{ctx: t.Context()}, {ctx: t.Context(), sync: syncing{under: true, failed: ago(1)}}}, 1},
	} {
		tun := &Tunnel{}
		copy(tun.sessions[:], c.sessions)
		var want *session
		if c.want >= 0 {
			want = c.sessions[c.want]
		}
		if tun.carrier() != want {
			t.Errorf("%s: not that of slot %d", name, c.want)
		}
	}
}

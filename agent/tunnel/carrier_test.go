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
	// on is a session over which the sync failed so long ago; 0 for never.
	on := func(ctx context.Context, failed time.Duration, drains, carries bool) *session {
		s := &session{ctx: ctx, draining: drains, sync: syncing{under: carries}}
		if failed > 0 {
			s.sync.failed = time.Now().Add(-failed)
		}
		return s
	}
	these := func(sessions ...*session) []*session { return sessions }
	ctx := t.Context()
	good, drains := on(ctx, 0, false, false), on(ctx, 0, true, false)
	failed, failedNow, failedLast := on(ctx, time.Second, false, false), on(ctx, 1, false, false), on(ctx, 2, false, false)
	for name, c := range map[string]struct {
		sessions []*session
		want     int // -1 for none
	}{
		"none":                   {nil, -1},
		"one has ended":          {these(on(ended, 0, false, false), good), 1},
		"one failed":             {these(failed, good), 1},
		"both failed":            {these(failedLast, failed), 1},
		"the first drains":       {these(drains, failedNow), 1},
		"the second drains":      {these(failedNow, drains), 0},
		"both drain":             {these(on(ctx, 1, true, false), drains), 1},
		"only one, which drains": {these(nil, drains), 1},
		"only an extra one":      {these(nil, nil, good), -1},
		"one carries it":         {these(good, on(ctx, 1, false, true)), 1},
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

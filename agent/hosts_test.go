package agent

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/settings"
	"porchlight/agent/store"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// Weakness: a host that the owner took away stayed allowed where that failed once, until
// something else changed.
// Checked: it is tried again by itself, and no more once it was done.
func TestHostsAreSetAgainUntilTheyAre(t *testing.T) {
	t.Parallel()
	kept := programs.Got(store.Open(t.TempDir()))(t)
	t.Cleanup(func() { kept.Close() })
	synctest.Test(t, func(t *testing.T) {
		tried := 0
		a := &Agent{changes: new(broadcast.Signal), log: slog.New(slog.DiscardHandler)}
		a.settings = programs.Got(settings.New(kept, a.changes, func() {}))(t)
		a.cfg.AllowHosts = func(context.Context, []string) error {
			if tried++; tried < 3 {
				return errors.New("the disk is full")
			}
			return nil
		}
		programs.Run(t, a.followHosts)
		time.Sleep(time.Hour)
		synctest.Wait()
		if tried != 3 {
			t.Errorf("tried %d times", tried)
		}
	})
}

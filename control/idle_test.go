package control

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/feed"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// statements is a store that counts what a database would be sent: a transaction that
// reads is three, at least, and one for rows that are known is one.
type statements struct {
	kv.Store
	sent atomic.Int64
}

// took are those since it was asked last.
func (s *statements) took() int64 { return s.sent.Swap(0) }

func (s *statements) View(ctx context.Context, fn func(kv.Tx) error) error {
	s.sent.Add(3)
	return s.Store.View(ctx, fn)
}

func (s *statements) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	s.sent.Add(1)
	return s.Store.ViewOf(ctx, rows, fn)
}

func (s *statements) Update(ctx context.Context, fn func(kv.Tx) error) error {
	s.sent.Add(4)
	return s.Store.Update(ctx, fn)
}

func (s *statements) PutAll(ctx context.Context, ttl time.Duration, rows ...kv.Item) error {
	s.sent.Add(1)
	return s.Store.PutAll(ctx, ttl, rows...)
}

// Weakness: a node that nobody uses asked the database several times a second whether
// something had changed, and so did one that is alone. Checked: with news and nothing
// missed, and alone, it sends no more than one statement a second for ten thousand sleeping
// computers, and still finds within seconds what was told to nobody.
func TestIdleNodeSendsFewStatements(t *testing.T) {
	t.Parallel()
	for what, shape := range map[string]func(*Config){
		"hears news": func(c *Config) {
			c.Tell, c.Missed = func([]string) {}, func() bool { return false }
		},
		"is alone": func(c *Config) { c.Tell = func([]string) {} },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &statements{}
				b := newBench(t, shape, func(c *Config) {
					store.Store, c.Store, c.Now, c.SharedStore = c.Store, store, time.Now, true
				})
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- b.Run(ctx) }()
				id := ok[OwnedComputer](t)(b.computer("anna")).ID
				w := b.watch(id)
				b.sleepers(t, 10_000)
				time.Sleep(2 * sweepVersionsEvery)
				synctest.Wait()
				if !w.woken() {
					t.Error("not seen for the first time")
				}

				const seconds = 600
				store.took()
				time.Sleep(seconds * time.Second)
				synctest.Wait()
				if sent := store.took(); sent > seconds {
					t.Errorf("%d statements in %d s", sent, seconds)
				}

				changes := func(how string, store kv.Store, with func(*Config), within time.Duration) {
					t.Helper()
					other := b.node(func(c *Config) { c.Store, c.Tell, c.Missed = store, nil, nil }, with)
					programs.Must(t, other.update(t.Context(), func(tx *txn) error { tx.touch(id); return nil }))
					time.Sleep(within)
					synctest.Wait()
					if !w.woken() {
						t.Errorf("%s: not seen within %s", how, within)
					}
				}
				time.Sleep(sweepVersionsEvery / 2) // no sweep is to find it
				changes("told to nobody", b.made.Store, func(*Config) {}, feed.LookEvery+time.Second)
				told := func(c *Config) { c.Tell = func([]string) {} } // elsewhere
				changes("told where nobody hears it", b.made.Store, told, sweepVersionsEvery+time.Second)
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// sleepers are computers whose agents are told, and to whom nothing happens.
func (b *bench) sleepers(t *testing.T, n int) {
	credential := func(i int) string { return fmt.Sprintf("%0*d", tokenLen, i) }
	var rows []kv.Item
	for i := range n {
		id := fmt.Sprint("sleeps", i)
		rows = append(rows,
			kv.Item{Key: keyComputer(id), Value: fmt.Appendf(nil, `{"id":%q}`, id)},
			kv.Item{Key: keyCredential(hashOf(purposeCredential, credential(i))), Value: fmt.Appendf(nil, "%q", id)})
	}
	for some := range slices.Chunk(rows, kv.MaxRows) {
		programs.Must(b.t, b.store.PutAll(b.t.Context(), 0, some...))
	}
	for i := range n {
		<-b.tell(t, credential(i), "").told
	}
}

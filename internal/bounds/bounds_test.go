package bounds

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_700_000_000, 0)

// TestBucket: whatever is asked when, no stretch of time lets more in than the
// bucket holds and gets back, and who waits as long as told gets in.
func TestBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Bucket{rapid.IntRange(1, 20).Draw(t, "size"), time.Duration(rapid.IntRange(1, 1000).Draw(t, "refill")) * time.Millisecond}
		now := start
		var full time.Time
		var entered []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "pause")) * time.Millisecond)
			after, wait := b.Take(now, full)
			if wait > 0 {
				if _, again := b.Take(now.Add(wait), after); again != 0 {
					t.Fatalf("told to wait %v, and then %v more", wait, again)
				}
				continue
			}
			full, entered = after, append(entered, now)
		}
		for i, from := range entered {
			for j := i; j < len(entered); j++ {
				most := b.Size + int(entered[j].Sub(from)/b.Refill) + 1
				if j-i+1 > most {
					t.Fatalf("%d in %v, of a bucket of %d with one more every %v", j-i+1, entered[j].Sub(from), b.Size, b.Refill)
				}
			}
		}
	})
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	b, now := NewBuckets[string](Bucket{60, time.Second}, 100), start
	in := func(key string) (n int) {
		for b.Take(now, key) == 0 {
			n++
		}
		return n
	}
	for _, key := range []string{"maya", "ben"} {
		if n := in(key); n != 60 {
			t.Errorf("%d at once for %s", n, key)
		}
	}
	b.GiveBack("maya")
	b.GiveBack("nobody")
	if n := in("maya"); n != 1 {
		t.Errorf("%d after one was given back", n)
	}
	now = now.Add(3 * time.Second)
	if n := in("maya"); n != 3 {
		t.Errorf("%d three seconds later", n)
	}
	now = now.Add(-24 * time.Hour) // the clock was wrong, and is set right
	if in("maya") == 0 {
		t.Error("a clock that was set back keeps a key out")
	}
}

// TestBucketsAreBounded: whoever comes under new names has no more remembered
// than was said, and a bucket that is full again makes room before one that is not.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	b := NewBuckets[int](Bucket{2, time.Hour}, 100)
	for i := range 99 {
		b.Take(start, i)
	}
	now := start.Add(90 * time.Minute)
	for range 2 {
		b.Take(now, -1)
	}
	for i := 100; i < 189; i++ {
		b.Take(now, i)
	}
	if b.Take(now, -1) == 0 {
		t.Error("an empty bucket was forgotten while there were full ones")
	}
	for i := range 1000 {
		if b.Take(now, 1000+i); len(b.full) > 100 {
			t.Fatalf("%d keys are remembered", len(b.full))
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.0/24", "::ffff:192.0.2.7": "192.0.2.0/24",
		"2001:db8:1:2::7": "2001:db8:1::/48", "fe80::1%eth0": "fe80::/48",
	} {
		if got := Network(netip.MustParseAddr(addr), 24, 48); got.String() != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if got := Network(netip.Addr{}, 24, 48); got.IsValid() {
		t.Errorf("no address is of %v", got)
	}
}

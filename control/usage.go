package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"porchlight/control/kv"
)

// How much each computer carries, a day: visits, which are connections that were joined to
// it, and their bytes, counted when they end. Who visited and what was opened is not known
// here, and not kept.
//
// A visit costs a look into a map. What came together is written every five minutes and at
// the end, so a crash loses that. Each node has rows of its own, one for a computer's week,
// and only where there were visits: strangers have nothing written but numbers of computers
// that are there, and as many rows as those have weeks.

const (
	// UsageDays is how long the numbers of a day are kept.
	UsageDays = 90
	// maxUsagePending bounds the numbers that wait for a store that is away, by computer and day.
	maxUsagePending = 65_536
	// usageAtOnce bounds the rows of one transaction, two keys each and the sums.
	usageAtOnce = 100
	// maxUsageRows bounds what is read of one computer: weeks, and names that nodes had.
	maxUsageRows = 1000
	usageDate    = time.DateOnly
	day          = 24 * time.Hour
)

// UsageDay is what was carried on one day (UTC).
type UsageDay struct {
	Day       string `json:"day"` // 2026-11-28
	Visits    uint64 `json:"visits"`
	BytesUp   uint64 `json:"bytesUp"`   // from visitors to the computer
	BytesDown uint64 `json:"bytesDown"` // to visitors
}

// carried are visits, bytes up and bytes down.
type carried [3]uint64

func (c carried) plus(d carried) carried { return carried{c[0] + d[0], c[1] + d[1], c[2] + d[2]} }

// usageWeek is a row: what was carried, by day.
type usageWeek map[string]carried

func keyUsages(computer string) string { return "usage/" + computer + "/" }

const keyUsageSums = "usage-sum/"

// usageKey names what is counted together.
type usageKey struct {
	computer string
	week     string // its Monday
	day      string
}

// Usage counts what is carried.
type Usage struct {
	*core
	writing sync.Mutex // one batch at a time

	mu      sync.Mutex // protects what follows
	pending map[usageKey]carried
	lost    uint64
}

// Count notes a visit that has ended, with its bytes. It waits for nothing.
func (s *Usage) Count(computerID string, up, down int64) {
	now := s.now().UTC()
	key := usageKey{computerID, weekOf(now).Format(usageDate), now.Format(usageDate)}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.pending[key]
	if !known && len(s.pending) >= maxUsagePending {
		s.lost++
		return
	}
	if s.pending == nil {
		s.pending = map[usageKey]carried{}
	}
	s.pending[key] = was.plus(carried{1, uint64(max(up, 0)), uint64(max(down, 0))})
}

func weekOf(t time.Time) time.Time {
	return t.Truncate(day).AddDate(0, 0, -int(t.Weekday()+6)%7)
}

// flush writes what was counted. What could not be written is counted on.
func (s *Usage) flush(ctx context.Context) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	taken, lost := s.pending, s.lost
	s.pending, s.lost = nil, 0
	s.mu.Unlock()
	if lost > 0 {
		s.log.Warn("visits were not counted: the store was away for too long", "visits", lost)
	}
	keys := slices.SortedFunc(maps.Keys(taken), func(a, b usageKey) int {
		return cmp.Or(cmp.Compare(a.week, b.week), cmp.Compare(a.computer, b.computer), cmp.Compare(a.day, b.day))
	})
	for len(keys) > 0 {
		some := keys[:min(len(keys), usageAtOnce)]
		if err := s.write(ctx, some, taken); err != nil && !errors.Is(err, kv.ErrOutcomeUnknown) { // else they may be counted twice
			s.log.Warn("what computers carried could not be written; it is tried again", "err", err)
			break
		}
		keys = keys[len(some):]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if s.pending == nil {
			s.pending = map[usageKey]carried{}
		}
		s.pending[key] = s.pending[key].plus(taken[key])
	}
}

// write adds some of what was taken to the rows of this node. Of a computer that is gone
// only the sums know.
func (s *Usage) write(ctx context.Context, some []usageKey, taken map[usageKey]carried) error {
	node := cmp.Or(s.cfg.Node, "alone")
	return s.update(ctx, func(tx *txn) error {
		var keys []string
		for _, k := range some {
			keys = append(keys, keyComputer(k.computer), usageRow(k, node))
		}
		tx.getAll(keys...)
		weeks := map[string]usageWeek{}
		add := func(key string, k usageKey) {
			if weeks[key] == nil {
				row, _ := get[usageWeek](tx, key)
				if weeks[key] = row; row == nil {
					weeks[key] = usageWeek{}
				}
			}
			weeks[key][k.day] = weeks[key][k.day].plus(taken[k])
		}
		for _, k := range some {
			add(keyUsageSums+k.week+"/"+node, k)
			if _, there := get[computer](tx, keyComputer(k.computer)); there {
				add(usageRow(k, node), k)
			}
		}
		for key, row := range weeks {
			tx.put(key, row, usageLife(row, tx.now))
		}
		return nil
	})
}

func usageRow(k usageKey, node string) string { return keyUsages(k.computer) + k.week + "/" + node }

// usageLife is how long a row is kept: until the last day of its week is UsageDays ago.
func usageLife(row usageWeek, now time.Time) time.Duration {
	for d := range row {
		if at, err := time.Parse(usageDate, d); err == nil {
			return max(weekOf(at).AddDate(0, 0, 7+UsageDays).Sub(now), time.Hour)
		}
	}
	return time.Hour
}

// usage is what a computer carried, newest day first.
func (t *txn) usage(computerID string) []UsageDay {
	return t.usageBelow(keyUsages(computerID))
}

func (t *txn) usageBelow(prefix string) []UsageDay {
	days, oldest := map[string]carried{}, t.now.UTC().AddDate(0, 0, -UsageDays).Format(usageDate)
	for _, week := range rowsOf[usageWeek](t, t.scan(prefix, "", maxUsageRows)) {
		for d, c := range week {
			if d > oldest {
				days[d] = days[d].plus(c)
			}
		}
	}
	out := []UsageDay{}
	for d, c := range days {
		out = append(out, UsageDay{d, c[0], c[1], c[2]})
	}
	slices.SortFunc(out, func(a, b UsageDay) int { return cmp.Compare(b.Day, a.Day) })
	return out
}

// Usage is what all computers carried together, newest day first.
func (s *Overview) Usage(ctx context.Context) ([]UsageDay, error) {
	return viewed(ctx, s.core, func(tx *txn) ([]UsageDay, error) { return tx.usageBelow(keyUsageSums), nil })
}

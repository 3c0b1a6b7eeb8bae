package notes

import (
	"slices"
	"time"

	"porchlight/desktop/verbs"
)

const (
	// maxNotes is how many of a kind are told one by one; more become one note.
	maxNotes = 3

	// maxAMinute bounds how many of a kind are told within a minute, however
	// slowly they come. It is more than a person causes by hand.
	maxAMinute = 6

	// askedAgain is how long a program that withdraws its request and asks again
	// stays without another notification.
	askedAgain = time.Minute

	// lasting is how long something has to keep visitors out before it is announced.
	lasting = time.Minute

	// recount is the shortest time between two counts on the note about many
	// requests.
	recount = 3 * time.Second

	// stale is how old what happened while Porchlight was not running may be.
	stale = 24 * time.Hour

	// atOnce is how soon after a client, or a person, was let in its first use is told with
	// that.
	atOnce = 10 * time.Minute
)

// Announcer decides what the owner is notified of: it compares each snapshot
// with what it told before. One goroutine uses it.
type Announcer struct {
	now func() time.Time
	Told

	requested map[string]*toldRequest // by app name
	grouped   int                     // how many requests the note about many speaks of; 0: not shown
	groupedAt time.Time
	flood     bool // that note says that requests come and go

	knocked    map[string]bool // the people who knock, by id: whether they have a note of their own
	manyKnocks bool            // there is a note about many
	knocksAt   time.Time       // when that was shown

	unused map[string]bool // ids of grants that were told of before they were used
	opens  map[string]int  // how many apps each grant opens, by id

	since        time.Time // when trouble began; zero while there is none
	troubleShown bool

	oneByOne map[string][]time.Time // when notes were told one by one, within a minute

	news map[string]*news     // by kind, see newsOf
	met  map[string]time.Time // people the owner was told of lately, by account: when
}

// Told is what has to be known at the next start, or it would be told twice.
type Told struct {
	Notice uint64    // id of the newest notice
	Grant  time.Time // when the newest grant was made
	Server string    // the one this computer is connected to, or its own
}

type toldRequest struct {
	seen    verbs.Seen
	asked   time.Time
	waiting bool // still asked for in the last snapshot
	shown   bool // has a note of its own
}

// NewAnnouncer knows what was told before, and the time by now.
func NewAnnouncer(before Told, now func() time.Time) *Announcer {
	return &Announcer{now: now, Told: before, requested: map[string]*toldRequest{}, knocked: map[string]bool{}, unused: map[string]bool{}, oneByOne: map[string][]time.Time{}, news: map[string]*news{}, met: map[string]time.Time{}}
}

// Changes are what has to happen to the notifications on the screen.
type Changes struct {
	Show []Note
	Drop []string // keys of those that are out of date
	// Again is when to look at the same snapshot again; 0: not before the next.
	Again time.Duration
}

func (c *Changes) lookAgain(in time.Duration) {
	if c.Again == 0 || in < c.Again {
		c.Again = in
	}
}

// mayTell says whether n more of a kind may be announced one by one now. Those that
// come slowly are counted too, so that they make no storm.
func (a *Announcer) mayTell(k string, n int) bool {
	now := a.now()
	lately := slices.DeleteFunc(a.oneByOne[k], func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	ok := n <= maxNotes && len(lately)+n <= maxAMinute
	if ok {
		lately = append(lately, slices.Repeat([]time.Time{now}, n)...)
	}
	a.oneByOne[k] = lately
	return ok
}

package proxy

import (
	"log/slog"
	"sync"
	"time"

	"porchlight/agent/proxy/gate"
	"porchlight/agent/proxy/limits"
)

// rooms counts what visitors have under way. A person is an account, in however
// many browsers and by however many clients. Each request holds a file of this process,
// the connection to the app, so all of them together, and one person in all apps, have
// shares of the files.
type rooms struct {
	all, person int // the most of both kinds, of everybody and of one person
	log         *slog.Logger
	now         func() time.Time

	mu      sync.Mutex
	taken   int            // guarded by mu
	people  map[string]int // by account id, none is zero; guarded by mu
	inApp   map[room]int   // none is zero; guarded by mu
	refused gate.Refusals  // guarded by mu
}

// room is what a request is counted in.
type room struct {
	account, app string
	webSocket    bool
}

// full says which limit keeps a request out.
type full string

const (
	roomFree   full = ""
	appFull    full = "one person at one app"
	personFull full = "one person at all apps"
	allFull    full = "everybody"
)

func newRooms(files int, now func() time.Time, log *slog.Logger) *rooms {
	return &rooms{
		all: max(1, limits.Share(files, limits.RequestsShare)), person: max(1, limits.Share(files, limits.PersonShare)), now: now, log: log,
		people: map[string]int{}, inApp: map[room]int{}, refused: gate.Refusals{},
	}
}

// enter counts a request in, if there is room for it; if so, release must follow.
func (r *rooms) enter(in room) (why full) {
	most := limits.RequestsPerApp
	if in.webSocket {
		most = limits.WebSocketsPerApp
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.inApp[in] >= most:
		why = appFull
	case r.people[in.account] >= r.person:
		why = personFull
	case r.taken >= r.all:
		why = allFull
	default:
		r.taken++
		r.people[in.account]++
		r.inApp[in]++
		return roomFree
	}
	if refused, log := r.refused.Count(string(why), r.now()); log {
		r.log.Warn("too much is open at once: more is refused until some of it ends",
			"limit", string(why), "account", in.account, "app", in.app, "websockets", in.webSocket, "open", r.taken, "refused", refused)
	}
	return why
}

func (r *rooms) release(from room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken--
	countDown(r.people, from.account)
	countDown(r.inApp, from)
}

// countDown takes one off a count that is in the map unless it is zero.
func countDown[K comparable](counts map[K]int, of K) {
	if n := counts[of]; n > 1 {
		counts[of] = n - 1
	} else {
		delete(counts, of)
	}
}

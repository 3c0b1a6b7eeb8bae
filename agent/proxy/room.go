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
	taken   int             // guarded by mu
	people  map[string]*int // by account id, none is zero; guarded by mu
	inApp   map[room]*int   // none is zero; guarded by mu
	spare   []*int          // zeros to be used again; guarded by mu
	refused gate.Refusals   // guarded by mu
}

// room is what a request is counted in.
type room struct {
	account, app string
	webSocket    bool
}

// seat is where a request is counted.
type seat struct {
	room
	person, inApp *int
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
		people: map[string]*int{}, inApp: map[room]*int{}, refused: gate.Refusals{},
	}
}

// enter counts a request in, if there is room for it; if so, leave must follow.
func (r *rooms) enter(in room) (at seat, why full) {
	most := limits.RequestsPerApp
	if in.webSocket {
		most = limits.WebSocketsPerApp
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at = seat{in, r.people[in.account], r.inApp[in]}
	switch {
	case at.inApp != nil && *at.inApp >= most:
		why = appFull
	case at.person != nil && *at.person >= r.person:
		why = personFull
	case r.taken >= r.all:
		why = allFull
	default:
		if at.person == nil {
			at.person = r.zero()
			r.people[in.account] = at.person
		}
		if at.inApp == nil {
			at.inApp = r.zero()
			r.inApp[in] = at.inApp
		}
		r.taken++
		*at.person++
		*at.inApp++
		return at, roomFree
	}
	if refused, log := r.refused.Count(string(why), r.now()); log {
		r.log.Warn("too much is open at once: more is refused until some of it ends",
			"limit", string(why), "account", in.account, "app", in.app, "websockets", in.webSocket, "open", r.taken, "refused", refused)
	}
	return at, why
}

func (r *rooms) release(at seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken--
	if *at.person--; *at.person == 0 {
		delete(r.people, at.account)
		r.drop(at.person)
	}
	if *at.inApp--; *at.inApp == 0 {
		delete(r.inApp, at.room)
		r.drop(at.inApp)
	}
}

const mostSpare = 16

// zero is a count of nothing. mu is held.
func (r *rooms) zero() *int {
	last := len(r.spare) - 1
	if last < 0 {
		return new(int)
	}
	n := r.spare[last]
	r.spare = r.spare[:last]
	return n
}

// drop takes back a count that is in no map any more. mu is held.
func (r *rooms) drop(n *int) {
	if len(r.spare) < mostSpare {
		r.spare = append(r.spare, n)
	}
}

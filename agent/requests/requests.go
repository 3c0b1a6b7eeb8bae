// Package requests keeps what visitors last asked of each app, so that the owner
// sees what comes in and how it went.
//
// A request comes in from the proxy once it is over; out go the last ones, oldest
// first. All of it is in memory and bounded, and ends with the app, with the
// process, and with the owner's wish. Queries, headers and bodies never get here.
package requests

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/broadcast"
)

const (
	// Most is how many requests are kept of one app's visitors, and mostUnknown how
	// many of those who have not signed in: whoever finds an address must not be able
	// to push out what the owner's people did.
	Most        = 500
	mostUnknown = 50

	maxPath   = 200 // bytes that are kept of a path
	maxMethod = 16  // of a method
	maxText   = 300 // of a mail address and of what went wrong
)

// Visit is a request that is over. A WebSocket's is over once it is open.
type Visit struct {
	App    string // its id
	At     time.Time
	Took   time.Duration
	Method string
	Target string // as the visitor sent it; what follows the path is not kept
	Status int    // 0 when the visitor got no answer
	Email  string // of who asked; empty for who has not signed in
	Error  string // what was wrong with the app, as a sentence
}

// Log is made by New and safe for concurrent use.
type Log struct {
	on      func() bool
	there   func(appID string) bool
	changes broadcast.Signal // raised after a request was kept

	mu   sync.Mutex
	seq  uint64           // guarded by mu: number of the newest request
	apps map[string]*kept // guarded by mu, by app id
}

// kept are the requests of one app.
type kept struct{ known, unknown ring }

// New keeps the requests of apps that are there while it is on. There is asked for
// ids of apps that no request is kept of yet; it must not call the Log.
func New(on func() bool, there func(appID string) bool) *Log {
	// Numbers start at the time, so that none returns after a restart.
	return &Log{on: on, there: there, seq: uint64(time.Now().UnixMicro()), apps: map[string]*kept{}}
}

// On says whether requests are kept, so that nothing is measured in vain.
func (l *Log) On() bool { return l.on() }

// Add keeps a request. Its strings are not held on to, but for the mail address
// and the sentence, which are one string for many requests.
func (l *Log) Add(v Visit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on() {
		return
	}
	app := l.apps[v.App]
	if app == nil {
		if !l.there(v.App) { // revoked while the request was under way
			return
		}
		app = &kept{known: ring{most: Most}, unknown: ring{most: mostUnknown}}
		l.apps[v.App] = app
	}
	l.seq++
	if v.Email == "" {
		app.unknown.add(l.seq, v)
	} else {
		app.known.add(l.seq, v)
	}
	l.changes.Raise()
}

// Since returns the requests after a number, of the apps in names, which gives the
// name of each by its id; oldest first. newest is the number to ask with next. A
// number of the future is one of another Log: all are returned.
func (l *Log) Since(after uint64, names map[string]string) (list []agentapi.VisitorRequest, newest uint64) {
	list = []agentapi.VisitorRequest{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if after > l.seq {
		after = 0
	}
	for id, name := range names {
		if app := l.apps[id]; app != nil {
			list = app.known.since(list, after, name)
			list = app.unknown.since(list, after, name)
		}
	}
	slices.SortFunc(list, func(a, b agentapi.VisitorRequest) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, l.seq
}

// Changed returns a channel that is readable after a request was kept, until cancel
// is called.
func (l *Log) Changed() (changed <-chan struct{}, cancel func()) { return l.changes.Subscribe() }

// Forget forgets what is not to be kept any more: everything once it is off, and the
// requests of apps that are gone.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.apps {
		if !l.on() || !l.there(id) {
			delete(l.apps, id)
		}
	}
}

// ring holds the last most requests. It grows up to there and then reuses its
// places, so that keeping one more costs no memory.
type ring struct {
	most  int
	rows  []row
	first int // the oldest, once the ring is full
}

type row struct {
	seq    uint64
	at     time.Time
	ms     int64
	status int
	method string
	email  string
	error  string
	path   []byte // its own
}

func (r *ring) add(seq uint64, v Visit) {
	var into *row
	if len(r.rows) < r.most {
		r.rows = append(r.rows, row{})
		into = &r.rows[len(r.rows)-1]
	} else {
		into = &r.rows[r.first]
		r.first = (r.first + 1) % r.most
	}
	path := pathOf(v.Target)
	*into = row{
		seq: seq, at: v.At, ms: v.Took.Milliseconds(), status: v.Status,
		method: method(v.Method), email: cut(v.Email, maxText), error: cut(v.Error, maxText),
		path: append(into.path[:0], cut(path, maxPath+1)...), // one more shows that there was more
	}
}

// pathOf a request's target, which may be a whole address: that of a proxy is, and
// can have a user name and password in it.
func pathOf(target string) string {
	if end := strings.IndexAny(target, "?#"); end >= 0 {
		target = target[:end]
	}
	if _, rest, whole := strings.Cut(target, "://"); whole && target[0] != '/' {
		_, path, _ := strings.Cut(rest, "/")
		return "/" + path
	}
	return target
}

// since appends the rows after a number to a list.
func (r *ring) since(list []agentapi.VisitorRequest, after uint64, name string) []agentapi.VisitorRequest {
	for i := range r.rows {
		at := &r.rows[i]
		if at.seq <= after {
			continue
		}
		list = append(list, agentapi.VisitorRequest{
			Seq: at.seq, At: at.at.UTC(), App: name, Method: at.method, Path: shownPath(at.path), Status: at.status,
			MS: at.ms, Email: shown(at.email), Error: shown(at.error),
		})
	}
	return list
}

// methods are those of nearly all requests, so that no request's own string is held.
var methods = []string{
	"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
	"PROPFIND", "PROPPATCH", "MKCOL", "MOVE", "COPY", "LOCK", "UNLOCK", "REPORT",
}

func method(m string) string {
	if i := slices.Index(methods, m); i >= 0 {
		return methods[i]
	}
	return strings.Clone(cut(m, maxMethod))
}

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most]
	}
	return s
}

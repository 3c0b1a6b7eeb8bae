package proxy

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/proxy/gate"
)

// visit is one request on its way to an app. It is the context of the request to
// the app, so that the callbacks of net/http find it.
//
// Most visits are over within a millisecond, and end without anybody having asked
// whether they should. So what makes a context of one is only made when it is asked
// for (Done), and whether the visitor has left, or waits in vain, is looked at once a
// visit has lasted for a moment (waits). A visit of which nobody can know any more is
// used again.
type visit struct {
	parent   context.Context // of the visitor's request
	vhost    virtualHost
	id       access.Identity
	decision access.Decision
	five     five      // what the app is told of the visitor
	renew    string    // session cookie to set again
	note     *note     // what the owner is told of the visit; nil for nothing
	delivery *delivery // of a named sender; nil for everybody else
	compared agentapi.Compared
	tries    string // our cookie of that name, which the app's request lacks
	to       interim
	sending  sending
	body     requestBody
	fields   int         // of the visitor's head; 0 where there is no body
	entry    access.Open // in the register of what is open

	hop      bool                  // the visitor's header has fields of its connection alone
	patience time.Duration         // until the app's first word has to be there; 0: no limit
	late     atomic.Bool           // it was not
	shut     atomic.Bool           // access ended
	client   bool                  // the answer is readable for a client's page
	bodyDied atomic.Bool           // the visitor's body could not be read
	tooMany  atomic.Bool           // the body's trailers make too many fields
	odd      atomic.Pointer[error] // how an app began that was to speak HTTP/2; nil for that
	stranger atomic.Bool           // another's program is where the app was
	took     atomic.Uint64         // who took the connection to the app: see upstream.Checks

	mu        sync.Mutex // keeps End away from w once the handler is done; guards what follows
	w         http.ResponseWriter
	on        *gate.Conn // the visitor's connection; nil in tests
	conn      *gate.Conn // the same; nil over HTTP/2, where other visits share it
	open      bool       // between begin and finish: End cuts the visitor off
	judging   int        // calls of judge under way
	ended     bool       // Cut or End was called while the visitor was spared
	cancelled bool       // cancelled
	known     bool       // somebody else may call it at any time: it is not used again
	app       net.Conn   // to the app, while forwardDirect uses it; nil otherwise
	whole     context.Context
	cancels   context.CancelFunc // of whole, which is nil until it is asked for
	spoke     bool               // the app's first word is there
	timer     *time.Timer        // of patience; nil while there is none
	unwatch   func() bool        // stops watching for the visitor's end; nil while nothing does
}

type visitKey struct{} // *visit, in its own context

// visits are used again, *visit.
var visits = sync.Pool{New: func() any { return new(visit) }}

func newVisit(w http.ResponseWriter, r *http.Request) *visit {
	v := visits.Get().(*visit)
	v.parent, v.w, v.on = r.Context(), w, gate.ConnOf(r)
	if r.ProtoMajor == 1 {
		v.conn = v.on
	}
	return v
}

// unregister takes a visit that is finished out of the register.
func (v *visit) unregister() {
	if v.entry.Leave() && !v.known {
		*v = visit{} // holds nothing of the request
		visits.Put(v)
	}
}

// Done is that of a context which is made now.
func (v *visit) Done() <-chan struct{} { return v.context().Done() }

func (v *visit) Deadline() (time.Time, bool) { return v.parent.Deadline() }

func (v *visit) Err() error {
	v.mu.Lock()
	cancelled := v.cancelled
	v.mu.Unlock()
	if cancelled {
		return context.Canceled
	}
	return v.parent.Err()
}

func (v *visit) Value(key any) any {
	if key == (visitKey{}) {
		return v
	}
	return v.context().Value(key)
}

func (v *visit) context() context.Context {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.whole == nil {
		v.known = true
		v.whole, v.cancels = context.WithCancel(v.parent)
		if v.cancelled {
			v.cancels()
		}
	}
	return v.whole
}

// cancel ends what is open to the app.
func (v *visit) cancel() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stop()
}

// stop is cancel. mu is held.
func (v *visit) stop() {
	v.cancelled = true
	if v.app != nil {
		_ = v.app.SetDeadline(past) // fails on what is closed
	}
	if v.cancels != nil {
		v.cancels()
	}
}

// use has cancel end a connection to the app until part. It may not be used when the
// visit is over.
func (v *visit) use(conn net.Conn) (may bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.cancelled {
		v.app = conn
	}
	return !v.cancelled
}

// part says whether the connection is still good, and not about to be cut off.
func (v *visit) part() (good bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.app = nil
	return !v.cancelled
}

// watch prepares for a wait that may be long, of which so much is over: the visit is
// cancelled when the visitor leaves, or when patience is over.
func (v *visit) watch(waited time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.open {
		return
	}
	v.known = true
	v.unwatch = context.AfterFunc(v.parent, v.cancel)
	if v.patience > 0 && !v.spoke {
		v.timer = time.AfterFunc(v.patience-waited, v.tooLate)
	}
}

func (v *visit) tooLate() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open && !v.spoke {
		v.late.Store(true)
		v.stop()
	}
}

// hears is false when the app's first word came too late, or after access had ended.
func (v *visit) hears() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.spoke = true
	if v.timer != nil {
		v.timer.Stop()
	}
	if v.ended {
		v.end() // of which the visitor was spared until now
	}
	return !v.late.Load() && !v.ended
}

// Cut has the visitor of an HTTP/1.1 connection hear that access ended. Nothing passes on
// that any more, and what the visit still has open ends with End.
func (v *visit) Cut(together <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.spared() {
		v.ended = true
		return
	}
	v.shut.Store(true)
	if v.open && v.conn != nil {
		v.conn.Cut(together)
	}
}

// End cuts the visit off: the app's side by its connection, and the visitor's by
// cutting theirs (HTTP/1.1, and where the network may have gone) or resetting the
// stream. A write to a visitor who does not read waits for nothing else, and a polite
// end of TLS would wait with it.
func (v *visit) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end()
}

// end is End. mu is held.
func (v *visit) end() {
	if v.spared() {
		v.ended = true
		return
	}
	v.shut.Store(true)
	v.stop()
	if !v.open {
		return // still to be refused with a page, or done
	}
	if v.conn != nil || v.on.Stranded() { // where a reset of the stream may be lost
		v.on.Abort()
		return
	}
	rc := http.NewResponseController(v.w)
	// A writer that knows no deadlines still loses the app's side.
	_ = rc.SetReadDeadline(past)
	_ = rc.SetWriteDeadline(past)
}

// spared says that the visitor may still get a page of ours, of whoever listens where the
// app was: nothing is cut off then, and nothing of an app passes either. mu is held.
func (v *visit) spared() bool { return !v.spoke && (v.judging > 0 || v.stranger.Load()) }

// past is a deadline that has a read or write end now.
var past = time.Unix(1, 0)

// begin is false when access has ended already. From here on its end cuts the
// visit off; until here it leaves the connection for a page that says why.
func (v *visit) begin() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open = !v.shut.Load()
	return v.open
}

func (v *visit) finish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stop()
	v.open = false
	if v.timer != nil {
		v.timer.Stop()
	}
	if v.unwatch != nil {
		v.unwatch()
	}
}

// judge asks whether the one who took a connection may have the visit's request. An
// answer of no closes what is open to the app: this visitor, of whom nothing was sent yet,
// still gets a page, also where access ends meanwhile or afterwards. After a yes, what ended
// meanwhile ends.
func (v *visit) judge(welcome func() bool) bool {
	v.mu.Lock()
	v.judging++
	v.mu.Unlock()
	may := welcome()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.judging--
	if !may {
		v.stranger.Store(true)
		v.stop()
	}
	if v.ended {
		v.end()
	}
	return may
}

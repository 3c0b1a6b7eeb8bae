package proxy

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/proxy/gate"
)

// visit is one request on its way to an app. It is the context of the request to
// the app, so that the callbacks of net/http find it.
type visit struct {
	context.Context
	at       place
	id       access.Identity
	decision access.Decision
	five     five   // what the app is told of the visitor
	renew    string // session cookie to set again
	note     *note  // what the owner is told of the visit; nil for nothing
	tries    string // our cookie of that name, which the app's request lacks

	cancel   context.CancelFunc
	patience *time.Timer           // until the app's first word has to be there; nil: no limit
	late     atomic.Bool           // it was not
	shut     atomic.Bool           // access ended
	client   bool                  // the answer is readable for a client's page
	bodyDied atomic.Bool           // the visitor's body could not be read
	tooMany  atomic.Bool           // the body's trailers make too many fields
	odd      atomic.Pointer[error] // how an app began that was to speak HTTP/2; nil for that
	stranger atomic.Bool           // another's program is where the app was

	mu      sync.Mutex // keeps end away from w once the handler is done
	w       http.ResponseWriter
	conn    *gate.Conn // nil over HTTP/2, where other visits share it
	open    bool       // between begin and finish: end cuts the visitor off
	judging int        // calls of judge under way, which end waits for
	ended   bool       // end was called meanwhile
}

type visitKey struct{} // *visit, in its own context

func (v *visit) Value(key any) any {
	if key == (visitKey{}) {
		return v
	}
	return v.Context.Value(key)
}

func newVisit(w http.ResponseWriter, r *http.Request) *visit {
	ctx, cancel := context.WithCancel(r.Context())
	v := &visit{Context: ctx, cancel: cancel, w: w}
	if r.ProtoMajor == 1 {
		v.conn = gate.ConnOf(r)
	}
	return v
}

// end cuts the visit off: the app's side by the context, and the visitor's by
// closing the connection (HTTP/1.1) or resetting the stream. A write to a
// visitor who does not read waits for nothing else, and a polite end of TLS
// would wait with it.
func (v *visit) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.judging > 0 {
		v.ended = true
		return
	}
	v.shut.Store(true)
	v.cancel()
	if !v.open {
		return // still to be refused with a page, or done
	}
	if v.conn != nil {
		v.conn.Abort()
		return
	}
	rc := http.NewResponseController(v.w)
	// A writer that knows no deadlines still loses the app's side.
	_ = rc.SetReadDeadline(past)
	_ = rc.SetWriteDeadline(past)
}

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
	v.cancel()
	v.mu.Lock()
	v.open = false
	v.mu.Unlock()
}

// judge asks whether the one who took a connection may have the visit's request. An
// answer of no closes what is open to the app: this visitor, of whom nothing was sent yet,
// still gets a page. What else ends the visit meanwhile ends it after a yes.
func (v *visit) judge(welcome func() bool) bool {
	v.mu.Lock()
	v.judging++
	v.mu.Unlock()
	may := welcome()
	v.mu.Lock()
	v.judging--
	ended := v.ended
	v.mu.Unlock()
	switch {
	case !may:
		v.stranger.Store(true)
		v.cancel()
	case ended:
		v.end()
	}
	return may
}

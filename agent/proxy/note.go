package proxy

import (
	"net/http"
	"sync"
	"time"

	"porchlight/agent/requests"
)

// note is what the owner will be told about one request. It is nil for a request
// nobody wants to know about.
type note struct {
	requests.Visit
	log    *requests.Log
	now    func() time.Time
	logged bool
}

// noting begins a note; vhost.app is the app that was asked for.
func (p *Proxy) noting(r *http.Request, vhost *virtualHost) *note {
	if !p.config.Requests.On() {
		return nil
	}
	n := notes.Get().(*note)
	*n = note{
		Visit: requests.Visit{App: vhost.app.ID, At: p.now(), Method: r.Method, Target: r.RequestURI},
		log:   p.config.Requests, now: p.now,
	}
	return n
}

// notes are used again: every request has one.
var notes = sync.Pool{New: func() any { return new(note) }}

// done hands the note over and gives it back. The visit must be over.
func (n *note) done(a *answer) {
	if n == nil {
		return
	}
	n.end(a)
	*n = note{} // holds nothing of the request
	notes.Put(n)
}

// answered notes the status of an answer; 1xx ones come before it.
func (n *note) answered(status int) {
	if n != nil && status >= 200 {
		n.Status = status
	}
}

// by notes who asks, where that is known.
func (n *note) by(email string) {
	if n != nil && email != "" {
		n.Email = email
	}
}

// failed notes what was wrong with the app.
func (n *note) failed(sentence string) {
	if n != nil {
		n.Error = sentence
	}
}

// opened ends the note of a WebSocket, which may stay open for days.
func (n *note) opened() {
	if n != nil {
		n.Status = http.StatusSwitchingProtocols
		n.end(nil)
	}
}

// end hands the note over once. a is the answer of ours that the visitor gets; nil
// where the app has answered, or nobody did.
func (n *note) end(a *answer) {
	if n.logged {
		return
	}
	n.logged = true
	if a != nil {
		n.Status = a.Status
	}
	n.Took = n.now().Sub(n.At)
	n.log.Add(n.Visit)
}

package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/proxy/gate"
	"porchlight/agent/senders"
	"porchlight/internal/words"
)

// Named senders: programs of others that know no sign-in, and sign what they post to one
// path of an app (package senders). They come last: a request that says of anybody else who
// asks is theirs, and so is one at that path that is not signed. The body is read before it
// is known whose it is; what of it is kept counts as what strangers hold, until the app has
// answered.

// delivery is what a sender sent, with what it holds of its connection.
type delivery struct {
	*senders.Delivery
	conn *gate.Conn
	held int
}

// release ends a delivery; nil for none.
func (d *delivery) release() {
	if d == nil {
		return
	}
	if d.Delivery != nil {
		d.Release()
	}
	if d.conn != nil && d.held > 0 {
		d.conn.Give(d.held)
	}
}

// answered notes what an app answered to a delivery; nil for none.
func (d *delivery) answered(status int) {
	if d != nil && status >= 200 && status < 300 {
		d.Done()
	}
}

// bySender finds out who asks by what a named sender signed. Without an answer and a
// delivery the request is nobody's of these. A delivery has to be released.
func (p *Proxy) bySender(r *http.Request, vhost *virtualHost, n *note) (*delivery, *answer) {
	claim, err := p.config.Senders.Claimed(vhost.app.ID, r)
	switch {
	case err != nil:
		return nil, p.deliveryRefused(r, vhost, err)
	case claim == nil:
		return nil, nil
	}
	d := &delivery{conn: gate.ConnOf(r)}
	body, a := d.read(r)
	if a == nil {
		if d.Delivery, err = claim.Check(body); err != nil {
			if d.Delivery != nil {
				n.by(d.Called()) // theirs, and not to be delivered now
			}
			d.Delivery = nil
			a = p.deliveryRefused(r, vhost, err)
		}
	}
	if a != nil {
		d.release()
		return nil, a
	}
	// What the app gets is what was checked, and nothing that comes later.
	r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = &signedBody{*bytes.NewReader(body)}, int64(len(body)), nil, nil
	for _, name := range []string{"Cookie", "Expect", "Trailer", "Upgrade", "Connection", "Te"} {
		delete(r.Header, name)
	}
	return d, nil
}

// signedBody is a body that is here.
type signedBody struct{ bytes.Reader }

func (*signedBody) Close() error { return nil }

// AtHand is true: see gate.AtHand.
func (*signedBody) AtHand() bool { return true }

// read reads a body of at most senders.MaxBody.
func (d *delivery) read(r *http.Request) (body []byte, a *answer) {
	const first = 16 << 10
	if r.ContentLength > senders.MaxBody {
		return nil, largeDelivery()
	}
	room := first
	if r.ContentLength >= 0 {
		room = min(first, int(r.ContentLength)+1) // one more finds its end
	}
	for {
		if len(body) == cap(body) {
			room = min(max(room, 2*cap(body)), senders.MaxBody+1)
			if !d.hold(room - cap(body)) {
				return nil, refuse(http.StatusServiceUnavailable, words.Of("This computer gets too much at once. Send it again later.")).with("Retry-After", "30")
			}
			body = append(make([]byte, 0, room), body...)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > senders.MaxBody:
			return nil, largeDelivery()
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			a := refuse(http.StatusRequestTimeout, words.Of("What was sent did not come in time, or not whole. Send it again."))
			a.close = true
			return nil, a
		}
	}
}

// hold has n more bytes count as held by the connection.
func (d *delivery) hold(n int) bool {
	if d.conn != nil && !d.conn.Take(n) {
		return false
	}
	d.held += n
	return true
}

func largeDelivery() *answer {
	a := refuse(http.StatusRequestEntityTooLarge, words.Of("This is more than the 1 MiB that a named sender may send at once."))
	a.close = true
	return a
}

// deliveryRefused answers what is worth nothing, or must not be delivered now.
func (p *Proxy) deliveryRefused(r *http.Request, vhost *virtualHost, err error) *answer {
	switch {
	case errors.Is(err, senders.ErrDone):
		return refuse(http.StatusConflict, words.Of("The app has taken this already. It is not delivered twice."))
	case errors.Is(err, senders.ErrUnderWay):
		return refuse(http.StatusConflict, words.Of("This is being delivered just now. Send it again if that fails.")).with("Retry-After", "5")
	case errors.Is(err, senders.ErrUnknown):
		return refuse(http.StatusServiceUnavailable, words.Of("This computer could not look up whether this was delivered. Its disk may be full. Send it again later.")).with("Retry-After", "30")
	case errors.Is(err, senders.ErrFull):
		return refuse(http.StatusServiceUnavailable, words.Of("This sender sent so much that no more can be told from repetitions. Send it again later.")).with("Retry-After", "3600")
	}
	if p.config.Access.Snapshot().Version == "" {
		return stale(*vhost)
	}
	p.happened(agentapi.ActivityDeliveryRefused, *vhost, access.Identity{})
	if wait := p.guesses.Take(p.now(), networkOf(r.RemoteAddr)); wait > 0 {
		return tooManyGuesses(wait)
	}
	p.log.Debug("a delivery was refused", "app", vhost.app.Name, "err", err)
	why := words.Of("What was sent is not signed as this sender signs. Check the secret at both ends.")
	if errors.Is(err, senders.ErrTime) {
		why = words.Of("The time that was signed is more than five minutes from now. Check the clock, or send it anew.")
	}
	return refuse(http.StatusUnauthorized, why).with("Www-Authenticate", p.challenges(r, vhost, "")...)
}

// senderEnded answers a sender that may not come in any more.
func senderEnded() *answer {
	return refuse(http.StatusForbidden, words.Of("The owner takes nothing from this sender any more."))
}

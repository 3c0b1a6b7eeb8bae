package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
	"porchlight/internal/words"
)

// errTarget is of a request whose target cannot be sent on.
var errTarget = errors.New("the request's target holds a control character")

// forwardFailed answers when the app did not.
func (p *Proxy) forwardFailed(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	p.keepToHTTPS(w.Header(), &v.vhost)
	p.write(w, r, p.failure(r, v, err))
}

// failure is what a visitor is told whom the app gave no answer.
func (p *Proxy) failure(r *http.Request, v *visit, err error) *answer {
	switch {
	case v.stranger.Load() && !v.shut.Load():
		if !errors.Is(err, upstream.ErrKey) {
			err = upstream.ErrStranger // however the look at it ended the visit
		}
		p.appFailed(v, upstream.Explain(err), false)
		if _, live := p.lookup(v.vhost.app.Name); !live {
			return p.unpublished(v.vhost.host)
		}
		return p.notAnswering(r, v.vhost, v.tries) // nobody listens any more
	case v.late.Load() && !v.shut.Load():
		p.appFailed(v, upstream.Explain(context.DeadlineExceeded), false)
		return tooSlow(r, v)
	case v.shut.Load(), v.Err() != nil:
		panic(http.ErrAbortHandler) // nobody is left to answer
	case v.tooMany.Load():
		a := tooManyFields(r, false)
		a.close = true
		return a
	case v.bodyDied.Load():
		a := refuse(http.StatusBadRequest, words.Of("The request's body could not be read."))
		a.close = true
		return a
	case errors.Is(err, errTarget):
		return refuse(http.StatusBadRequest, words.Of("The request's target holds a control character."))
	}
	if odd := v.odd.Load(); odd != nil {
		err = *odd
	}
	why := upstream.Explain(err)
	op, network := errors.AsType[*net.OpError](err)
	p.appFailed(v, why, network && op.Op == "dial")
	switch why.State {
	case agentapi.HealthNothing:
		return p.notAnswering(r, v.vhost, v.tries)
	case agentapi.HealthSilent:
		return tooSlow(r, v)
	}
	return notHTTP(r, v, why)
}

// brokeOff notes that an app's answer, of which the visitor has had the beginning,
// came to no good end. Where the visitor left it is nobody's fault.
func (p *Proxy) brokeOff(v *visit, err error) {
	if !v.shut.Load() && v.Err() == nil {
		p.appFailed(v, upstream.Explain(err), false)
	}
}

// brokenAnswer is the error of reading an answer's body.
type brokenAnswer struct{ error }

func (b brokenAnswer) Unwrap() error { return b.error }

// appFailed tells the owner why a visitor got no answer of an app, or half a one. down
// says that nobody was there at all.
func (p *Proxy) appFailed(v *visit, why upstream.Failure, down bool) {
	v.note.failed(why.Sentence())
	p.log.Debug("an app failed", "app", v.vhost.app.Name, "why", why.Sentence()) // nothing it said: that may be a secret
	if p.config.OnFailed != nil {
		p.config.OnFailed(v.vhost.app.ID, why, down)
	}
}

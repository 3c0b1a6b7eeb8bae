package proxy

import (
	"net/http"

	"porchlight/agent/access"
	"porchlight/internal/words"
)

// headerKey is where an app password stands alone, without a user name: for programs that
// can be given a field of their own, and need Authorization for the app.
const headerKey = "X-Porchlight-Key"

// byKey finds out who asks by the app password in headerKey. Unlike one sent by Basic it is
// never what a browser sends by itself, so whatever a page of another origin causes is
// refused, and so is a request that names anybody else beside it.
func (p *Proxy) byKey(r *http.Request, vhost *virtualHost) (access.Identity, *answer) {
	values := r.Header[headerKey]
	switch {
	case len(values) != 1:
		return access.Identity{}, twoPeople()
	case elsewhere(r, vhost.origin):
		return access.Identity{}, foreign()
	}
	var room [64]byte // so that it is not copied to the heap
	id, err := p.config.Access.Key(append(room[:0], values[0]...), vhost.app.ID)
	if err != nil {
		return access.Identity{}, p.passwordRefused(r, vhost, true, err)
	}
	token, _, a := p.byToken(r, vhost)
	if a != nil {
		return access.Identity{}, a
	}
	password, _, a := p.byPassword(r, *vhost)
	if a != nil {
		return access.Identity{}, a
	}
	device, _, _ := p.byCertificate(r, vhost)
	session, _, _ := p.bySession(r, vhost)
	for _, other := range []access.Identity{token, password, session, device} {
		if other.AccountID != "" && other.AccountID != id.AccountID {
			return access.Identity{}, twoPeople()
		}
	}
	return id, nil
}

// twoPeople answers a request that says of two people, or twice, who asks.
func twoPeople() *answer {
	return refuse(http.StatusBadRequest, words.Of("This request says twice who asks. Send X-Porchlight-Key once, and nothing of anybody else."))
}

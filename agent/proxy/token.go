package proxy

import (
	"net/http"

	"porchlight/agent/identity"
	"porchlight/internal/words"
)

// addToken has an app that checks who is there be told so by a signed token, which says
// what the five say. Without one, where none can be made, such an app lets nobody in.
func (p *Proxy) addToken(h http.Header, v *visit) {
	text, err := p.config.Identity.Token(identity.Claims{
		Issuer: originOf("", v.vhost.root), Audience: v.vhost.origin,
		Subject: v.five[0], Email: v.five[1], Name: v.five[2], Role: v.five[4],
	})
	if err != nil {
		p.log.Error("an app is not told who its visitor is by a token", "app", v.vhost.app.Name, "err", err)
		return
	}
	h[headerToken] = []string{text}
}

// keySet answers whoever looks for the keys that verify such tokens; nil for any other
// request. It is the same at each name of the computer, so that nobody learns from it
// which apps there are.
func (p *Proxy) keySet(r *http.Request, vhost *virtualHost) *answer {
	switch {
	case r.URL.Path != pathKeys || vhost.origin == "" || p.config.Identity == nil:
		return nil
	case !reads(r):
		return wrongMethod(r, "GET, HEAD")
	}
	set, err := p.config.Identity.KeySet()
	if err != nil {
		p.log.Error("the keys that verify who visitors are", "err", err)
		return refuse(http.StatusInternalServerError, words.Of("This computer could not make its key. Its disk may be full."))
	}
	return &answer{Status: http.StatusOK, json: set}
}

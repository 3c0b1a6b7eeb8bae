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
		Issuer: originOf("", v.vhost.root), Audience: originOf(v.vhost.app.Name, v.vhost.root),
		Subject: v.five[0], Email: v.five[1], Name: v.five[2], Role: v.five[4],
	})
	if p.keyless(err) {
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
	if p.keyless(err) {
		return refuse(http.StatusInternalServerError, words.Of("This computer could not make its key. Its disk may be full."))
	}
	return &answer{Status: http.StatusOK, json: set}
}

// keyless says whether there is no key for lack of a disk that works. Whoever asks for pages
// comes here: it is written down once, until there is a key again.
func (p *Proxy) keyless(err error) bool {
	if was := p.noKey.Swap(err != nil); err != nil && !was {
		p.log.Error("apps are not told who their visitors are by a token, and nobody gets the keys that verify it", "err", err)
	}
	return err != nil
}

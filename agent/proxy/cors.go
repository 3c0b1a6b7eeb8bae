package proxy

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/engine"
	"porchlight/agent/proxy/ascii"
)

// Pages of other origins. Two kinds may send requests here: those of OAuth clients,
// with an access token, and, where the owner chose AllowCrossOrigin for an app,
// those of the sibling apps, with the visitor's cookie.
//
// A browser asks first (a CORS preflight, Fetch standard, section 4.8), without
// credentials, so that nothing could be forwarded; the agent answers by itself.
// To everybody but a sibling it says the same, whatever origin asks: a page may
// send a token, if it has one, and read what comes back, but never with a cookie.
// So a client's page can tell a token that has ended from a network that is down,
// and nobody learns which clients are let in. Of an app's own answers a page
// reads only those that a valid token got.

const (
	maxRequestHeaders = 4 << 10 // bytes of Access-Control-Request-Headers
	preflightAge      = "600"   // seconds, as long as an access token lives
)

// preflight answers a CORS preflight; nil for what is none.
func (p *Proxy) preflight(r *http.Request, host string) *answer {
	if r.Method != http.MethodOptions {
		return nil
	}
	origin, method := single(r.Header["Origin"]), single(r.Header["Access-Control-Request-Method"])
	if origin == "" || !httpguts.ValidHeaderFieldName(method) {
		return nil
	}
	h := http.Header{}
	readable(h)
	h.Set("Access-Control-Allow-Methods", method)
	if wanted := strings.Join(r.Header["Access-Control-Request-Headers"], ","); wanted != "" && headerNames(wanted) {
		h.Set("Access-Control-Allow-Headers", wanted)
	}
	if p.sibling(origin, host) {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	h.Set("Access-Control-Max-Age", preflightAge)
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	return &answer{Status: http.StatusNoContent, header: h}
}

// sibling says whether pages of an origin may come to the app at host with its
// visitors' cookies.
func (p *Proxy) sibling(origin, host string) bool {
	app, live := p.appAt(host)
	return live && app.Options.AllowCrossOrigin && p.siblingOrigin(origin)
}

// appAt is the live app at a host of this computer, or at an own domain that is proven.
func (p *Proxy) appAt(host string) (engine.App, bool) {
	root := p.config.Root()
	if name, below := labelOf(host, root); below {
		app, live := p.lookup(name)
		return app, live && name != ""
	}
	own, none := p.findOwn(host, root)
	return own.app, none == nil && p.config.Access.TakesTokens(host)
}

// dropCORS removes an app's own CORS headers.
func dropCORS(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}

// siblingOrigin says whether an origin is that of a live app of this computer.
func (p *Proxy) siblingOrigin(origin string) bool {
	host, secure := strings.CutPrefix(origin, "https://")
	name, _, _ := strings.Cut(host, ":")
	_, live := p.appAt(name)
	return secure && live && host == p.shown(name)
}

func headerNames(list string) bool {
	if len(list) > maxRequestHeaders {
		return false
	}
	for name := range strings.SplitSeq(list, ",") {
		name = ascii.Trim(name)
		if !httpguts.ValidHeaderFieldName(name) || strings.EqualFold(name, headerKey) { // no page is to send that
			return false
		}
	}
	return true
}

// single is the one value of a header, or empty.
func single(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

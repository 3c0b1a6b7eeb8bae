package proxy

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Pages of other origins. Two kinds may send requests here: those of an OAuth
// client that holds a live grant, with an access token, and, where the owner
// chose AllowCrossOrigin for an app, those of the sibling apps, with the
// visitor's cookie. A browser asks first (a CORS preflight, Fetch standard,
// section 4.8) and without credentials, so that nothing could be forwarded; the
// agent answers by itself. Every other origin's preflight fails as a request
// without an identity does.

const (
	maxRequestHeaders = 4 << 10 // bytes of Access-Control-Request-Headers
	preflightAge      = "600"   // seconds, as long as an access token lives
)

// preflight answers a CORS preflight of an origin that may send requests to the
// app, and says whether it did.
func (p *Proxy) preflight(w http.ResponseWriter, r *http.Request, at place) bool {
	if r.Method != http.MethodOptions {
		return false
	}
	origin, method := single(r.Header["Origin"]), single(r.Header["Access-Control-Request-Method"])
	if origin == "" || !httpguts.ValidHeaderFieldName(method) {
		return false
	}
	sibling := at.app.Options.AllowCrossOrigin && p.siblingOrigin(origin, at.root)
	if !sibling && !p.clientOrigin(origin) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", method)
	if wanted := strings.Join(r.Header["Access-Control-Request-Headers"], ","); wanted != "" && headerNames(wanted) {
		h.Set("Access-Control-Allow-Headers", wanted)
	}
	if sibling {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	h.Set("Access-Control-Max-Age", preflightAge)
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowClient lets the page of a client read the answer to a request it sends
// with an access token of ours, refusals included. It says whether it did; the
// app's own CORS headers then give way.
func (p *Proxy) allowClient(w http.ResponseWriter, r *http.Request) bool {
	origin := single(r.Header["Origin"])
	if origin == "" || !slices.ContainsFunc(r.Header["Authorization"], ourBearer) || !p.clientOrigin(origin) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "*")
	h.Add("Vary", "Origin")
	return true
}

// dropCORS removes an app's own CORS headers.
func dropCORS(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}

// clientOrigin says whether an origin is that of a client with a live grant.
func (p *Proxy) clientOrigin(origin string) bool {
	return slices.Contains(p.config.Access.Snapshot().ClientOrigins, origin)
}

// siblingOrigin says whether an origin is that of a live app of this computer.
func (p *Proxy) siblingOrigin(origin string, root Root) bool {
	name, ok := strings.CutSuffix(strings.TrimPrefix(origin, "https://"), "."+root.Host)
	if !ok {
		return false
	}
	_, live := p.lookup(name)
	return live && origin == originOf(name, root)
}

func headerNames(list string) bool {
	if len(list) > maxRequestHeaders {
		return false
	}
	for name := range strings.SplitSeq(list, ",") {
		if !httpguts.ValidHeaderFieldName(trim(name)) {
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

package proxy

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
)

// What the owner may choose for one app (the design, The proxy). None of it
// changes who gets in.

// Headers of our own, set when AppOptions.Forwarded asks for them. They are
// true: the address is the relay's PROXY header's, which is authenticated.
const (
	headerForwardedFor   = "X-Forwarded-For"
	headerForwardedProto = "X-Forwarded-Proto"
	headerForwardedHost  = "X-Forwarded-Host"
)

// identityHeader is the canonical name of the app's own identity header, or
// empty.
func identityHeader(o agentapi.AppOptions) string {
	if o.IdentityHeader == "" || !agentapi.ValidIdentityHeader(o.IdentityHeader) {
		return ""
	}
	return http.CanonicalHeaderKey(o.IdentityHeader)
}

// stripLike removes every header whose name an app could read as name.
func stripLike(h http.Header, name string) {
	for other := range h {
		if likeName(other, name) {
			delete(h, other)
		}
	}
}

// likeName compares two header names as reservedName does.
func likeName(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if fold(a[i]) != fold(b[i]) {
			return false
		}
	}
	return true
}

// applyOptions makes the owner's choices true in an outgoing request that has
// been stripped and holds our five headers. own is identityHeader of them.
func applyOptions(out, in *http.Request, v *visit, own string) {
	o := v.at.app.Options
	if own != "" {
		value := v.decision.Email
		if o.IdentityValue == agentapi.IdentityID {
			value = v.id.AccountID
		}
		out.Header[own] = []string{clean(value)}
	}
	if o.Forwarded {
		if host, _, err := net.SplitHostPort(in.RemoteAddr); err == nil {
			out.Header[headerForwardedFor] = []string{host}
		}
		out.Header[headerForwardedProto] = []string{"https"}
		out.Header[headerForwardedHost] = []string{in.Host}
	}
	if o.LocalhostHost {
		out.Host = "localhost:" + strconv.Itoa(v.at.app.Port)
	}
}

// publicLocation turns redirects of an app that was asked for as localhost:PORT
// back to its public address; the visitor's own localhost is another computer.
func publicLocation(h http.Header, at place) {
	for _, name := range [...]string{"Location", "Content-Location"} {
		value := h.Get(name)
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil || !strings.EqualFold(u.Host, "localhost:"+strconv.Itoa(at.app.Port)) || u.Scheme != "http" && u.Scheme != "" {
			continue
		}
		u.Scheme, u.Host = "", ""
		if u.User = nil; !strings.HasPrefix(u.EscapedPath(), "/") {
			u.Path, u.RawPath = "/"+u.Path, ""
		}
		h.Set(name, at.origin+u.String())
	}
}

// upstream takes requests to apps: HTTP/1.1, or HTTP/2 without TLS to those the
// owner says speak it. A WebSocket goes over HTTP/1.1 to them as well, which is
// how servers take one.
type upstream struct{ http1, http2 *http.Transport }

func newUpstream(dial dialFunc, idle int) upstream {
	http2 := newTransport(dial, idle)
	http2.Protocols = new(http.Protocols)
	http2.Protocols.SetUnencryptedHTTP2(true)
	return upstream{http1: newTransport(identified(dial), idle), http2: http2}
}

func (u upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	v := r.Context().Value(visitKey{}).(*visit)
	if v.at.app.Options.H2C && len(r.Header["Upgrade"]) == 0 {
		// In no order, and none is needed: an HTTP/2 server that finds too many
		// fields refuses the request and reads none of it.
		v.five.setIn(r.Header)
		return u.http2.RoundTrip(r)
	}
	return u.http1.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), v.five.trace())))
}

func (u upstream) CloseIdleConnections() {
	u.http1.CloseIdleConnections()
	u.http2.CloseIdleConnections()
}

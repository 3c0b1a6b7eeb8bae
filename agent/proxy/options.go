package proxy

import (
	"net"
	"net/http"

	"porchlight/agent/agentapi"
)

// What the owner may choose for one app (docs/interface.md). None of it changes
// who gets in.

// Headers of our own, set when AppOptions.Forwarded or PublicAddress asks for them. They
// are true: the address is the relay's PROXY header's, which is authenticated.
const (
	headerForwardedFor   = "X-Forwarded-For"
	headerForwardedProto = "X-Forwarded-Proto"
	headerForwardedHost  = "X-Forwarded-Host"
)

// identityHeader is the canonical name of the app's own identity header, or
// empty.
func identityHeader(o *agentapi.AppOptions) string {
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
// been stripped. own is identityHeader of them; from and host are what the visitor's
// request had.
func applyOptions(out *http.Request, from, host string, v *visit, own string) {
	o := &v.at.app.Options
	if own != "" {
		value := v.decision.Email
		if o.IdentityValue == agentapi.IdentityID {
			value = v.id.AccountID
		}
		out.Header[own] = []string{clean(value)}
	}
	if o.Forwarded {
		if address, _, err := net.SplitHostPort(from); err == nil {
			out.Header[headerForwardedFor] = []string{address}
		}
	}
	if o.Forwarded || o.PublicAddress {
		out.Header[headerForwardedProto] = []string{"https"}
		out.Header[headerForwardedHost] = []string{host}
	}
	v.at.toOwn(out)
}

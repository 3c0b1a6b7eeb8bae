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

// stripIdentity removes every header that an app could learn its visitor from in place
// of own, its identity header.
func stripIdentity(h http.Header, own string) {
	for name := range h {
		if identityName(name, own) {
			delete(h, name)
		}
	}
}

// applyOptions makes the owner's choices true in an outgoing request that has
// been stripped. own is identityHeader of them; from and host are what the visitor's
// request had.
func applyOptions(out *http.Request, from, host string, v *visit, own string) {
	o := &v.vhost.app.Options
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
	v.vhost.toOwn(out)
}

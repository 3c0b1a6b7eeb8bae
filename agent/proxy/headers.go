package proxy

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/access"
)

// The five headers an app learns its visitor from (docs/interface.md, Identity
// headers). Values are raw UTF-8 without control bytes, and not the encoding of
// RFC 8187, because that is what apps read without help.
const (
	headerUser  = "X-Service-User"
	headerEmail = "X-Service-Email"
	headerName  = "X-Service-Name"
	headerApp   = "X-Service-App"
	headerRole  = "X-Service-Role"
)

// strip removes from an outgoing request whatever a visitor could pass off as
// ours, and our own secrets, which are none of the app's business.
func strip(h http.Header) {
	for name := range h {
		if reservedName(name) {
			delete(h, name)
		}
	}
	if values, ok := h["Cookie"]; ok {
		if values = stripCookies(values); len(values) == 0 {
			delete(h, "Cookie")
		} else {
			h["Cookie"] = values
		}
	}
	if values, ok := h["Authorization"]; ok {
		kept := values[:0]
		for _, v := range values {
			if !access.HoldsToken(v) && !access.HoldsPassword(v) {
				kept = append(kept, v)
			}
		}
		if len(kept) == 0 {
			delete(h, "Authorization")
		} else {
			h["Authorization"] = kept
		}
	}
}

// five are the values of the five headers, in the order of fiveNames. They are
// kept beside a request's header and not in it: over HTTP/1.1 they are written
// right after Host, before anything a visitor sent, so that an app that reads no
// further than some number of fields has read them.
type five [5]string

var fiveNames = [5]string{headerUser, headerEmail, headerName, headerApp, headerRole}

func fiveOf(v *visit) five {
	return five{clean(v.id.AccountID), clean(v.decision.Email), clean(v.at.root.Name), clean(v.at.app.Label), clean(string(v.decision.Role))}
}

// appendTo writes the five as lines of an HTTP/1.1 head.
func (f *five) appendTo(b []byte) []byte {
	for i, name := range fiveNames {
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, textproto.TrimString(f[i])...)
		b = append(b, "\r\n"...)
	}
	return b
}

// setIn sets them in a header that has an order of its own.
func (f *five) setIn(h http.Header) {
	for i, name := range fiveNames {
		h[name] = f[i : i+1 : i+1]
	}
}

// clean drops control bytes, CR and LF among them. Nothing that reaches it
// should hold any; a header is no place to rely on that.
func clean(s string) string {
	if plainText(s) || strings.IndexFunc(s, control) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, s)
}

// plainText says whether there is nothing but ASCII, as nearly always, and no control byte.
func plainText(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// cleanTrailer is a declared trailer set without reserved names, without those
// an app could read as its own identity header, and without those that have no
// place after a body (framing, routing, credentials).
func cleanTrailer(declared http.Header, own string) http.Header {
	var out http.Header
	for name := range declared {
		if reservedName(name) || !httpguts.ValidTrailerHeader(name) || name == "Cookie" || identityName(name, own) {
			continue
		}
		if out == nil {
			out = make(http.Header, len(declared))
		}
		out[name] = nil
	}
	return out
}

// keepUpgrade drops an Upgrade that is not to a WebSocket and says whether one
// is left. Any other protocol would hand the app's connection to the visitor:
// h2c, for one, carries requests that nothing here has looked at.
func keepUpgrade(h http.Header) bool {
	values, ok := h["Upgrade"]
	if !ok {
		return false
	}
	if len(values) == 1 && strings.EqualFold(strings.TrimSpace(values[0]), "websocket") &&
		httpguts.HeaderValuesContainsToken(h["Connection"], "Upgrade") {
		return true
	}
	delete(h, "Upgrade")
	return false
}

// cleanResponse takes from an app's answer what would reach past its own host.
func (p *Proxy) cleanResponse(h http.Header, host string) {
	if values, ok := h["Set-Cookie"]; ok {
		if values = keepSetCookies(values, host); len(values) == 0 {
			delete(h, "Set-Cookie")
		} else {
			h["Set-Cookie"] = values
		}
	}
	if values, ok := h["Clear-Site-Data"]; ok {
		if kept := keepSiteData(values); kept == "" {
			delete(h, "Clear-Site-Data")
		} else {
			h["Clear-Site-Data"] = []string{kept}
		}
	}
	if p.config.Local {
		// The local certificate authority may be taken out again; a browser
		// that remembers HSTS would then refuse the address for a year.
		delete(h, headerHSTS)
	}
}

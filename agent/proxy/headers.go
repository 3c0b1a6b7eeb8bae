package proxy

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/access"
	"porchlight/agent/proxy/ascii"
	"porchlight/agent/upstream"
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

// headerToken says the same in a way that an app can check, where the owner chose it.
const headerToken = "X-Service-Token"

// strip removes from an outgoing request whatever a visitor could pass off as
// ours, and our own secrets, which are none of the app's business.
func strip(h http.Header) {
	for name := range h {
		if reservedName(name) {
			delete(h, name)
		}
	}
	keep(h, "Cookie", stripCookies(h["Cookie"]))
	keep(h, "Authorization", slices.DeleteFunc(h["Authorization"], func(value string) bool {
		return access.HoldsToken(value) || access.HoldsPassword(value)
	}))
}

// keep has a field be what is left of it.
func keep(h http.Header, name string, left []string) {
	if len(left) == 0 {
		delete(h, name)
	} else {
		h[name] = left
	}
}

// five are the values of the five headers, in the order of fiveNames. They are
// kept beside a request's header and not in it: over HTTP/1.1 they are written
// right after Host, before anything a visitor sent, so that an app that reads no
// further than some number of fields has read them.
type five [5]string

var fiveNames = [5]string{headerUser, headerEmail, headerName, headerApp, headerRole}

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
	if ascii.Printable([]byte(s)) || strings.IndexFunc(s, control) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, s)
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
	keep(h, "Set-Cookie", slices.DeleteFunc(h["Set-Cookie"], func(line string) bool { return !maySet(line, host) }))
	keep(h, "Clear-Site-Data", keepSiteData(h["Clear-Site-Data"]))
	delete(h, "Alt-Svc") // a port of the app's computer, which visitors do not reach (RFC 7838)
	if p.config.Local {
		// The local certificate authority may be taken out again; a browser
		// that remembers HSTS would then refuse the address for a year.
		delete(h, headerHSTS)
	}
}

// isHopByHop says of a field that it is of one connection (RFC 9110, section 7.6.1), or
// that old software takes it for such.
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// removeHopByHop removes them and what Connection names.
func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for name := range h {
		if isHopByHop(name) {
			delete(h, name)
		}
	}
}

// addHeader adds all of one header to another.
func addHeader(to, from http.Header) {
	for name, values := range from {
		if had, ok := to[name]; ok {
			to[name] = append(had[:len(had):len(had)], values...)
		} else {
			to[name] = values
		}
	}
}

// validNames is an error for a name of a field that no answer may have.
func validNames(h http.Header) error {
	for name := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return upstream.ErrName // one with a space, which net/http reads: the length may be in it
		}
	}
	return nil
}

// Values of headers that many answers share. Nobody writes to them.
var (
	everything = slices.Clip([]string{"*"})
	byOrigin   = slices.Clip([]string{"Origin"})
)

// readable lets the pages of any origin read an answer, without credentials.
func readable(h http.Header) {
	h["Access-Control-Allow-Origin"] = everything
	h["Access-Control-Expose-Headers"] = everything
	varyByOrigin(h)
}

// varyByOrigin keeps caches from giving the answer for one origin to another.
func varyByOrigin(h http.Header) {
	switch own := h["Vary"]; {
	case len(own) == 0:
		h["Vary"] = byOrigin
	case !slices.Contains(own, "Origin"):
		h.Add("Vary", "Origin")
	}
}

package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
)

// Two names stand for an app: the public one, which visitors know, and its own, which
// an app that insists on it is asked by (AppOptions.LocalhostHost and HostHeader).
// What names the app in a header is turned from one into the other here, and nowhere
// else:
//
//	in   Host, Origin, Referer, Destination: the public address becomes the app's
//	     own, where the app is asked by that; another address never does.
//	out  Location, Content-Location, Refresh, Link: the app's own address becomes
//	     the public one, always: localhost is another computer to a visitor, and
//	     http is nothing the public address speaks.
//
// What cannot be read in one way only stays as it is. A browser then finds nothing
// there, which is what would have happened without a translation.

// naming are the fields of an answer that name addresses.
var naming = [...]struct {
	field string
	in    inField
}{{"Location", wholeField}, {"Content-Location", wholeField}, {"Refresh", inRefresh}, {"Link", inLink}}

// ownHost is the Host an app is sent in place of the public one; empty for not.
func ownHost(app *engine.App) string {
	switch {
	case app.Options.HostHeader != "":
		return app.Options.HostHeader
	case app.Options.LocalhostHost:
		return "localhost:" + strconv.Itoa(app.Port)
	}
	return ""
}

// ownScheme is that of the address an app has on this computer.
func ownScheme(app *engine.App) string {
	if app.Options.Scheme() == agentapi.UpstreamHTTPS {
		return "https"
	}
	return "http"
}

// toOwn turns what names the app in a request's head into the app's own address.
func (vhost *virtualHost) toOwn(out *http.Request) {
	host := ownHost(&vhost.app)
	if host == "" {
		return
	}
	out.Host = host
	own := ownScheme(&vhost.app) + "://" + host
	for _, name := range [...]string{"Origin", "Referer", "Destination"} {
		values := out.Header[name]
		for i, value := range values {
			if a, ok := cutAddress(value); ok && vhost.isPublic(a) && (name != "Origin" || a.rest == "") {
				values[i] = own + a.rest
			}
		}
	}
}

// toPublic turns what names the app in an answer's head into its public address.
// misnamed says that the app named that address itself, and not as visitors reach it.
func (vhost *virtualHost) toPublic(h http.Header) (misnamed bool) {
	for _, n := range naming {
		if values := h[n.field]; len(values) > 0 && vhost.allToPublic(values, n.in) {
			misnamed = true
		}
	}
	return misnamed
}

func (vhost *virtualHost) allToPublic(values []string, in inField) (misnamed bool) {
	for i := range values {
		values[i] = in(values[i], func(address string) string {
			public, wrong := vhost.public(address)
			misnamed = misnamed || wrong
			return public
		})
	}
	return misnamed
}

// public is an address as visitors reach it; misnamed is as in toPublic.
func (vhost *virtualHost) public(value string) (public string, misnamed bool) {
	a, ok := cutAddress(value)
	if !ok {
		return value, false
	}
	misnamed = vhost.isMisnamed(a)
	if !misnamed && !vhost.isOwn(a) {
		return value, false
	}
	if !strings.HasPrefix(a.rest, "/") {
		a.rest = "/" + a.rest
	}
	return vhost.origin + a.rest, misnamed
}

// isPublic says whether an address is the app's public one.
func (vhost *virtualHost) isPublic(a address) bool {
	return a.scheme == "https" && strings.EqualFold(a.host, vhost.host) && a.portOr("443") == vhost.port()
}

// isMisnamed says whether an address is what an app makes of its public host that
// does not know that visitors come by https, or at which port.
func (vhost *virtualHost) isMisnamed(a address) bool {
	if !strings.EqualFold(a.host, vhost.host) {
		return false
	}
	switch a.port {
	case "", "80", vhost.port():
		return a.scheme == "http"
	}
	return a.port == strconv.Itoa(vhost.app.Port)
}

// isOwn says whether an address is the one the app has on this computer, or the one
// it is asked by.
func (vhost *virtualHost) isOwn(a address) bool {
	scheme, port := ownScheme(&vhost.app), strconv.Itoa(vhost.app.Port)
	if a.scheme == "" {
		a.scheme = scheme
	}
	named := a.portOr(defaultPort(a.scheme))
	switch strings.ToLower(a.host) {
	case "localhost", "127.0.0.1", "[::1]":
		return named == port
	}
	fixed, ok := cutAddress("//" + vhost.app.Options.HostHeader)
	return ok && strings.EqualFold(a.host, fixed.host) && a.scheme == scheme &&
		(named == fixed.portOr(defaultPort(scheme)) || named == port)
}

// address is an absolute address, cut where its path begins.
type address struct {
	scheme string // http, https, or empty for that of the page
	host   string // as it was written
	port   string // empty for none
	rest   string // path, query and fragment, every byte as it was; may be empty
}

func (a address) portOr(other string) string {
	if a.port == "" {
		return other
	}
	return a.port
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// cutAddress is not ok for an address that is relative to a path, that is none of
// HTTP, or that programs read in more ways than one: one with a user, a backslash,
// an escape or a control byte before its path.
func cutAddress(value string) (a address, ok bool) {
	slashes := strings.Index(value, "//")
	if slashes < 0 || slashes > len("https:") {
		return a, false
	}
	switch a.scheme = strings.ToLower(value[:slashes]); a.scheme {
	case "http:", "https:":
		a.scheme = a.scheme[:slashes-1]
	case "":
	default:
		return a, false
	}
	authority := value[slashes+2:]
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority, a.rest = authority[:end], authority[end:]
	}
	a.host, a.port, ok = cutPort(authority)
	return a, ok
}

// cutPort takes a host, a name or the one IPv6 address that is looked for, from its
// port.
func cutPort(authority string) (host, port string, ok bool) {
	const v6 = "[::1]"
	end := len(v6)
	if !strings.HasPrefix(authority, v6) {
		for end = 0; end < len(authority) && inName(authority[end]); end++ {
		}
	}
	host, port = authority[:end], authority[end:]
	if host == "" || port == "" {
		return host, port, host != ""
	}
	n, err := strconv.Atoi(port[1:])
	return host, port[1:], port[0] == ':' && err == nil && 0 < n && n < 1<<16 && port[1:] == strconv.Itoa(n)
}

func inName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_'
}

// inField is a field with each address in it changed by a function. A field that
// cannot be read stays as it is.
type inField func(value string, change func(address string) string) string

func wholeField(value string, change func(string) string) string { return change(value) }

// inRefresh reads "5; url=ADDRESS", as the HTML standard has browsers do it, with
// or without "url=" and quotes.
func inRefresh(value string, change func(string) string) string {
	rest := strings.TrimLeft(value, "0123456789.")
	if rest == value {
		return value
	}
	rest = strings.TrimLeft(rest, " \t")
	if rest == "" || rest[0] != ';' && rest[0] != ',' {
		return value
	}
	rest = strings.TrimLeft(rest[1:], " \t")
	if len(rest) > 3 && strings.EqualFold(rest[:3], "url") {
		if after, is := strings.CutPrefix(strings.TrimLeft(rest[3:], " \t"), "="); is {
			rest = strings.TrimLeft(after, " \t")
		}
	}
	before, after := value[:len(value)-len(rest)], ""
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return value
		}
		before, rest, after = before+rest[:1], rest[1:1+end], rest[1+end:]
	}
	return before + change(rest) + after
}

// inLink reads "<ADDRESS>; rel=x; title="y", <ADDRESS>" (RFC 8288, section 3). An
// address in a parameter stays as it is: browsers follow none.
func inLink(value string, change func(string) string) string {
	var out strings.Builder
	for rest := value; ; {
		start := len(rest) - len(strings.TrimLeft(rest, " \t,"))
		if start == len(rest) {
			return out.String() + rest
		}
		end := strings.IndexByte(rest, '>')
		if rest[start] != '<' || end < 0 {
			return value
		}
		params, ok := linkParams(rest[end+1:])
		if !ok {
			return value
		}
		out.WriteString(rest[:start+1])
		out.WriteString(change(rest[start+1 : end]))
		out.WriteString(rest[end : end+1+params])
		rest = rest[end+1+params:]
	}
}

// linkParams is how long the parameters of one link are, up to the comma after them.
func linkParams(s string) (length int, ok bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			return i, true
		case c == '<', c == '>':
			return 0, false
		}
	}
	return len(s), !quoted
}

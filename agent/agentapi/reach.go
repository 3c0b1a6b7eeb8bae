package agentapi

import (
	"net/netip"
	"strconv"
	"strings"
)

// Values of AppOptions.Upstream, and what a unix socket's begins with.
const (
	UpstreamHTTP  = "http"
	UpstreamHTTPS = "https"
	UpstreamH2C   = "h2c"
	upstreamUnix  = "unix:"
	// upstreamAuto is how the default is written where an empty word would be odd. It
	// is not kept.
	upstreamAuto = "auto"
)

const (
	maxHost      = 253 // letters of a host name
	maxHostLabel = 63  // letters between two dots of it
)

// Scheme is what is spoken to the app: UpstreamHTTP, UpstreamHTTPS or UpstreamH2C.
func (o AppOptions) Scheme() string {
	switch {
	case o.H2C || o.Upstream == UpstreamH2C:
		return UpstreamH2C
	case o.Upstream == UpstreamHTTPS:
		return UpstreamHTTPS
	}
	return UpstreamHTTP
}

// Socket is the path of the unix socket the app is reached at, or empty.
func (o AppOptions) Socket() string {
	path, ok := strings.CutPrefix(o.Upstream, upstreamUnix)
	if !ok {
		return ""
	}
	return path
}

// checkedReach is Checked for how the app is reached and as what.
func (o AppOptions) checkedReach() (AppOptions, error) {
	if o.Upstream == upstreamAuto {
		o.Upstream = ""
	}
	switch path := o.Socket(); {
	case path != "":
		if err := CheckSocketPath(path); err != nil {
			return o, err
		}
	case o.Upstream != "" && o.Upstream != UpstreamHTTP && o.Upstream != UpstreamHTTPS && o.Upstream != UpstreamH2C:
		return o, Errorf(CodeInvalid, "The app can be reached as auto, http, https, h2c or unix:/PATH, and not as %.80q.", o.Upstream)
	case o.H2C && (o.Upstream == UpstreamHTTP || o.Upstream == UpstreamHTTPS):
		return o, Errorf(CodeInvalid, "The options h2c and upstream %s contradict each other. Turn h2c off, or set upstream to auto.", o.Upstream)
	}
	switch {
	case o.Pin && o.Scheme() != UpstreamHTTPS:
		return o, Errorf(CodeInvalid, "Only an app reached over HTTPS shows a key that can be kept. Set upstream to https, or turn pin off.")
	case o.HostHeader != "" && o.LocalhostHost:
		return o, Errorf(CodeInvalid, "The options localhostHost and hostHeader both say what the app gets as Host. Take one of them.")
	case o.HostHeader != "" && !validHostHeader(o.HostHeader):
		return o, Errorf(CodeInvalid,
			"%.80q cannot be sent as Host. Write a host name of letters, digits, dots and dashes, and a port after a colon if it has one.", o.HostHeader)
	}
	return o, nil
}

// validHostHeader says whether a text is a host name or an IP address, with or
// without a port.
func validHostHeader(s string) bool {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		host, port = s[:i], s[i+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '0' {
			return false
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6() && addr.Zone() == ""
	}
	return validHost(host)
}

func validHost(host string) bool {
	if len(host) > maxHost {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > maxHostLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

package control

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"porchlight/control/controlapi"
)

// Redirect URIs are checked when a client is added, and only then: an
// authorization request has to name one of them byte for byte, and one that was
// added under earlier rules goes on working.

var (
	// privateSchemePattern is a reverse domain name, as native apps use (RFC
	// 8252, section 7.1).
	privateSchemePattern = regexp.MustCompile(`^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+$`)
	// numberPattern is the last part of a host that browsers read as an IPv4
	// address, in whichever way it is written.
	numberPattern = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)
)

// validRedirectURI accepts https anywhere, http on the same computer, and the
// private schemes of native apps (RFC 8252, section 7). Everything it accepts
// can be written into a Location and into a Content-Security-Policy, and leads a
// browser to where it says.
func validRedirectURI(raw string) error {
	bad := func(why string) error {
		return refuse(controlapi.CodeInvalid, "The redirect URI "+strings.ToValidUTF8(raw, "?")+" "+why)
	}
	if len(raw) > maxRedirectURI || strings.ContainsFunc(raw, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'<>\\^`{|}", r)
	}) {
		return bad("has characters a URI cannot have, or is too long.")
	}
	if strings.Contains(raw, "*") {
		return bad("has a *, which stands for nothing else here: redirect URIs are compared byte for byte. Name each one.")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || !strings.HasPrefix(raw, u.Scheme+":") {
		return bad("is not an absolute URI with its scheme in lower case.")
	}
	if strings.Contains(raw, "#") || u.User != nil {
		return bad("must have no fragment and no user name.")
	}
	if hasDotSegment(u) {
		return bad("has a . or .. between slashes, which browsers take out. Write the path it leads to.")
	}
	if why := badAnswerQuery(u); why != "" {
		return bad(why)
	}
	switch {
	case u.Scheme == "https" || u.Scheme == "http" && onThisComputer(u.Hostname()):
		if why := badRedirectHost(u); why != "" {
			return bad(why)
		}
		return nil
	case u.Scheme == "http":
		return bad("must be https, or http to 127.0.0.1 or localhost.")
	case privateSchemePattern.MatchString(u.Scheme):
		return nil
	default:
		return bad("must be https, http to 127.0.0.1 or localhost, or have a scheme like com.example.app.")
	}
}

func onThisComputer(host string) bool {
	return host == "127.0.0.1" || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// hasDotSegment says whether browsers would go to another path than is written
// (RFC 3986, section 5.2.4); they read %2e as a dot, too.
func hasDotSegment(u *url.URL) bool {
	for segment := range strings.SplitSeq(u.EscapedPath()+"/"+u.Opaque, "/") {
		segment = strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// badAnswerQuery says what is wrong with a query to which the answer's parameters
// are added, or "".
func badAnswerQuery(u *url.URL) string {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "has a query that cannot be read: a % or ; in it is to be written %25 or %3B."
	}
	for name := range query {
		switch name {
		case "code", "state", "error":
			return "has the parameter " + name + ", which the answer has, too."
		}
	}
	return ""
}

// badRedirectHost says what is wrong with host and port of an http or https URI,
// or "".
func badRedirectHost(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if u.Opaque != "" || !isHostName(host) || u.Host != host && (port == "" || u.Host != host+":"+port) {
		return "needs a host name in lower case."
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return "needs a port from 1 to 65535, or none."
		}
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; numberPattern.MatchString(last) {
		if _, err := netip.ParseAddr(host); err != nil {
			return "has a host that browsers read as another address: write it as four numbers, or by name."
		}
	}
	return ""
}

// RedirectSource is a registered redirect URI as a source of a
// Content-Security-Policy: its origin, or its scheme where that is a private
// one.
func RedirectSource(redirectURI string) string {
	u, err := url.Parse(redirectURI)
	if err != nil {
		return ""
	}
	if u.Scheme == "https" || u.Scheme == "http" {
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

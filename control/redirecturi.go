package control

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"porchlight/control/controlapi"
)

// Redirect URIs are checked when a client is added, and only then: an
// authorization request has to name one of them (see client.leadsTo), and one that
// was added under earlier rules goes on working.

var (
	// privateSchemePattern is a reverse domain name, as native apps use (RFC
	// 8252, section 7.1).
	privateSchemePattern = regexp.MustCompile(`^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+$`)
	// shortSchemePattern is any other scheme, as many programs for the desktop use it,
	// with a slash behind it: localhost:3000 is not meant as one.
	shortSchemePattern = regexp.MustCompile(`^[a-z][a-z0-9+-]*$`)
	// takenScheme is a scheme that browsers or systems act on themselves.
	takenScheme = regexp.MustCompile(`^(https?|wss?|ftps?|javascript|vbscript|data|file|blob|filesystem|about|view-source|jar|resource|mailto|tel|sms|urn|intent|chrome.*|moz-.*|ms-.*|.*-ms)$`)
	// loopbackPattern is http to the person's own computer, by host, port and the rest,
	// letter for letter: nothing in it is left for two readers to read in two ways.
	loopbackPattern = regexp.MustCompile(`^http://(127\.0\.0\.1|\[::1\]|localhost)(?::([1-9][0-9]{0,4}))?([/?].*)?$`)
	// numberPattern is the last part of a host that browsers read as an IPv4
	// address, in whichever way it is written.
	numberPattern = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)
)

// validRedirectURI accepts https anywhere, http on the same computer, and the
// private schemes of native apps (RFC 8252, section 7), those of public clients also
// without a dot. Everything it accepts
// can be written into a Location and into a Content-Security-Policy, and leads a
// browser to where it says.
func validRedirectURI(raw string, public bool) error {
	u, why := readRedirectURI(raw)
	if why == "" {
		why = badRedirectScheme(u, raw, public)
	}
	if why == "" {
		return nil
	}
	return refuse(controlapi.CodeInvalid, "The redirect URI "+strings.ToValidUTF8(raw, "?")+" "+why)
}

// readRedirectURI parses a redirect URI, and says what is wrong with its text, whatever it
// leads to, or "".
func readRedirectURI(raw string) (u *url.URL, why string) {
	if len(raw) > maxRedirectURI || strings.ContainsFunc(raw, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'<>\\^`{|}", r)
	}) {
		return nil, "has characters a URI cannot have, or is too long."
	}
	if strings.Contains(raw, "*") {
		return nil, "has a *, which stands for nothing else here: redirect URIs are compared byte for byte. Name each one."
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || !strings.HasPrefix(raw, u.Scheme+":") {
		return nil, "is not an absolute URI with its scheme in lower case."
	}
	if strings.Contains(raw, "#") || u.User != nil {
		return nil, "must have no fragment and no user name."
	}
	if hasDotSegment(u) {
		return nil, "has a . or .. between slashes, which browsers take out. Write the path it leads to."
	}
	return u, badAnswerQuery(u)
}

// badRedirectScheme says what is wrong with a redirect URI's scheme, or with the host it
// leads to, or "".
func badRedirectScheme(u *url.URL, raw string, public bool) string {
	_, loopback := withoutPort(raw)
	switch {
	case public && loopback:
		return ""
	case u.Scheme == "https" || u.Scheme == "http" && onThisComputer(u.Hostname()):
		return badRedirectHost(u)
	case u.Scheme == "http":
		return "must be https, or http to 127.0.0.1 or localhost."
	case privateSchemePattern.MatchString(u.Scheme),
		public && u.Opaque == "" && shortSchemePattern.MatchString(u.Scheme) && !takenScheme.MatchString(u.Scheme):
		return ""
	default:
		return "must be https, http to 127.0.0.1 or localhost, or have a scheme like com.example.app."
	}
}

// leadsTo says whether a redirect URI is one of a client's own, byte for byte. Programs of a
// public client, and of one that describes itself, listen at whatever port is free on the person's computer, so of a
// loopback address the port does not count (RFC 8252, section 7.3).
func (c client) leadsTo(redirectURI string) bool {
	if slices.Contains(c.RedirectURIs, redirectURI) {
		return true
	}
	asked, loopback := withoutPort(redirectURI)
	return (c.Public || c.Document != nil) && loopback && slices.ContainsFunc(c.RedirectURIs, func(own string) bool {
		own, loopback := withoutPort(own)
		return loopback && own == asked
	})
}

// withoutPort is a loopback redirect URI without its port, which may be missing.
func withoutPort(raw string) (rest string, loopback bool) {
	m := loopbackPattern.FindStringSubmatch(raw)
	if m == nil {
		return "", false
	}
	_, err := strconv.ParseUint(cmp.Or(m[2], "80"), 10, 16)
	return m[1] + m[3], err == nil
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
		case "code", "state", "error", "iss":
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
// one, or the host is one of IPv6, which no policy can name.
func RedirectSource(redirectURI string) string {
	u, err := url.Parse(redirectURI)
	if err != nil {
		return ""
	}
	if (u.Scheme == "https" || u.Scheme == "http") && !strings.HasPrefix(u.Host, "[") {
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

package proxy

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"porchlight/agent/proxy/ascii"
)

// cookiePrefix begins the names of all our cookies, of any instance. The
// instance follows because cookies ignore ports: two Porchlights may serve one
// host name on two ports.
const cookiePrefix = "__Host-porchlight-"

// cookieNames of one instance.
type cookieNames struct {
	session string // the session's value, see access.NewSession
	nonce   string // prefix: one cookie for each sign-in under way
	tries   string // how often the "not answering" page has reloaded
	app     string // the app this browser last signed in to here, see clearFormer
}

func namesFor(instance string) cookieNames {
	base := cookiePrefix + instance
	return cookieNames{session: base, nonce: base + "-n-", tries: base + "-t", app: base + "-a"}
}

// ourCookie compares a cookie's name as browsers compare the prefix: without
// case. Another instance's cookies count, they are secrets too.
func ourCookie(name string) bool {
	return len(name) >= len(cookiePrefix) && strings.EqualFold(name[:len(cookiePrefix)], cookiePrefix)
}

// eachCookie calls fn for every name and value in Cookie header lines, as they
// are, until fn returns false.
func eachCookie(lines []string, fn func(name, value string) bool) {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ";") {
			name, value, _ := strings.Cut(part, "=")
			if !fn(ascii.Trim(name), ascii.Trim(value)) {
				return
			}
		}
	}
}

// cookieValue returns the first cookie of that exact name. A browser holds one
// __Host- cookie of a name for a host.
func cookieValue(h http.Header, name string) (value string, ok bool) {
	eachCookie(h["Cookie"], func(n, v string) bool {
		if n == name {
			value, ok = v, true
		}
		return !ok
	})
	return value, ok
}

// stripCookies removes our cookies from Cookie header lines. Lines without any
// pass byte for byte.
func stripCookies(lines []string) []string {
	kept := lines[:0]
	for _, line := range lines {
		if !containsFold(line, cookiePrefix) {
			kept = append(kept, line)
			continue
		}
		var b strings.Builder
		for part := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(part, "=")
			if ourCookie(ascii.Trim(name)) {
				continue
			}
			if b.Len() > 0 {
				b.WriteByte(';')
			} else {
				part = ascii.Trim(part)
			}
			b.WriteString(part)
		}
		if ascii.Trim(b.String()) != "" {
			kept = append(kept, b.String())
		}
	}
	return kept
}

// maySet says whether an app on host may set a cookie: none of our names, and none for a
// parent domain, where sibling apps would get it.
func maySet(line, host string) bool {
	pair, attributes, _ := strings.Cut(line, ";")
	// A cookie without a name is sent back as its bare value, so "=ours=x" is
	// an attempt at ours as well.
	if ourCookie(strings.TrimLeft(pair, "= \t")) {
		return false
	}
	for attribute := range strings.SplitSeq(attributes, ";") {
		name, value, _ := strings.Cut(attribute, "=")
		if !strings.EqualFold(ascii.Trim(name), "domain") {
			continue
		}
		domain := strings.TrimPrefix(ascii.Trim(value), ".")
		if domain != "" && !strings.EqualFold(domain, host) {
			return false
		}
	}
	return true
}

// siteData are the directives of Clear-Site-Data that stay within the app's own
// origin. "cookies" takes those of the whole registrable domain away: our
// session here, and every sibling's.
var siteData = []string{`"cache"`, `"clientHints"`, `"executionContexts"`, `"prefetchCache"`, `"prerenderCache"`, `"storage"`}

// keepSiteData is what an app may clear of what it asked for. "*" stands for
// everything and so becomes everything but the cookies.
func keepSiteData(lines []string) []string {
	var kept []string
	for directive := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		switch directive = ascii.Trim(directive); {
		case directive == `"*"`:
			return []string{strings.Join(siteData, ", ")}
		case slices.Contains(siteData, directive):
			kept = append(kept, directive)
		}
	}
	if kept == nil {
		return nil
	}
	return []string{strings.Join(kept, ", ")}
}

func containsFold(s, sub string) bool {
	for i := 0; i+len(sub) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(sub)], sub) {
			return true
		}
	}
	return false
}

// setCookie sets one of our cookies for life; a life of zero takes it away.
func setCookie(h http.Header, name, value string, life time.Duration) {
	age := int(life / time.Second)
	if age <= 0 {
		age = -1
	}
	c := http.Cookie{
		Name: name, Value: value, MaxAge: age,
		Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	h.Add("Set-Cookie", c.String())
}

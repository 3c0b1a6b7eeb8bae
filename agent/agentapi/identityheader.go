package agentapi

import (
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// MaxIdentityHeader is the longest AppOptions.IdentityHeader, in bytes.
const MaxIdentityHeader = 64

// Headers an identity must never be sent in: those the connection, the browser
// or the proxy itself depend on, and those that change what a request asks for.
// Names ending in "-" stand for all that begin so.
var notForIdentity = []string{
	"x-service-", "x-forwarded-", "x-original-", "x-rewrite-", "x-http-method-", "x-method-override",
	"content-", "sec-", "proxy-", "access-control-", "if-", "accept-", "cf-",
	"accept", "age", "allow", "authorization", "cache-control", "connection", "cookie", "cookie2", "date", "depth",
	"destination", "dnt", "early-data", "etag", "expect", "expires", "forwarded", "from", "host", "http2-settings",
	"keep-alive", "last-event-id", "link", "location", "max-forwards", "origin", "overwrite", "pragma", "priority",
	"proxy", "range", "referer", "set-cookie", "te", "timeout", "trailer", "transfer-encoding", "upgrade",
	"user-agent", "vary", "via", "warning", "www-authenticate", "x-real-ip", "x-requested-with", "x-csrf-token", "x-xsrf-token",
}

// meantForIdentity are taken all the same: other proxies have sent who is there
// in them for long.
var meantForIdentity = []string{"x-forwarded-user", "x-forwarded-email", "x-forwarded-preferred-username"}

// ValidIdentityHeader says whether a name can be AppOptions.IdentityHeader: the
// name of a header that means nothing else. Letters are compared without case
// and everything else as "-", as apps read names. A name that is not valid is
// neither kept nor sent.
func ValidIdentityHeader(name string) bool {
	if len(name) > MaxIdentityHeader || !httpguts.ValidHeaderFieldName(name) {
		return false
	}
	folded := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name)
	switch {
	case strings.Trim(folded, "-") == "":
		return false
	case slices.Contains(meantForIdentity, folded):
		return true
	}
	for _, not := range notForIdentity {
		if folded == strings.TrimSuffix(not, "-") || strings.HasSuffix(not, "-") && strings.HasPrefix(folded, not) {
			return false
		}
	}
	return true
}

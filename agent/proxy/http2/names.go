package http2

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Names that visitors and apps use often, so that no string is made for one.
var (
	canonicalNames = map[string]string{} // by the name on the wire
	wireNames      = map[string]string{} // by the canonical name
)

func init() {
	for _, wire := range strings.Fields(`
		accept accept-charset accept-encoding accept-language accept-ranges
		access-control-allow-credentials access-control-allow-headers access-control-allow-methods
		access-control-allow-origin access-control-expose-headers access-control-max-age
		access-control-request-headers access-control-request-method age allow alt-svc authorization
		cache-control clear-site-data content-disposition content-encoding content-language content-length
		content-location content-range content-security-policy content-type cookie cross-origin-opener-policy
		cross-origin-resource-policy date dnt etag expect expires forwarded from grpc-encoding
		grpc-accept-encoding grpc-message grpc-status grpc-timeout host if-match if-modified-since if-none-match
		if-range if-unmodified-since last-modified link location max-forwards origin permissions-policy pragma
		priority proxy-authenticate proxy-authorization purpose range referer referrer-policy refresh retry-after
		sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user
		sec-gpc sec-purpose server server-timing service-worker set-cookie strict-transport-security te trailer
		upgrade-insecure-requests user-agent vary via www-authenticate x-accel-buffering x-content-type-options
		x-correlation-id x-csrf-token x-forwarded-for x-forwarded-host x-forwarded-proto x-frame-options
		x-powered-by x-real-ip x-request-id x-requested-with x-xss-protection`) {
		canonical := http.CanonicalHeaderKey(wire)
		canonicalNames[wire], wireNames[canonical] = canonical, wire
	}
}

// canonicalName is the name by which http.Header knows a field; ok is false for what is
// no name on the wire, one with a capital among them.
func canonicalName(wire string) (canonical string, ok bool) {
	if known, ok := canonicalNames[wire]; ok {
		return known, true
	}
	if !httpguts.ValidHeaderFieldName(wire) || strings.ToLower(wire) != wire {
		return "", false
	}
	return http.CanonicalHeaderKey(wire), true
}

// wireName is the name of an answer's field on the wire; ok is false for what has none.
func wireName(name string) (wire string, ok bool) {
	if known, ok := wireNames[name]; ok {
		return known, true
	}
	if !httpguts.ValidHeaderFieldName(name) {
		return "", false
	}
	return strings.ToLower(name), true
}

// ofConnection are an answer's fields that are about the connection, of which HTTP/2
// has none (RFC 9113, section 8.2.2).
func ofConnection(wire string) bool {
	switch wire {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// passing are fields whose values hardly come twice, or that nobody should be able to
// guess from how well they compress: they are not kept in the table of HPACK.
func passing(wire string) bool {
	switch wire {
	case "set-cookie", "content-length", "etag", "last-modified", "location", "content-range", "expires", "age",
		"x-request-id", "x-correlation-id", "server-timing", "www-authenticate", "content-disposition":
		return true
	}
	return false
}

package proxy

import (
	"net/http"
	"strings"
	"time"
)

const headerHSTS = "Strict-Transport-Security"

// What browsers are told to open by HTTPS only (RFC 6797), in seconds: a day, so that an
// address that does not stay can be had back soon, and a year once it has stayed. It is
// about this one host alone, never those below it, and nothing for lists of browsers.
var (
	hstsAtFirst = []string{"max-age=86400"}
	hstsLater   = []string{"max-age=31536000"}
)

// hstsAfter is how long a host has had a certificate before it is said for a year.
const hstsAfter = 30 * 24 * time.Hour

// keepToHTTPS tells browsers to open a host by HTTPS only, where its certificate is one
// that they all trust and its port is HTTPS's own. What the app says of it itself, and
// the owner of the app, comes first.
func (p *Proxy) keepToHTTPS(h http.Header, vhost *virtualHost) {
	if p.config.Local || p.config.Public == nil || vhost.app.Options.NoHSTS || vhost.shown() != vhost.host ||
		vhost.host == "localhost" || strings.HasSuffix(vhost.host, ".localhost") {
		return
	}
	if _, own := h[headerHSTS]; own {
		return
	}
	switch since, is := p.config.Public(vhost.host); {
	case !is:
	case p.now().Sub(since) < hstsAfter:
		h[headerHSTS] = hstsAtFirst[:1:1]
	default:
		h[headerHSTS] = hstsLater[:1:1]
	}
}

package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// Apps of one computer, and computers below one domain, are one site to a
// browser: it sends a visitor's cookie along with whatever page of theirs asks.
// So a request by cookie that another origin's page caused is refused, unless it
// opens this app in a tab, where the other page sees and reaches nothing of it.
// An app may let pages of its siblings in (AppOptions.AllowCrossOrigin).

// fetchedElsewhere says whether a page of another origin has a browser load
// something from here for itself: a script, a picture, a frame, a fetch. Browsers
// name the origin that causes a WebSocket; see foreignOrigin.
//
// What the app's own page began is not from elsewhere, even where it was redirected
// by another site on the way, such as a frame in which the page renews a sign-in:
// Origin or Referer names that page, and no page can have a browser name another.
//
// The destination of a tab is "document". It is "empty" where the app's own service
// worker passes the navigation on, but then it is "empty" for a frame too: so a frame
// of such an app gets an answer, and keepApart has the browser not show it. No script
// can ask in the mode "navigate".
func fetchedElsewhere(r *http.Request, origin string, webSocket bool) bool {
	site := first(r.Header["Sec-Fetch-Site"])
	if webSocket || site != "same-site" && site != "cross-site" || causedBy(r) == origin {
		return false
	}
	if !reads(r) || first(r.Header["Sec-Fetch-Mode"]) != "navigate" {
		return true
	}
	dest := first(r.Header["Sec-Fetch-Dest"])
	return dest != "document" && dest != "empty"
}

// causedBy is the origin of the page that had the request sent, as far as the
// browser says it; empty when it does not. Only what loads a picture, a script or
// a frame goes without Origin.
func causedBy(r *http.Request) string {
	if len(r.Header["Origin"]) > 0 || !reads(r) || len(r.Header["Upgrade"]) > 0 {
		return single(r.Header["Origin"])
	}
	page, err := url.Parse(r.Referer())
	if err != nil || page.Host == "" {
		return ""
	}
	return page.Scheme + "://" + page.Host
}

// What keepApart adds; shared by all answers and never changed.
var (
	framedByItself = []string{"frame-ancestors 'self'"}
	loadedByItself = []string{"same-origin"}
)

// keepApart has browsers keep an app's answer from pages of other origins: in
// frames, and as pictures and scripts. What the app says of it itself stands.
func keepApart(h http.Header) {
	if !saysWhoFrames(h) {
		if own := h["Content-Security-Policy"]; len(own) == 0 {
			h["Content-Security-Policy"] = framedByItself[:1:1]
		} else {
			h["Content-Security-Policy"] = append(own[:len(own):len(own)], framedByItself...)
		}
	}
	if len(h["Cross-Origin-Resource-Policy"]) == 0 {
		h["Cross-Origin-Resource-Policy"] = loadedByItself[:1:1]
	}
}

// saysWhoFrames says whether an app decides itself which pages may frame it.
func saysWhoFrames(h http.Header) bool {
	if len(h["X-Frame-Options"]) > 0 {
		return true
	}
	for _, line := range h["Content-Security-Policy"] {
		for policy := range strings.SplitSeq(line, ",") {
			for directive := range strings.SplitSeq(policy, ";") {
				name, _, _ := strings.Cut(strings.Trim(directive, " \t\r\n\f"), " ")
				if strings.EqualFold(name, "frame-ancestors") {
					return true
				}
			}
		}
	}
	return false
}

// welcomeForeign says whether a request from another origin with a visitor's
// cookie is wanted nevertheless: the owner allows it for this app, and it comes
// from an app of this computer. Pages of anybody else stay out.
func (p *Proxy) welcomeForeign(r *http.Request, vhost *virtualHost) bool {
	return vhost.app.Options.AllowCrossOrigin && p.siblingOrigin(causedBy(r))
}

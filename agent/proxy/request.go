package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// maxReturn is the longest path and query a visitor is brought back to, in
// bytes. Together with the nonce it stays within a 2 KiB cookie.
const maxReturn = 1400

// reads says whether a request only looks at something.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// navigation says whether a browser is loading a page into a tab, so that an
// answer may be a redirect to another site. Anything else (fetch, a frame, which
// cannot show the sign-in page, a form of the app's script, curl, an app) wants
// a status it can tell from success.
func navigation(r *http.Request) bool {
	if mode := first(r.Header["Sec-Fetch-Mode"]); mode != "" {
		dest := first(r.Header["Sec-Fetch-Dest"])
		return mode == "navigate" && (dest == "document" || dest == "")
	}
	if len(r.Header["Upgrade"]) > 0 || len(r.Header["X-Requested-With"]) > 0 || len(r.Header["Origin"]) > 0 {
		return false // no browser's page load, however old
	}
	return reads(r) && acceptsPage(r)
}

// passedOn says whether a service worker passes on what loads a page, or a frame.
func passedOn(r *http.Request) bool {
	return first(r.Header["Sec-Fetch-Mode"]) == "navigate" && first(r.Header["Sec-Fetch-Dest"]) == "empty"
}

// first is what Header.Get gives, of a name that is written as it is kept.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// loadsPage says whether a visitor looks at an empty tab until the app answers.
func loadsPage(r *http.Request) bool {
	return reads(r) && navigation(r)
}

// cameFrom is the path and query of the page of this origin that a request was
// made on, or "/".
func cameFrom(r *http.Request, origin string) string {
	page, ok := strings.CutPrefix(r.Referer(), origin)
	if !ok || !strings.HasPrefix(page, "/") {
		return "/"
	}
	return page
}

// wantsPage says whether an answer of ours should be a page rather than JSON.
func wantsPage(r *http.Request) bool { return navigation(r) || acceptsPage(r) }

func acceptsPage(r *http.Request) bool {
	return strings.Contains(first(r.Header["Accept"]), "text/html")
}

// foreignOrigin says whether a request that carries a session cookie may have
// been made by another site, sibling apps of the same computer included: those
// are same-site, so SameSite cookies do not keep them apart.
//
// Only unsafe methods and WebSockets are looked at; for the rest see
// fetchedElsewhere. A browser names the origin on all of those; a request that
// names neither Origin nor Sec-Fetch-Site is no browser's, and no page can make
// a browser leave both out. "null" is what a page with Referrer-Policy:
// no-referrer sends even to itself; Sec-Fetch-Site then tells the two apart.
func foreignOrigin(r *http.Request, origin string, webSocket bool) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		if !webSocket {
			return false
		}
	}
	site := first(r.Header["Sec-Fetch-Site"])
	switch values := r.Header["Origin"]; {
	case len(values) == 0:
		return site != "" && site != "same-origin" && site != "none"
	case len(values) == 1 && values[0] == origin:
		return false
	case len(values) == 1 && values[0] == "null":
		return site != "same-origin"
	default:
		return true
	}
}

// safeReturn is the path and query on this host a visitor may be sent back to
// after signing in, or "/" for whatever a browser could read as another host,
// for our own paths, and for what is too long.
func safeReturn(target string) string {
	if len(target) > maxReturn || !strings.HasPrefix(target, "/") {
		return "/"
	}
	for i := range len(target) {
		if c := target[i]; c <= 0x20 || c >= 0x7f || c == '\\' || c == '#' {
			return "/"
		}
	}
	u, err := url.ParseRequestURI(target)
	if err != nil || u.Host != "" || u.Scheme != "" || u.Opaque != "" || u.User != nil {
		return "/"
	}
	if strings.HasPrefix(u.Path, "//") || strings.ContainsAny(u.Path, "\\\r\n\t\x00") || isOurs(u.Path) && u.Path != pathDevices {
		return "/"
	}
	return target
}

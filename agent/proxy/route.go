package proxy

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/store"
)

// Paths of ours on every app's host.
const (
	pathOpen    = ourPath + "open"
	pathMe      = ourPath + "me"
	pathSignOut = ourPath + "sign-out"
	pathStyle   = ourPath + "style.css"
	pathIcon    = ourPath + "icon.svg"
)

// place is what a host name stands for: an app, or the launcher (App is zero).
type place struct {
	app    App
	root   Root
	host   string // without port
	origin string // https://host[:port]
}

// ServeHTTP is the way of a request, from its host to the app.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limitBody(w, r, time.Now().Add(bodyTimeout)) // until there is an app to take it
	if over, byCookie := tooLarge(r); over {
		p.tooManyFields(w, r, byCookie)
		return
	}
	host, ok := hostname(r)
	if !ok {
		p.misdirected(w, r)
		return
	}
	if p.preflight(w, r, host) {
		return
	}
	if p.config.Access.DarkSince() != nil {
		if !p.serveAsset(w, r) {
			p.dark(w, r, host)
		}
		return
	}
	if r.Method == http.MethodConnect {
		p.refuse(w, r, http.StatusMethodNotAllowed, "This address takes no CONNECT requests.")
		return
	}
	if !pathTarget(r) {
		p.refuse(w, r, http.StatusBadRequest, "The request's target is not a path.")
		return
	}
	if p.serveAsset(w, r) {
		return
	}
	root := p.config.Root()
	if !samePort(r.Host, root.Host) {
		p.misdirected(w, r)
		return
	}
	name, ok := labelOf(host, root)
	switch {
	case ok && name == "":
		p.serveLauncher(w, r, place{root: root, host: host, origin: originOf("", root)})
		return
	case ok && name == "portal":
		http.Redirect(w, r, originOf("", root)+"/", http.StatusPermanentRedirect)
		return
	}
	app, live := p.lookup(name)
	if !ok || !live {
		p.unpublished(w, r, host)
		return
	}
	at := place{app: app, root: root, host: host, origin: originOf(name, root)}
	r.Host = strings.TrimPrefix(at.origin, "https://") // however it was spelt
	p.clearFormer(w, r, app)
	if isOurs(r.URL.Path) {
		p.serveOurs(w, r, at)
		return
	}
	id, cookie, ok := p.identify(w, r, at)
	if ok {
		p.admit(w, r, at, id, cookie)
	}
}

// labelOf cuts the root host off a host name: "" is the root host itself. ok is
// false for names that are not directly under it.
func labelOf(host string, root Root) (name string, ok bool) {
	rootHost := withoutPort(root.Host)
	if rootHost == "" {
		return "", false
	}
	if host == rootHost {
		return "", true
	}
	name, ok = strings.CutSuffix(host, rootHost)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, ".")
	return name, ok && name != "" && !strings.Contains(name, ".")
}

// lookup finds a live app.
func (p *Proxy) lookup(name string) (App, bool) {
	app, ok := p.config.Apps.Lookup(name)
	return app, ok && app.Live && app.ID != ""
}

// identify finds out who asks. Without an answer the visitor has been sent to
// sign in, or told to, and ok is false. renew is a session cookie's value that
// is to be set again.
func (p *Proxy) identify(w http.ResponseWriter, r *http.Request, at place) (id access.Identity, renew string, ok bool) {
	if p.config.Bearer != nil {
		id, present, err := p.config.Bearer.Authenticate(r, at.app.ID)
		if err != nil {
			p.log.Debug("an access token was refused", "app", at.app.Name, "err", err)
			p.invalidToken(w, r)
			return access.Identity{}, "", false
		}
		if present {
			return id, "", true
		}
	}
	if cookie, has := cookieValue(r.Header, p.cookies.session); has {
		if id, renewed, ok := p.config.Access.Session(cookie, at.app.ID); ok {
			if !renewed {
				cookie = ""
			}
			return id, cookie, true
		}
	}
	p.signIn(w, r, at)
	return access.Identity{}, "", false
}

const invalidTokenChallenge = `Bearer error="invalid_token"`

func bearsToken(authorization string) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	return strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) != ""
}

// invalidToken answers an access token that is worth nothing here (RFC 6750,
// section 3.1).
func (p *Proxy) invalidToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", invalidTokenChallenge)
	p.refuse(w, r, http.StatusUnauthorized, "This access token is not valid here.")
}

// signIn sends a browser that loads a page to sign in and tells anything else.
// What was sent by a form is not sent again: the visitor comes back to the page
// the form was on.
func (p *Proxy) signIn(w http.ResponseWriter, r *http.Request, at place) {
	if navigation(r) {
		back := r.URL.RequestURI()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			back = cameFrom(r, at.origin)
		}
		p.bounce(w, r, at, safeReturn(back), 0)
		return
	}
	challenge := "Bearer"
	if slices.ContainsFunc(r.Header["Authorization"], bearsToken) {
		challenge = invalidTokenChallenge // an app's own, which lets nobody in without a session
	}
	w.Header().Set("WWW-Authenticate", challenge)
	writeJSON(w, http.StatusUnauthorized, sentence{"Sign in first: open " + at.origin + "/ in a browser."})
}

// admit registers the request, decides, and forwards. The order matters: what
// changes after the decision finds the request registered and closes it.
func (p *Proxy) admit(w http.ResponseWriter, r *http.Request, at place, id access.Identity, renew string) {
	for !p.answered(w, r, at, id, renew) {
		// Access ended while it was looked at: look again, for what to say.
	}
}

// answered is admit, but false when access ended before anything was sent.
func (p *Proxy) answered(w http.ResponseWriter, r *http.Request, at place, id access.Identity, renew string) bool {
	v, end := newVisit(w, r)
	d, leave := p.config.Access.Enter(id, at.app.ID, end)
	defer leave()
	defer v.finish()
	app, live := p.lookup(at.app.Name)
	if !live || app.ID != at.app.ID {
		p.unpublished(w, r, at.host)
		return true
	}
	at.app = app
	if !d.Allowed {
		p.denied(w, r, at, id, d)
		return true
	}
	callerOf(r).decide(w)
	if app.Paused {
		p.paused(w, r, at)
		return true
	}
	webSocket := keepUpgrade(r.Header)
	if id.SessionKey != (store.SessionKey{}) && !p.welcomeForeign(r, at) &&
		(foreignOrigin(r, at.origin, webSocket) || fetchedElsewhere(r, at.origin, webSocket)) {
		p.foreign(w, r)
		return true
	}
	in := room{account: id.AccountID, app: app.ID, webSocket: webSocket}
	if why := p.rooms.enter(in); why != roomFree {
		p.noRoom(w, r, at, why)
		return true
	}
	defer p.rooms.leave(in)
	v.at, v.id, v.decision, v.renew = at, id, d, renew
	v.client = id.GrantID != ""
	if !v.begin() {
		return false
	}
	p.config.Access.Opened(id, d.Email, app.ID, app.Label)
	p.forward(w, r, v)
	return true
}

// denied answers a visitor who is known but may not.
func (p *Proxy) denied(w http.ResponseWriter, r *http.Request, at place, id access.Identity, d access.Decision) {
	switch d.Reason {
	case access.ReasonSessionOver:
		p.signIn(w, r, at)
	case access.ReasonGrant: // revoked since the token was looked at
		p.invalidToken(w, r)
	case access.ReasonDark: // closed while the request was on its way here
		p.dark(w, r, at.host)
	case access.ReasonNoSnapshot, access.ReasonStale, access.ReasonBehind:
		p.stale(w, r, at)
	default:
		p.noAccess(w, r, at, id.Email)
	}
}

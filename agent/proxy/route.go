package proxy

import (
	"cmp"
	"net/http"
	"strings"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/proxy/gate"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// ServeHTTP is the way of a request to an app. Each step returns what the next
// one needs, or the answer that ends the way; no step sends one, and none calls a
// step before it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a := p.serve(w, r); a != nil {
		p.write(w, r, a)
	}
}

// serve is nil when the app has answered.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) *answer {
	host, a := p.checkHead(r)
	if a != nil {
		return a
	}
	if a := p.checked(r, host); a != nil {
		return a
	}
	vhost, a := p.find(r, host)
	if described := p.discovery(r, &vhost, a); described != nil {
		return described
	}
	if keys := p.keySet(r, &vhost); keys != nil {
		return keys
	}
	if vhost.launcher() && vhost.origin != "" { // or no app at all
		if _, _, refused := p.byToken(r, &vhost); refused != nil && refused.anyName {
			return refused
		}
	}
	if a != nil {
		return a
	}
	h := w.Header()
	if !vhost.launcher() {
		r.Host = strings.TrimPrefix(vhost.origin, "https://") // however it was spelt
		p.clearFormer(h, r, &vhost)
	}
	switch {
	case isOurs(r.URL.Path):
		a = p.serveOurs(w, r, vhost)
	case vhost.launcher():
		a = p.serveLauncher(h, r, vhost)
	default:
		a = p.ask(w, r, &vhost)
	}
	switch {
	case a == nil:
	case a.anyName:
		clear(h)
	default:
		p.keepToHTTPS(h, &vhost)
	}
	return a
}

// ask has an app answer somebody who is let in, and notes for the owner what was
// asked and how it went.
func (p *Proxy) ask(w http.ResponseWriter, r *http.Request, vhost *virtualHost) (a *answer) {
	n := p.noting(r, vhost)
	defer func() { n.done(a) }() // also of a visit that is cut off
	id, renew, present, a := p.known(r, vhost)
	var d *delivery
	if !present {
		if d, a = p.bySender(r, vhost, n); d != nil {
			defer d.release()
			id = d.Identity
		} else if a == nil {
			a = p.signIn(w.Header(), r, *vhost)
		}
	}
	if a != nil {
		return a
	}
	n.by(id.Called())
	for {
		// Where access ended while it was looked at, look again, for what to say.
		if a, again := p.toApp(w, r, vhost, id, renew, n, d); !again {
			return a
		}
	}
}

// checkHead judges the request by itself, whatever address it is for, and
// answers what is the same at every address.
func (p *Proxy) checkHead(r *http.Request) (host string, a *answer) {
	if cancelled, byCookie := gate.TooLarge(r); cancelled {
		return "", tooManyFields(r, byCookie)
	}
	host, ok := gate.Hostname(r)
	if !ok {
		return "", misdirected()
	}
	if a := p.preflight(r, host); a != nil {
		return "", a
	}
	if p.config.Access.DarkSince() != nil {
		if a := asset(r); a != nil {
			return "", a
		}
		return "", p.dark(host)
	}
	if why := p.config.Access.Suspended(); why != nil {
		if a := asset(r); a != nil {
			return "", a
		}
		return "", p.suspended(host, *why)
	}
	if r.Method == http.MethodConnect {
		return "", refuse(http.StatusMethodNotAllowed, words.Of("This address takes no CONNECT requests."))
	}
	if !gate.PathTarget(r) {
		return "", refuse(http.StatusBadRequest, words.Of("The request's target is not a path."))
	}
	return host, asset(r)
}

// find says what stands at a host: the launcher or a live app; or what to answer there. The
// origin is there of every name of this computer.
func (p *Proxy) find(r *http.Request, host string) (virtualHost, *answer) {
	root := p.config.Root()
	if !samePort(r.Host, root.Host) {
		return virtualHost{}, misdirected()
	}
	name, ok := labelOf(host, root)
	switch {
	case ok && name == "":
		return virtualHost{root: root, host: host, origin: originOf("", root)}, nil
	case ok && name == controlapi.Portal:
		home := http.RedirectHandler(originOf("", root)+"/", http.StatusPermanentRedirect)
		return virtualHost{root: root, host: host, origin: originOf(name, root)}, &answer{send: home.ServeHTTP}
	case !ok:
		return p.findOwn(host, root)
	}
	vhost := virtualHost{root: root, host: host, origin: originOf(name, root)}
	app, live := p.lookup(name)
	if !live {
		return vhost, p.unpublished(host)
	}
	vhost.app = app
	return vhost, nil
}

// toApp registers the request, decides, and forwards it, in this order: what
// changes after the decision finds the request registered and closes it. again is
// true when access ended before anything was sent.
func (p *Proxy) toApp(w http.ResponseWriter, r *http.Request, vhost *virtualHost, id access.Identity, renew string, n *note, d *delivery) (a *answer, again bool) {
	v := newVisit(w, r)
	id.Own = vhost.own
	v.vhost, v.id, v.renew, v.client, v.note, v.delivery = *vhost, id, renew, id.GrantID != "", n, d
	v.decision = p.config.Access.EnterAs(&v.entry, id, vhost.app.ID, v)
	defer v.unregister()
	defer v.finish()
	if d == nil {
		n.by(v.decision.Email)
	}
	webSocket, a := p.mayOpen(w.Header(), r, v)
	if a != nil {
		return a, false
	}
	in := room{account: id.AccountID, app: vhost.app.ID, webSocket: webSocket}
	if why := p.rooms.enter(in); why != roomFree {
		return noRoom(v.vhost, why), false
	}
	defer p.rooms.release(in)
	if !v.begin() {
		return nil, true
	}
	gate.Admit(w)
	if by := cmp.Or(id.PasswordID, id.DeviceID, id.SenderID); by != "" && !v.on.Holds(by) {
		v.on.Hold(by, p.config.Access.Rest(id, vhost.app.ID, v.on.Abort))
	}
	p.config.Activity.Opened(activity.Visit{
		Visited: store.Visited{AccountID: id.AccountID, AppID: v.vhost.app.ID, Email: v.decision.Email, Label: v.vhost.app.Label},
		Owner:   v.decision.Role == controlapi.RoleOwner, GrantID: id.GrantID, ClientID: id.ClientID, PasswordID: cmp.Or(id.PasswordID, id.DeviceID), Sender: id.Name,
	})
	if v.vhost.app.TCP {
		p.reach(w, r, v)
	} else {
		p.forward(w, r, v)
	}
	return nil, false
}

// mayOpen says whether a visit that is registered may open its app as that is now,
// and whether it wants a WebSocket.
func (p *Proxy) mayOpen(h http.Header, r *http.Request, v *visit) (webSocket bool, a *answer) {
	app, live := p.lookup(v.vhost.app.Name)
	if !live || app.ID != v.vhost.app.ID {
		return false, p.unpublished(v.vhost.host)
	}
	v.vhost.app = app
	if !v.decision.Allowed {
		return false, p.denied(h, r, v.vhost, v.id, v.decision)
	}
	if !v.id.Taken(&app.Options) {
		return false, p.notTaken(h, r, v.vhost, v.id)
	}
	v.on.LetIn(h)
	if app.Paused {
		return false, paused(v.vhost)
	}
	webSocket = keepUpgrade(r.Header)
	if v.id.ByBrowser() && !p.welcomeForeign(r, &v.vhost) &&
		(foreignOrigin(r, v.vhost.origin, webSocket) || fetchedElsewhere(r, v.vhost.origin, webSocket)) {
		return false, foreign()
	}
	return webSocket, notThisWay(r, &v.vhost, v.id, webSocket)
}

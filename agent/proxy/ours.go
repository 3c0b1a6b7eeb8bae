package proxy

import (
	"net/http"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// serveOurs answers the paths of ours on an app's host or the launcher's.
func (p *Proxy) serveOurs(w http.ResponseWriter, r *http.Request, at place) {
	switch r.URL.Path {
	case controlapi.CallbackPath:
		p.callback(w, r, at)
	case pathOpen:
		p.open(w, r, at)
	case pathMe:
		p.me(w, r, at)
	case pathSignOut:
		p.signOut(w, r, at)
	default:
		p.refuse(w, r, http.StatusNotFound, "There is nothing at this address.")
	}
}

// open takes the owner's one-time link.
func (p *Proxy) open(w http.ResponseWriter, r *http.Request, at place) {
	if r.Method != http.MethodGet {
		p.wrongMethod(w, r, http.MethodGet)
		return
	}
	owner, err := p.config.Access.RedeemLink(r.URL.Query().Get("token"), at.app.ID)
	if err != nil {
		p.badLink(w, r, at, err)
		return
	}
	p.welcome(w, r, at, owner.AccountID, owner.Epoch, "/")
}

// visitor is the body of GET /.porchlight/me: who this browser is signed in as.
type visitor struct {
	AccountID string          `json:"accountId"`
	Email     string          `json:"email"`
	Role      controlapi.Role `json:"role"`
	App       string          `json:"app"`  // label; empty at the launcher
	Name      string          `json:"name"` // the customer's short name
}

// elsewhere says whether a page of another origin makes a browser ask, siblings
// included. Who the visitor is, is for the app of this host alone.
func elsewhere(r *http.Request, origin string) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	values := r.Header["Origin"]
	return len(values) > 1 || len(values) == 1 && values[0] != origin
}

func (p *Proxy) me(w http.ResponseWriter, r *http.Request, at place) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.wrongMethod(w, r, "GET, HEAD")
		return
	}
	id, _, ok := p.identify(w, r, at)
	if !ok {
		return
	}
	if id.SessionKey != (store.SessionKey{}) && elsewhere(r, at.origin) {
		p.foreign(w, r)
		return
	}
	d := p.config.Access.Decide(id, at.app.ID)
	if !d.Allowed {
		p.denied(w, r, at, id, d)
		return
	}
	callerOf(r).decide(w)
	writeJSON(w, http.StatusOK, visitor{
		AccountID: id.AccountID, Email: d.Email, Role: d.Role, App: at.app.Label, Name: at.root.Name,
	})
}

// signOut ends the browser's session on this host, by POST; GET shows a page
// with the button, so that an app can link here. The form field "again" goes
// straight back to signing in.
func (p *Proxy) signOut(w http.ResponseWriter, r *http.Request, at place) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		p.askSignOut(w, r, at)
		return
	case http.MethodPost:
	default:
		p.wrongMethod(w, r, "GET, HEAD, POST")
		return
	}
	if foreignOrigin(r, at.origin, false) {
		p.foreign(w, r)
		return
	}
	if cookie, has := cookieValue(r.Header, p.cookies.session); has {
		if id, _, ok := p.config.Access.Session(cookie, at.app.ID); ok {
			if _, err := p.config.Access.SignOut(id.SessionKey); err != nil {
				p.log.Error("signing out", "app", at.app.Name, "err", err)
				p.refuse(w, r, http.StatusInternalServerError, "This computer could not end the session. Its disk may be full.")
				return
			}
		}
	}
	setCookie(w.Header(), p.cookies.session, "", 0)
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	if r.PostFormValue("again") != "" {
		redirect(w, at.origin+"/")
		return
	}
	p.signedOut(w, r, at)
}

// serveLauncher answers the root host: the apps this visitor may open.
func (p *Proxy) serveLauncher(w http.ResponseWriter, r *http.Request, at place) {
	if isOurs(r.URL.Path) {
		p.serveOurs(w, r, at)
		return
	}
	if r.URL.Path != "/" {
		p.refuse(w, r, http.StatusNotFound, "There is nothing at this address.")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.wrongMethod(w, r, "GET, HEAD")
		return
	}
	id, renew, ok := p.identify(w, r, at)
	if !ok {
		return
	}
	if id.SessionKey != (store.SessionKey{}) && fetchedElsewhere(r, at.origin, false) {
		p.foreign(w, r)
		return
	}
	d := p.config.Access.Decide(id, "")
	if !d.Allowed {
		p.denied(w, r, at, id, d)
		return
	}
	callerOf(r).decide(w)
	if renew != "" {
		setCookie(w.Header(), p.cookies.session, renew, access.SessionLife)
	}
	var may []App
	if p.config.List != nil {
		for _, app := range p.config.List() {
			if app.Live && p.config.Access.Decide(id, app.ID).Allowed {
				may = append(may, app)
			}
		}
	}
	p.launcher(w, r, at, d, may)
}

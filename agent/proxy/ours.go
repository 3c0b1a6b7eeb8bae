package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/engine"
	"porchlight/agent/proxy/gate"
	"porchlight/assets/style"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// serveOurs answers the paths of ours on an app's host or the launcher's.
func (p *Proxy) serveOurs(w http.ResponseWriter, r *http.Request, vhost virtualHost) *answer {
	h := w.Header()
	switch r.URL.Path {
	case controlapi.CallbackPath:
		return p.callback(h, r, vhost)
	case pathOpen:
		return p.redeemLink(h, r, vhost)
	case pathMe:
		return p.me(h, r, vhost)
	case pathApps:
		return p.listApps(h, r, vhost)
	case pathDevices:
		return p.ownDevices(w, r, vhost)
	case pathDevice:
		return p.fetchDevice(w, r, vhost)
	case pathDeviceScript:
		return p.launcherScript(r, vhost, deviceScript)
	case pathSignOut:
		return p.signOut(w, r, vhost)
	case pathManifest:
		return manifest(r, vhost)
	case pathScript:
		return p.launcherScript(r, vhost, launcherScript)
	case pathTimes:
		return p.launcherScript(r, vhost, style.Times())
	case pathVisit:
		return p.visited(r)
	default:
		return nothingHere()
	}
}

// redeemLink takes the owner's one-time link.
func (p *Proxy) redeemLink(h http.Header, r *http.Request, vhost virtualHost) *answer {
	if r.Method != http.MethodGet {
		return wrongMethod(r, http.MethodGet)
	}
	if vhost.own != "" {
		return nothingHere() // it is made for the app's own host
	}
	owner, err := p.config.Access.RedeemLink(r.URL.Query().Get("token"), vhost.app.ID)
	if err != nil {
		return badLink(vhost, err)
	}
	return p.welcome(h, r, vhost, owner.AccountID, owner.Epoch, access.ProofLocal, "/")
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

func (p *Proxy) me(h http.Header, r *http.Request, vhost virtualHost) *answer {
	if !reads(r) {
		return wrongMethod(r, "GET, HEAD")
	}
	id, _, a := p.identify(h, r, &vhost)
	if a != nil {
		return a
	}
	if id.ByBrowser() && elsewhere(r, vhost.origin) {
		return foreign()
	}
	d := p.config.Access.Decide(id, vhost.app.ID)
	if !d.Allowed {
		return p.denied(h, r, vhost, id, d)
	}
	if !id.Taken(&vhost.app.Options) {
		return p.notTaken(h, r, vhost, id)
	}
	gate.ConnOf(r).LetIn(h)
	return &answer{Status: http.StatusOK, json: visitor{
		AccountID: id.AccountID, Email: d.Email, Role: d.Role, App: vhost.app.Label, Name: vhost.root.Name,
	}}
}

// openApp is one of the apps of GET /.porchlight/apps: what an access token opens.
type openApp struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	URL   string `json:"url"`
}

// listApps tells a remote client which apps its token opens; nobody else, who has the launcher.
func (p *Proxy) listApps(h http.Header, r *http.Request, vhost virtualHost) *answer {
	if !reads(r) {
		return wrongMethod(r, "GET, HEAD")
	}
	id, _, a := p.identify(h, r, &vhost)
	switch {
	case a != nil:
		return a
	case id.GrantID == "":
		return nothingHere()
	}
	if d := p.config.Access.Decide(id, vhost.app.ID); !d.Allowed {
		return p.denied(h, r, vhost, id, d)
	}
	gate.ConnOf(r).LetIn(h)
	apps := []openApp{}
	for _, app := range p.opens(id) {
		if id.Taken(&app.Options) && app.TCP == (id.ClientID == controlapi.ReachClient) {
			apps = append(apps, openApp{app.Name, app.Label, originOf(app.Name, vhost.root)})
		}
	}
	return &answer{Status: http.StatusOK, json: map[string]any{"apps": apps}}
}

// signOut ends the browser's session on this host, by POST; GET shows a page
// with the button, so that an app can link here. The form field "again" goes
// straight back to signing in.
func (p *Proxy) signOut(w http.ResponseWriter, r *http.Request, vhost virtualHost) *answer {
	switch {
	case reads(r):
		return askSignOut(vhost)
	case r.Method != http.MethodPost:
		return wrongMethod(r, "GET, HEAD, POST")
	case foreignOrigin(r, vhost.origin, false):
		return foreign()
	}
	if cookie, has := cookieValue(r.Header, p.cookies.session); has {
		if id, _, ok := p.config.Access.SessionAt(vhost.own, cookie, vhost.app.ID); ok {
			if _, err := p.config.Access.SignOut(id.SessionKey); err != nil {
				p.log.Error("signing out", "app", vhost.app.Name, "err", err)
				return refuse(http.StatusInternalServerError, words.Of("This computer could not end the session. Its disk may be full."))
			}
		}
	}
	setCookie(w.Header(), p.cookies.session, "", 0)
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	if r.PostFormValue("again") != "" {
		return redirect(vhost.origin + "/")
	}
	return p.signedOut(r, vhost)
}

// OpenLink makes a link that signs the owner in at one app, or at the launcher
// for an empty name, once, within a minute. The caller has checked that it is the
// owner who asks.
func (p *Proxy) OpenLink(name string) (link string, expires time.Time, err error) {
	var app engine.App // the launcher's is zero
	if name != "" {
		var live bool
		if app, live = p.lookup(name); !live {
			return "", time.Time{}, fmt.Errorf("no app is live under the name %q", name)
		}
	}
	token, expires, err := p.config.Access.MintLink(app.ID)
	if err != nil {
		return "", time.Time{}, err
	}
	return originOf(app.Name, p.config.Root()) + pathOpen + "?" + url.Values{"token": {token}}.Encode(), expires, nil
}

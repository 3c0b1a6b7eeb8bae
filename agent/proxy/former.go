package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A name that is given to another app keeps its origin, and a browser keeps what
// the app before left there: a service worker, which goes on answering in the new
// app's place, and what it stored. So a browser that shows it was with a former
// app of the name is told to clear that, once.
//
// The same where the whole computer's name was another account's before.
//
// It shows that by a session of the former app, or by the mark that every sign-in
// sets and that stays after signing out. For another account's computer it shows it
// by such a cookie of another Porchlight, which only one at this host can have
// set. A browser that has neither may still have been there, because cookies expire
// and are evicted, or it may not: it is not told to clear anything, since that would
// take the data of the app that is here now.

// markLife is as long as browsers keep a cookie.
const markLife = 400 * 24 * time.Hour

// markOf is the value of the cookie that says which app a browser last signed in to
// here. Only this computer can make one.
func (p *Proxy) markOf(appID string) string {
	mac := hmac.New(sha256.New, p.config.Key)
	mac.Write([]byte("app\x00" + appID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

func (p *Proxy) markApp(h http.Header, appID string) {
	if appID != "" { // the launcher's host is no app's
		setCookie(h, p.cookies.app, p.markOf(appID), markLife)
	}
}

// clearFormer has a browser that was with a former app clear what it kept of it.
func (p *Proxy) clearFormer(h http.Header, r *http.Request, vhost *virtualHost) {
	app, own := &vhost.app, vhost.own != ""
	owners := own || p.config.Access.FormerOwner() // an own domain may have been at any computer
	if len(app.Formers) == 0 && !owners {
		return
	}
	mark, marked := cookieValue(r.Header, p.cookies.app)
	if marked && hmac.Equal([]byte(mark), []byte(p.markOf(app.ID))) {
		return
	}
	cookie, _ := cookieValue(r.Header, p.cookies.session)
	of, signedIn := p.config.Access.SessionApp(cookie)
	if signedIn && of == app.ID {
		return
	}
	met := func(former string) bool {
		return marked && hmac.Equal([]byte(mark), []byte(p.markOf(former))) || signedIn && of == former
	}
	if own && (marked || signedIn) || slices.ContainsFunc(app.Formers, met) || owners && p.metAnother(r.Header) {
		h.Set("Clear-Site-Data", `"cache", "storage"`)
		p.markApp(h, app.ID)
	}
}

// metAnother says whether a browser holds the session or the mark of another
// Porchlight at this host.
func (p *Proxy) metAnother(h http.Header) bool {
	const instance = 8 // digits, see Config.Instance
	met := false
	eachCookie(h["Cookie"], func(name, _ string) bool {
		rest, ours := strings.CutPrefix(name, cookiePrefix)
		met = ours && len(rest) >= instance && rest[:instance] != p.config.Instance && (rest[instance:] == "" || rest[instance:] == "-a")
		return !met
	})
	return met
}

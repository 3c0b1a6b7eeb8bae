package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
)

// refuse answers with a sentence where nothing more can be said or done.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	p.show(w, r, page{Status: status, Title: http.StatusText(status), Text: text})
}

func (p *Proxy) wrongMethod(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	p.refuse(w, r, http.StatusMethodNotAllowed, "This address does not take "+r.Method+" requests.")
}

// misdirected is 421: the request came on a connection made for another host.
func (p *Proxy) misdirected(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, page{
		Status: http.StatusMisdirectedRequest, Title: "Wrong connection", What: "misdirected",
		Text: "The request's host is not the one this connection was made for.",
	})
}

// unpublished is the same page for an address that never was and for one that
// is not live now, so that nobody can find out which names exist.
func (p *Proxy) unpublished(w http.ResponseWriter, r *http.Request, host string) {
	p.show(w, r, page{
		Status: http.StatusNotFound, Host: host, What: "not published",
		Title: "Nothing is published here",
		Text:  "No app can be opened at this address right now.",
		Fine:  "Check the address, or ask the person who gave it to you.",
	})
}

// noAccess tells a signed-in visitor that this is not theirs. It shows the host
// and never the label: what the app is called is for those who may open it.
func (p *Proxy) noAccess(w http.ResponseWriter, r *http.Request, at place, email string) {
	text, fine := "You can’t open "+at.host+".", "Think it should be? Ask the person who sent you here to invite you."
	if email != "" {
		text = "That address can’t open " + at.host + "."
		fine = "Think it should be? Ask the person who sent you here to invite " + email + "."
	}
	pg := page{
		Status: http.StatusForbidden, Host: at.host, Email: email,
		Title: "This isn’t shared with you", Text: text, Fine: fine,
		SignOut: pathSignOut, Button: "Sign in with another address", Again: true,
	}
	if at.app.ID != "" {
		pg.Link, pg.LinkText = originOf("", at.root)+"/", "See what you can open"
	}
	p.show(w, r, pg)
}

// foreign refuses what another site made a signed-in browser send.
func (p *Proxy) foreign(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, page{
		Status: http.StatusForbidden, Title: "This came from another site", What: "foreign origin",
		Text: "A page of another site sent this request. Open the app itself and try there.",
	})
}

// Seconds between two tries of the "not answering" page.
var retryAfter = [...]int{3, 5, 8, 13, 20, 30}

// notAnswering is 502: the computer is on, the app is not. Loaded by a browser
// it tries again by itself, slower each time; how often it did is kept in a
// cookie, value, that dies soon after the last try.
func (p *Proxy) notAnswering(w http.ResponseWriter, r *http.Request, at place, value string) {
	pg := page{
		Status: http.StatusBadGateway, Host: at.host, What: "app not answering",
		Title: at.app.Label + " isn’t answering",
		Text:  "The computer is on, but the app behind this address is not. It may be starting.",
		Fine:  "Still nothing? Tell the person who shared it with you.",
	}
	if r.Method == http.MethodGet && navigation(r) {
		tries, err := strconv.Atoi(value)
		if err != nil || tries < 0 {
			tries = 0
		}
		tries = min(tries, len(retryAfter)-1)
		pg.Retry = retryAfter[tries]
		wait := time.Duration(pg.Retry) * time.Second
		setCookie(w.Header(), p.cookies.tries, strconv.Itoa(tries+1), 2*wait+10*time.Second)
		pg.Link, pg.LinkText = safeReturn(r.URL.RequestURI()), "Try now"
	}
	w.Header().Set("Retry-After", "3")
	p.show(w, r, pg)
}

// tooSlow is 504: the app took the request and has not said a word. It does not
// try again by itself, which would only keep a struggling app busy.
func (p *Proxy) tooSlow(w http.ResponseWriter, r *http.Request, at place) {
	p.show(w, r, page{
		Status: http.StatusGatewayTimeout, Host: at.host, What: "app too slow",
		Title: at.app.Label + " is taking too long",
		Text:  "The app behind this address is on, but it has not answered. It may be busy or stuck.",
		Fine:  "Still nothing? Tell the person who shared it with you.",
		Link:  safeReturn(r.URL.RequestURI()), LinkText: "Try again",
	})
}

// stale is 503: the control plane has not said for too long, or not since this
// visitor signed in, who may open what.
func (p *Proxy) stale(w http.ResponseWriter, r *http.Request, at place) {
	p.show(w, r, page{
		Status: http.StatusServiceUnavailable, Host: at.host, What: "waiting for the sign-in service",
		Title: "Can’t check who you are", Text: "This computer has not heard from its sign-in service lately, so it can’t tell who may come in. It keeps trying.",
		Link: "/", LinkText: "Try again",
	})
}

// unreachable is 503: the control plane did not answer while signing in.
func (p *Proxy) unreachable(w http.ResponseWriter, r *http.Request, at place) {
	w.Header().Set("Retry-After", "5")
	p.show(w, r, page{
		Status: http.StatusServiceUnavailable, Host: at.host, What: "sign-in service not answering",
		Title: "Can’t sign you in right now", Text: "This computer can’t reach the sign-in service. Whoever is signed in already stays so.",
		Link: "/", LinkText: "Try again",
	})
}

// tooManyWrong is 429: of this visitor's network came many codes that were none.
func (p *Proxy) tooManyWrong(w http.ResponseWriter, r *http.Request, at place) {
	w.Header().Set("Retry-After", "5")
	p.show(w, r, page{
		Status: http.StatusTooManyRequests, Host: at.host, What: "too many failed sign-ins",
		Title: "Can’t sign you in right now", Text: "Many sign-ins from your network failed. Wait a little, then open the app again.",
		Link: "/", LinkText: "Try again",
	})
}

// notConnected is 503: there is no control plane to sign in at.
func (p *Proxy) notConnected(w http.ResponseWriter, r *http.Request, at place) {
	p.show(w, r, page{
		Status: http.StatusServiceUnavailable, Host: at.host, What: "not connected",
		Title: "Can’t sign you in right now", Text: "This computer is not connected to a sign-in service.",
		Link: "/", LinkText: "Try again",
	})
}

func (p *Proxy) signInFailed(w http.ResponseWriter, r *http.Request, at place, text string) {
	p.show(w, r, page{
		Status: http.StatusBadRequest, Host: at.host, Title: "You are not signed in", Text: text,
		Link: "/", LinkText: "Sign in",
	})
}

func (p *Proxy) badLink(w http.ResponseWriter, r *http.Request, at place, err error) {
	pg := page{
		Status: http.StatusForbidden, Host: at.host, Title: "This link is over",
		Text: "A link from the menu bar works once and for a minute. Choose Open there again, or sign in.",
		Link: "/", LinkText: "Sign in",
	}
	if errors.Is(err, access.ErrNoOwner) {
		pg.Status, pg.Title = http.StatusServiceUnavailable, "Can’t sign you in right now"
		pg.Text = "This computer does not know its owner yet. It may still be connecting."
	}
	p.show(w, r, pg)
}

func (p *Proxy) askSignOut(w http.ResponseWriter, r *http.Request, at place) {
	p.show(w, r, page{
		Status: http.StatusOK, Host: at.host, Title: "Sign out?",
		Text:    "This browser will have to sign in again to open " + at.host + ".",
		SignOut: pathSignOut, Button: "Sign out", Link: "/", LinkText: "Stay signed in",
	})
}

func (p *Proxy) signedOut(w http.ResponseWriter, r *http.Request, at place) {
	if !wantsPage(r) {
		writeJSON(w, http.StatusOK, struct {
			OK bool `json:"ok"`
		}{true})
		return
	}
	pg := page{
		Status: http.StatusOK, Host: at.host, Title: "You are signed out",
		Text: "This browser is signed out of " + at.host + ".",
		Link: "/", LinkText: "Sign in",
	}
	if auth := strings.TrimSpace(p.authOrigin()); auth != "" {
		host := page{Auth: auth}.AuthHost()
		pg.Fine = "It may still be signed in at " + host + ", which lets it in here again without asking. To use another address, or on somebody else’s computer, sign out there too."
		pg.More, pg.MoreText = auth+"/account", "Sign out at "+host
	}
	p.show(w, r, pg)
}

// launcher lists what a visitor may open; the owner's are all that are live.
func (p *Proxy) launcher(w http.ResponseWriter, r *http.Request, at place, d access.Decision, apps []App) {
	pg := page{
		Status: http.StatusOK, Launcher: true, Host: at.host, Title: at.host, Email: d.Email,
		Owner: d.Role == controlapi.RoleOwner, Auth: strings.TrimSpace(p.authOrigin()), SignOut: pathSignOut,
	}
	what := "apps are"
	if len(apps) == 1 {
		what = "app is"
	}
	switch {
	case pg.Owner && len(apps) == 0:
		pg.Text = "None of your apps is published right now."
	case pg.Owner:
		pg.Text = fmt.Sprintf("%d %s published here. Others see only what you share with them.", len(apps), what)
	case len(apps) == 0:
		pg.Fine = "If you were invited under another address, sign out and use that one."
	default:
		pg.Text = fmt.Sprintf("%d %s shared with you here.", len(apps), what)
		pg.Fine = "Missing something? Ask the person who invited you."
	}
	for _, app := range apps {
		first, _ := utf8.DecodeRuneInString(strings.TrimSpace(app.Label))
		origin := originOf(app.Name, at.root)
		pg.Apps = append(pg.Apps, launcherRow{
			Label: app.Label, Letter: string(unicode.ToUpper(first)),
			Host: strings.TrimPrefix(origin, "https://"), URL: origin + "/", Paused: app.Paused,
		})
	}
	p.show(w, r, pg)
}

package proxy

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/upstream"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// What a visitor is told in place of the app. Each function only makes the answer;
// see write.

// refuse is a sentence, and the way back to where the host begins.
func refuse(status int, text words.Sentence) *answer {
	a := &answer{Status: status, Text: words.Text{text}, Link: "/", LinkText: words.Of("Go to the start page")}
	switch status {
	case http.StatusNotFound:
		a.Title = words.Of("Nothing here")
	case http.StatusInternalServerError:
		a.Title = words.Of("That did not work")
	default:
		a.Title = words.Of("That can’t be opened")
	}
	return a
}

// sheet says one thing, and has a way to where the host begins.
func sheet(status int, host string, title, text, back words.Sentence) *answer {
	return &answer{Status: status, Host: host, Title: title, Text: one(text), Link: "/", LinkText: back}
}

// with adds a field to the answer's header.
func (a *answer) with(name string, values ...string) *answer {
	a.header = http.Header{name: values}
	return a
}

// one is a text of one constant sentence.
func one(sentence words.Sentence) words.Text { return words.Text{sentence} }

func nothingHere() *answer {
	return refuse(http.StatusNotFound, words.Of("There is nothing at this address."))
}

func wrongMethod(r *http.Request, allow string) *answer {
	return refuse(http.StatusMethodNotAllowed, words.Of("This address does not take %s requests.", r.Method)).with("Allow", allow)
}

// misdirected is 421: the request came on a connection made for another host.
func misdirected() *answer {
	return sheet(http.StatusMisdirectedRequest, "", words.Of("Wrong connection"),
		words.Of("The request's host is not the one this connection was made for."),
		words.Of("Try again"))
}

// tooManyFields is 431. Cookies are deleted from a browser that loads a page and
// is kept out by nothing else; that takes the cookies of all addresses of its
// registrable domain, other people's too, so it is done for no lesser reason.
func tooManyFields(r *http.Request, byCookie bool) *answer {
	a := &answer{
		Status: http.StatusRequestHeaderFieldsTooLarge,
		Title:  words.Of("This request is too large"),
		Text:   one(words.Of("It has more than 200 header fields, or they have more than 64 KiB. Send fewer or shorter ones.")),
		Fine:   one(words.Of("In a browser, delete the cookies of this address and load the page again.")),
		header: http.Header{},
		close:  r.ProtoMajor == 1, // the rest of it was not read
	}
	if byCookie && navigation(r) {
		a.header.Set("Clear-Site-Data", `"cookies"`)
		a.Title = words.Of("There were too many cookies")
		a.Text = one(words.Of("Pages of this site or of its neighbours had left more cookies in this browser than can be sent along. They are deleted now. Reload the page; you may have to sign in again."))
		a.Fine = one(words.Of("Still here? Delete the cookies of this address in the browser’s settings."))
		a.Link, a.LinkText = safeReturn(r.URL.RequestURI()), words.Of("Reload")
	}
	return a
}

// dark answers everything while the owner has closed everything, on every host,
// published or not, and before anybody is asked who they are: it tells nothing
// of which apps there are, and not when it opens again, which nobody knows.
func (p *Proxy) dark(host string) *answer {
	return sheet(http.StatusServiceUnavailable, p.shown(host), words.Of("Closed for now"),
		words.Of("The owner of this computer has closed everything for now. Nothing here can be opened until they open it again."),
		words.Of("Try again"))
}

// suspended is dark for what the server's operator has ended.
func (p *Proxy) suspended(host string, why controlapi.Suspended) *answer {
	return sheet(http.StatusForbidden, p.shown(host), words.Of("That can’t be opened"), why.Sentence(), words.Of("Try again"))
}

// paused answers those who may open an app that the owner has paused.
func paused(vhost virtualHost) *answer {
	return sheet(http.StatusServiceUnavailable, vhost.shown(), words.Of("%s is paused", vhost.app.Label),
		words.Of("The owner has paused this app. It keeps its address, and you keep your access for when it opens again."),
		words.Of("Try again"))
}

// unpublished is the same page for an address that never was and for one that
// is not live now, so that nobody can find out which names exist.
func (p *Proxy) unpublished(host string) *answer {
	a := &answer{
		Status: http.StatusNotFound, Host: p.shown(host),
		Title: words.Of("Nothing is published here"),
		Text:  one(words.Of("No app can be opened at this address right now.")),
		Fine:  one(words.Of("Check the address, or ask the person who gave it to you.")),
	}
	if root := p.config.Root(); root.Host != "" {
		a.Link, a.LinkText = originOf("", root)+"/", words.Of("See what you can open")
	}
	return a
}

// foreign refuses what another site made a signed-in browser send.
func foreign() *answer {
	return sheet(http.StatusForbidden, "", words.Of("This came from another site"),
		words.Of("A page of another site sent this request. Open the app itself and try there."),
		words.Of("Go to the start page"))
}

// noRoom is 503: there is too much open at once.
func noRoom(vhost virtualHost, why full) *answer {
	a := &answer{
		Status: http.StatusServiceUnavailable, Host: vhost.shown(),
		Title: words.Of("Too much is open at once"),
		Link:  "/", LinkText: words.Of("Try again"),
		header: http.Header{"Retry-After": {"5"}},
	}
	switch why {
	case appFull:
		a.Text = one(words.Of("You have as much open at this app as one person can have at a time. Close some of its tabs or programs, or wait until they are done, then try again."))
	case personFull:
		a.Text = one(words.Of("You have as much open at the apps of this computer as one person can have at a time. Close some tabs or programs, or wait until they are done, then try again."))
	default:
		a.Text = one(words.Of("So much is open on this computer that it can take no more at the moment. Wait a little, then try again."))
	}
	return a
}

// Seconds between two tries of the "not answering" page.
var retryAfter = [...]int{3, 5, 8, 13, 20, 30}

// notAnswering is 502: the computer is on, the app is not. Loaded by a browser
// it tries again by itself, slower each time; how often it did is kept in a
// cookie, value, that dies soon after the last try.
func (p *Proxy) notAnswering(r *http.Request, vhost virtualHost, value string) *answer {
	a := &answer{
		Status: http.StatusBadGateway, Host: vhost.shown(),
		Title:  words.Of("%s isn’t answering", vhost.app.Label),
		Text:   one(words.Of("The computer is on, but nothing listens behind this address. It may be starting.")),
		Fine:   one(words.Of("Still nothing? Tell the person who shared it with you.")),
		header: http.Header{"Retry-After": {"3"}},
	}
	if r.Method == http.MethodGet && navigation(r) {
		tries, err := strconv.Atoi(value)
		if err != nil || tries < 0 {
			tries = 0
		}
		tries = min(tries, len(retryAfter)-1)
		a.Retry = retryAfter[tries]
		wait := time.Duration(a.Retry) * time.Second
		setCookie(a.header, p.cookies.tries, strconv.Itoa(tries+1), 2*wait+10*time.Second)
		a.Link, a.LinkText = safeReturn(r.URL.RequestURI()), words.Of("Try now")
	}
	return a
}

// tooSlow is 504: the app took the request and has not said a word. It does not
// try again by itself, which would only keep a struggling app busy.
func tooSlow(r *http.Request, v *visit) *answer {
	a := &answer{
		Status: http.StatusGatewayTimeout, Host: v.vhost.shown(),
		Title: words.Of("%s is taking too long", v.vhost.app.Label),
		Text:  one(words.Of("The app behind this address is on, but it did not answer in time. It may be busy or stuck.")),
		Fine:  one(words.Of("Still nothing? Tell the person who shared it with you.")),
		Link:  safeReturn(r.URL.RequestURI()), LinkText: words.Of("Try again"),
	}
	if v.decision.Role == controlapi.RoleOwner {
		a.Fine = one(v.vhost.app.Options.WaitLonger(v.vhost.app.Name))
	}
	return a
}

// notHTTP is 502: the app said something that nobody can be shown. It would say so
// again, so the page does not load itself. What it said exactly is the owner's to know.
func notHTTP(r *http.Request, v *visit, why upstream.Failure) *answer {
	a := &answer{
		Status: http.StatusBadGateway, Host: v.vhost.shown(),
		Title: words.Of("%s gave no answer that can be shown", v.vhost.app.Label),
		Text:  one(words.Of("The app behind this address answered something that is not HTTP: %s.", words.Sentence{Key: why.Reason})),
		Fine:  one(words.Of("Tell the person who shared it with you.")),
		Link:  safeReturn(r.URL.RequestURI()), LinkText: words.Of("Try again"),
	}
	if v.decision.Role == controlapi.RoleOwner {
		language := words.Accepted(r.Header.Get("Accept-Language"))
		a.Fine = one(words.Of("%s", language.Or(words.Sentence{}, why.Detail)))
	}
	return a
}

// stale is 503: the control plane has not said for too long, or not since this
// visitor signed in, who may open what.
func stale(vhost virtualHost) *answer {
	return sheet(http.StatusServiceUnavailable, vhost.shown(), words.Of("Can’t check who you are"),
		words.Of("This computer has not heard from its sign-in service lately, so it can’t tell who may come in. It keeps trying."),
		words.Of("Try again"))
}

// cannotSignIn is why nobody can sign in at the moment.
func cannotSignIn(status int, vhost virtualHost, text words.Sentence) *answer {
	return sheet(status, vhost.shown(), words.Of("Can’t sign you in right now"), text, words.Of("Try again"))
}

// notConnected is 503: there is no control plane to sign in at.
func notConnected(vhost virtualHost) *answer {
	return cannotSignIn(http.StatusServiceUnavailable, vhost, words.Of("This computer is not connected to a sign-in service."))
}

// unreachable is 503: the control plane did not answer while signing in.
func unreachable(vhost virtualHost) *answer {
	return cannotSignIn(http.StatusServiceUnavailable, vhost,
		words.Of("This computer can’t reach the sign-in service. Whoever is signed in already stays so.")).with("Retry-After", "5")
}

// tooManyWrong is 429: many wrong codes came from this visitor's network.
func tooManyWrong(vhost virtualHost) *answer {
	return cannotSignIn(http.StatusTooManyRequests, vhost,
		words.Of("Many sign-ins from your network failed. Wait a little, then open the app again.")).with("Retry-After", "5")
}

func signInFailed(vhost virtualHost, text words.Sentence) *answer {
	return sheet(http.StatusBadRequest, vhost.shown(), words.Of("You are not signed in"), text, words.Of("Sign in"))
}

func badLink(vhost virtualHost, err error) *answer {
	a := sheet(http.StatusForbidden, vhost.shown(), words.Of("This link is over"),
		words.Of("A link from the menu bar works once and for a minute. Choose Open there again, or sign in."),
		words.Of("Sign in"))
	if errors.Is(err, access.ErrNoOwner) {
		a.Status, a.Title = http.StatusServiceUnavailable, words.Of("Can’t sign you in right now")
		a.Text = one(words.Of("This computer does not know its owner yet. It may still be connecting."))
	}
	return a
}

func askSignOut(vhost virtualHost) *answer {
	return &answer{
		Status: http.StatusOK, Host: vhost.shown(), Title: words.Of("Sign out?"),
		Text:    one(words.Of("This browser will have to sign in again to open %s.", vhost.shown())),
		SignOut: pathSignOut, Button: words.Of("Sign out"), Link: "/", LinkText: words.Of("Stay signed in"),
	}
}

func (p *Proxy) signedOut(r *http.Request, vhost virtualHost) *answer {
	a := sheet(http.StatusOK, vhost.shown(), words.Of("You are signed out"),
		words.Of("This browser is signed out of %s.", vhost.shown()),
		words.Of("Sign in"))
	if !wantsPage(r) {
		a.json = map[string]bool{"ok": true}
	}
	if a.Auth = strings.TrimSpace(p.authOrigin()); a.Auth != "" {
		a.Fine = one(words.Of("It may still be signed in at %s, which lets it in here again without asking. To use another address, or on somebody else’s computer, sign out there too.", a.AuthHost()))
		a.More, a.MoreText = a.Auth+"/account", words.Of("Sign out at %s", a.AuthHost())
	}
	return a
}

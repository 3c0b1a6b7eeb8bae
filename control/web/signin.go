package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// sealSignIn is what the cookie of a browser that began to sign in is sealed
// for: only browsers that asked for a mail can try codes.
const sealSignIn = "sign-in cookie"

const (
	// sealTyped is what the cookie is sealed for that keeps what somebody typed for their
	// address, and typedLife how long. It is in no address, which histories and logs keep.
	sealTyped = "mistyped address"
	typedLife = 10 * time.Minute
	typedMost = 254 // bytes, of the field
)

func (h *handler) signInForm(w http.ResponseWriter, r *http.Request) error {
	to := h.parseReturn(r.Context(), r.URL.Query().Get("return"))
	session, ok, err := h.current(w, r)
	if err != nil {
		return err
	}
	if ok {
		enough := to.purpose.IsZero()
		if !enough {
			if enough, err = h.svc.Sessions.Fresh(r.Context(), session); err != nil {
				return err
			}
		}
		if enough && (to.proofs == nil || slices.Contains(to.proofs, session.Proof)) {
			return h.onward(w, r, to.path)
		}
		if asked, err := h.askPasskey(w, r, session, to); asked || err != nil {
			return err
		}
	}
	p, err := h.knownHere(w, r, session)
	if err != nil {
		return err
	}
	if saysWrong(r) {
		p.Email, _ = h.svc.Keys.Unseal(sealTyped, cookie(r, h.typed))
		p.Problem = problemOf(languageOf(r), control.WrongEmail()) // what is kept of it may be cut to one that is right
	}
	p.Title, p.Host, p.Client, p.Return, p.Purpose = languageOf(r).Say("Sign in"), to.host, to.app, to.path, to.purpose
	p.NoMail, p.Providers = h.noMail && len(h.svc.Providers.All()) > 0, h.providerRows(r, to)
	if p.Begin = h.passkeyBegins(); p.Begin != "" {
		p.formTarget, p.Recovery = to.leads, signInPath(pathRecovery, to)
	}
	return h.show(w, r, http.StatusOK, "signin", p)
}

// knownHere is a page with whom this browser is signed in as, in full or by an invitation.
func (h *handler) knownHere(w http.ResponseWriter, r *http.Request, session control.Session) (p page, err error) {
	if session.ID == "" {
		session, _, err = h.sessionBy(w, r, h.svc.Sessions.Any)
	}
	return page{Email: session.Account.Email, Once: session.Limited && session.Proof == controlapi.ProofPasskey}, err
}

// signInBegin answers every address alike.
func (h *handler) signInBegin(w http.ResponseWriter, r *http.Request, f url.Values) error {
	to := h.parseReturn(r.Context(), f.Get("return"))
	email, err := control.ParseEmail(f.Get("email"))
	if err != nil {
		h.keepTyped(w, f.Get("email"))
		return wrong(w, r, "/signin", to)
	}
	token, err := h.svc.SignIn.Begin(r.Context(), email, control.Browser{Client: clientAddr(r), Known: cookie(r, h.known), Language: languageOf(r)}, to.path)
	if err != nil {
		return err
	}
	setCookie(w, h.signIn, h.svc.Keys.Seal(sealSignIn, token+" "+email), control.SignInLife)
	return seeOther(w, r, signInPath("/signin/check", to))
}

// keepTyped has the browser keep what somebody typed for their address.
func (h *handler) keepTyped(w http.ResponseWriter, typed string) {
	setCookie(w, h.typed, h.svc.Keys.Seal(sealTyped, strings.ToValidUTF8(typed[:min(len(typed), typedMost)], "")), typedLife)
}

// began is what the browser's cookie says of the sign-in it began.
func (h *handler) began(r *http.Request) (token, email string, ok bool) {
	return h.sealed(r, sealSignIn)
}

// sealed reads the cookie of a sign-in: the browser's token, and what it began for.
func (h *handler) sealed(r *http.Request, purpose string) (token, began string, ok bool) {
	text, ok := h.svc.Keys.Unseal(purpose, cookie(r, h.signIn))
	if !ok {
		return "", "", false
	}
	return strings.Cut(text, " ")
}

func (h *handler) checkMail(w http.ResponseWriter, r *http.Request) error {
	action, to := h.resend(r)
	_, email, ok := h.began(r)
	if !ok {
		return seeOther(w, r, signInPath("/signin", to))
	}
	return h.show(w, r, http.StatusOK, "check", page{
		Title: languageOf(r).Say("Check your mail"), Email: email, Return: to.path, Again: signInPath("/signin", to), Problem: codeProblem(r), formTarget: to.leads,
		Begin: h.passkeyBegins(), Action: action,
	})
}

// wrong leads back to the page with the field in which somebody typed something wrong.
// Were the page the answer to the form, a browser that comes back to it would have to send
// the form again.
func wrong(w http.ResponseWriter, r *http.Request, path string, to destination) error {
	query := url.Values{"wrong": {"1"}}
	if to.path != "" {
		query.Set("return", to.path)
	}
	return seeOther(w, r, path+"?"+query.Encode())
}

// saysWrong is whether a page was led to by wrong. Whoever makes up such an address can
// have it say that, and nothing else.
func saysWrong(r *http.Request) bool { return r.URL.Query().Get("wrong") == "1" }

// codeProblem is what the page with the field for a code says after wrong.
func codeProblem(r *http.Request) string {
	if !saysWrong(r) {
		return ""
	}
	return problemOf(languageOf(r), control.WrongCode())
}

func (h *handler) signInCode(w http.ResponseWriter, r *http.Request, f url.Values) error {
	to := h.parseReturn(r.Context(), f.Get("return"))
	token, _, ok := h.began(r)
	if !ok {
		return seeOther(w, r, signInPath("/signin", to))
	}
	in, err := h.svc.SignIn.WithCode(r.Context(), token, f.Get("code"), clientAddr(r))
	if control.IsRefusal(err, controlapi.CodeForbidden) {
		return wrong(w, r, "/signin/check", to)
	}
	if err != nil {
		return err
	}
	return h.mailedIn(w, r, in, f)
}

// linkForm looks at a mailed link and consumes nothing: mail scanners come
// here, too.
func (h *handler) linkForm(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	browser, _, _ := h.began(r)
	link, err := h.svc.SignIn.LookAtLink(r.Context(), token, browser)
	if err != nil {
		return h.linkError(w, r, err)
	}
	to := h.parseReturn(r.Context(), link.ReturnTo)
	return h.show(w, r, http.StatusOK, "link", page{
		Title: languageOf(r).Say("Sign in"), Email: link.Email, Host: to.host, Client: to.app, Purpose: to.purpose, Invited: to.invited, Token: token, formTarget: to.leads,
		Begin: h.passkeyBegins(), Provider: link.Label, Login: link.Login, ByComputer: link.ByComputer,
	})
}

func (h *handler) signInLink(w http.ResponseWriter, r *http.Request, f url.Values) error {
	browser, _, _ := h.began(r)
	in, err := h.svc.SignIn.WithLink(r.Context(), f.Get("token"), browser, clientAddr(r))
	if err != nil {
		return h.linkError(w, r, err)
	}
	return h.mailedIn(w, r, in, f)
}

func (h *handler) linkError(w http.ResponseWriter, r *http.Request, err error) error {
	if !control.IsRefusal(err, controlapi.CodeNotFound) {
		return err
	}
	p := page{Title: languageOf(r).Say("This link is over"), Problem: problemOf(languageOf(r), err), Again: "/signin"}
	// Somebody who opens their mail a second time has what they came for.
	session, ok, away := h.current(w, r)
	if away != nil {
		return away
	}
	if ok {
		p.Problem = languageOf(r).Say("It was used already, or its 15 minutes are over. You need no other: this browser is signed in as %s.", session.Account.Email)
		p.Again = ""
	}
	return h.show(w, r, http.StatusNotFound, "error", p)
}

// signedIn gives the browser its session, ending the one it had, and sends it
// where it was going.
func (h *handler) signedIn(w http.ResponseWriter, r *http.Request, in control.SignedIn) error {
	if err := h.enter(w, r, in); err != nil {
		return err
	}
	return h.onward(w, r, h.parseReturn(r.Context(), in.ReturnTo).path)
}

// enter is signedIn for a browser that is sent elsewhere.
func (h *handler) enter(w http.ResponseWriter, r *http.Request, in control.SignedIn) error {
	if old := cookie(r, h.session); old != "" {
		if err := h.svc.Sessions.Replace(r.Context(), old, in.Token); err != nil {
			return err
		}
	}
	setCookie(w, h.session, in.Token, control.SessionLife)
	setCookie(w, h.known, h.svc.SignIn.Remember(cookie(r, h.known), in.Account.Email), control.KnownLife)
	dropCookie(w, h.signIn)
	return nil
}

// mailedIn is signedIn for who came by mail: the first time in a browser that makes
// passkeys, and without one yet, they are offered one on the way.
func (h *handler) mailedIn(w http.ResponseWriter, r *http.Request, in control.SignedIn, f url.Values) error {
	first := f.Get("passkey") != "" && h.svc.Passkeys.Offered() && !h.svc.SignIn.KnowsWith(cookie(r, h.known), in.Account.Email)
	if !first {
		return h.signedIn(w, r, in)
	}
	if err := h.enter(w, r, in); err != nil {
		return err
	}
	has, err := h.svc.Passkeys.Of(r.Context(), in.Account.ID)
	if err != nil || len(has) > 0 {
		return h.onward(w, r, h.parseReturn(r.Context(), in.ReturnTo).path) // the link is used up: they are in, whatever else
	}
	return seeOther(w, r, toNewPasskey(h.parseReturn(r.Context(), in.ReturnTo).path).path)
}

func (h *handler) onward(w http.ResponseWriter, r *http.Request, path string) error {
	if h.adminAt != h.at && adminPath.MatchString(path) {
		path = h.adminAt + path
	}
	return seeOther(w, r, cmp.Or(path, "/account"))
}

// signOut ends this browser's session, or with everywhere set all of the
// account's, and leads back to the sign-in page.
func (h *handler) signOut(w http.ResponseWriter, r *http.Request, f url.Values) error {
	to := h.parseReturn(r.Context(), f.Get("return"))
	session, ok, err := h.current(w, r)
	if err != nil {
		return err
	}
	if ok && f.Get("everywhere") != "" {
		err = h.svc.Sessions.SignOutEverywhere(r.Context(), session.Account.ID)
	} else if token := cookie(r, h.session); token != "" {
		err = h.svc.Sessions.SignOut(r.Context(), token) // an invitation's session, too
	}
	if err != nil {
		return err
	}
	w.Header().Del("Set-Cookie") // a session renewed on the way in is over
	dropCookie(w, h.session)
	return seeOther(w, r, signInPath("/signin", to))
}

package web

import (
	"net/http"
	"net/url"
	"strings"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The pages of signing in without mail: where that is changed, where a recovery code is
// typed, and where somebody stops what the operator began.

const (
	pathRecovery = "/signin/recovery"
	pathMail     = "/account/mail"
)

func toMail() destination {
	return destination{path: pathMail, purpose: words.Of("to change how you sign in")}
}

func asker(r *http.Request) control.Asker {
	return control.Asker{Client: clientAddr(r), Language: languageOf(r)}
}

// recoveryForm answers everybody alike.
func (h *handler) recoveryForm(w http.ResponseWriter, r *http.Request) error {
	to := h.parseReturn(r.Context(), r.URL.Query().Get("return"))
	p := page{Title: languageOf(r).Say("Use a recovery code"), Return: to.path, Again: signInPath("/signin", to), formTarget: to.leads}
	if saysWrong(r) {
		p.Email, _ = h.svc.Keys.Unseal(sealTyped, cookie(r, h.typed))
		p.Problem = problemOf(languageOf(r), control.WrongRecoveryCode())
	}
	return h.show(w, r, http.StatusOK, "recovery", p)
}

func (h *handler) recoverySignIn(w http.ResponseWriter, r *http.Request, f url.Values) error {
	email, err := control.ParseEmail(f.Get("email"))
	var in control.SignedIn
	if err == nil {
		in, err = h.svc.Recovery.WithCode(r.Context(), control.RecoveryUse{Email: email, Code: f.Get("code"), Known: cookie(r, h.known), Asker: asker(r)})
	}
	if control.IsRefusal(err, controlapi.CodeForbidden) || control.IsRefusal(err, controlapi.CodeInvalid) {
		h.keepTyped(w, f.Get("email"))
		return wrong(w, r, pathRecovery, h.parseReturn(r.Context(), f.Get("return")))
	}
	if err != nil {
		return err
	}
	in.ReturnTo = f.Get("return")
	return h.signedIn(w, r, in)
}

// mailForm shows how an account signs in, and offers to change it.
func (h *handler) mailForm(w http.ResponseWriter, r *http.Request) error {
	session, ok, err := h.freshly(w, r, toMail())
	if !ok {
		return err
	}
	p := page{Title: languageOf(r).Say("Turn off signing in by mail?"), Email: session.Account.Email, MailOff: session.Account.MailOff}
	if p.Logins, err = h.loginRows(r, session); err != nil {
		return err
	}
	if p.MailOff {
		p.Title = languageOf(r).Say("Mail does not sign you in")
		if p.CodesLeft, err = h.svc.Recovery.Left(r.Context(), session.Account); err != nil {
			return err
		}
	}
	return h.show(w, r, http.StatusOK, "account-mail", p)
}

// mailChange turns sign-in by mail on, or off, or makes other recovery codes, which are shown
// this once.
func (h *handler) mailChange(w http.ResponseWriter, r *http.Request, f url.Values) error {
	session, ok, err := h.freshly(w, r, toMail())
	if !ok {
		return err
	}
	decision := f.Get("decision")
	switch decision {
	case "on":
		if err := h.svc.Recovery.MailOn(r.Context(), session, asker(r)); err != nil {
			return err
		}
		return seeOther(w, r, "/account")
	case "off", "codes":
		codes, err := h.svc.Recovery.MakeCodes(r.Context(), session, decision == "off", asker(r))
		if err != nil {
			return err
		}
		for n, code := range codes {
			codes[n] = strings.Join([]string{code[:4], code[4:8], code[8:12], code[12:]}, "-")
		}
		return h.show(w, r, http.StatusOK, "recovery-codes", page{Title: languageOf(r).Say("Your recovery codes"), Email: session.Account.Email, Codes: codes})
	}
	return invalid("This form was not sent by its page. Open the page again.")
}

// stopForm asks whether somebody wants to stop what the operator began.
func (h *handler) stopForm(w http.ResponseWriter, r *http.Request, f url.Values) error {
	account, err := h.svc.Recovery.LookAtStop(r.Context(), f.Get("token"))
	if err != nil {
		return err
	}
	return h.show(w, r, http.StatusOK, "recovery-stop", page{Title: languageOf(r).Say("Keep your passkeys?"), Email: account.Email, Token: f.Get("token")})
}

func (h *handler) stop(w http.ResponseWriter, r *http.Request, f url.Values) error {
	if err := h.svc.Recovery.Stop(r.Context(), f.Get("token")); err != nil {
		return err
	}
	return h.show(w, r, http.StatusOK, "recovery-stop", page{Title: languageOf(r).Say("Your passkeys stay")})
}

package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The pages of OpenID providers. A button is a link and no form: browsers hold a policy of
// where forms may lead against each redirect after it, and where a provider leads is not known.

// providerRow is one on the sign-in page.
type providerRow struct {
	Label, Path string
	Problem     string // why it would not go now, or ""
}

// loginRow is one on the account page.
type loginRow struct{ ID, Label, Email, Since, Used string }

func providerPath(name string) string { return control.PathProvider + name }

func (h *handler) providerRows(r *http.Request, to destination) (rows []providerRow) {
	for _, p := range h.svc.Providers.All() {
		rows = append(rows, providerRow{Label: p.Label, Path: signInPath(providerPath(p.Name), to), Problem: problemOf(languageOf(r), p.Away())})
	}
	return rows
}

// providerBegin sends a browser to a provider, if one of our own pages sent it here: what
// another site begins would sign somebody in who did not ask for it.
func (h *handler) providerBegin(w http.ResponseWriter, r *http.Request) error {
	to := h.parseReturn(r.Context(), r.URL.Query().Get("return"))
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return seeOther(w, r, signInPath("/signin", to))
	}
	address, kept, err := h.svc.Providers.Begin(r.Context(), r.PathValue("name"), to.path, !to.purpose.IsZero())
	if err != nil {
		return h.notSignedIn(w, r, to, err)
	}
	setCookie(w, h.provider, kept, control.ProviderLife)
	return seeOther(w, r, address)
}

// notSignedIn shows why a provider signs nobody in, and the way back to the sign-in page.
func (h *handler) notSignedIn(w http.ResponseWriter, r *http.Request, to destination, err error) error {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	if !ok || refusal.Code == controlapi.CodeNotFound || refusal.Code == controlapi.CodeTooMany {
		return err
	}
	return h.show(w, r, statusOf(refusal), "error", page{
		Title: languageOf(r).Say("You are not signed in"), Problem: problemOf(languageOf(r), refusal), Again: signInPath("/signin", to),
	})
}

// providerBack takes a browser that a provider sent back.
func (h *handler) providerBack(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	in, prove, err := h.svc.Providers.Finish(r.Context(), control.ProviderUse{
		Name: name, Kept: cookie(r, h.provider), Query: r.URL.Query(), Asker: asker(r),
	})
	if err != nil {
		return h.notSignedIn(w, r, destination{}, err)
	}
	if prove != "" {
		setCookie(w, h.provider, prove, control.ProviderLife)
		return seeOther(w, r, providerPath(name)+"/prove")
	}
	dropCookie(w, h.provider)
	if to := h.parseReturn(r.Context(), in.ReturnTo); in.Stale && !to.purpose.IsZero() {
		if err := h.enter(w, r, in); err != nil {
			return err
		}
		return h.notSignedIn(w, r, to, &controlapi.Error{
			Code: controlapi.CodeForbidden, Message: "The provider did not ask you to sign in anew, which this wants. Use a passkey, or have a link mailed.",
		})
	}
	return h.signedIn(w, r, in)
}

// proveForm asks for the mail address that somebody's login is to be bound to, or for a passkey.
func (h *handler) proveForm(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	to, err := h.svc.Providers.LookAtProve(name, cookie(r, h.provider))
	noPasskey := !h.svc.Passkeys.Offered()
	if err == nil && h.noMail && noPasskey {
		err = controlapi.Refuse(controlapi.CodeForbidden, words.Of("%s does not vouch for your mail address, and this server sends no mail to ask it. Tell whoever runs this server.", to.Label))
	}
	if err != nil {
		return h.notSignedIn(w, r, destination{}, err)
	}
	p := page{Title: languageOf(r).Say("Whose account is this?"), Provider: to.Label, Login: to.Email, Email: to.Email, Action: providerPath(name) + "/prove", Again: "/signin", NoMail: h.noMail}
	if !noPasskey {
		p.Back = signInPath("/signin", toBind(name, to.Label))
	}
	if saysWrong(r) {
		p.Problem = problemOf(languageOf(r), control.WrongEmail())
	}
	return h.show(w, r, http.StatusOK, "prove", p)
}

func toBind(name, label string) destination {
	return destination{path: control.PathBind(name), purpose: words.Of("to have %s sign you in", label)}
}

// maybeToBind is toBind for a path that is one.
func (h *handler) maybeToBind(path string) destination {
	for _, p := range h.svc.Providers.All() {
		if path == control.PathBind(p.Name) {
			return toBind(p.Name, p.Label)
		}
	}
	return destination{}
}

// binder is what a browser keeps of a provider, and whose session it has, who has just shown
// who they are. Where ok is false the answer is written already, or is err.
func (h *handler) binder(w http.ResponseWriter, r *http.Request) (to control.ToProve, session control.Session, ok bool, err error) {
	name := r.PathValue("name")
	if to, err = h.svc.Providers.LookAtProve(name, cookie(r, h.provider)); err == nil {
		session, ok, err = h.freshly(w, r, toBind(name, to.Label))
	}
	return to, session, ok, err
}

func (h *handler) bindForm(w http.ResponseWriter, r *http.Request) error {
	to, session, ok, err := h.binder(w, r)
	if !ok {
		return err
	}
	return h.show(w, r, http.StatusOK, "bind", page{
		Title: languageOf(r).Say("Have %s sign you in?", to.Label), Provider: to.Label, Login: to.Email, Email: session.Account.Email,
		Action: control.PathBind(r.PathValue("name")),
	})
}

func (h *handler) bind(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	_, session, ok, err := h.binder(w, r)
	if !ok {
		return err
	}
	returnTo, err := h.svc.Providers.Bind(r.Context(), session, r.PathValue("name"), cookie(r, h.provider), asker(r))
	if err != nil {
		return err
	}
	dropCookie(w, h.provider)
	return h.onward(w, r, h.parseReturn(r.Context(), returnTo).path)
}

// proveBegin answers every address alike, as signInBegin does.
func (h *handler) proveBegin(w http.ResponseWriter, r *http.Request, f url.Values) error {
	name := r.PathValue("name")
	email, err := control.ParseEmail(f.Get("email"))
	if err != nil {
		return wrong(w, r, providerPath(name)+"/prove", destination{})
	}
	token, err := h.svc.Providers.Prove(r.Context(), name, cookie(r, h.provider), email, control.Browser{Client: clientAddr(r), Known: cookie(r, h.known), Language: languageOf(r)})
	if err != nil {
		return h.notSignedIn(w, r, destination{}, err)
	}
	setCookie(w, h.signIn, h.svc.Keys.Seal(sealSignIn, token+" "+email), control.SignInLife)
	return seeOther(w, r, "/signin/check?"+url.Values{"with": {name}}.Encode())
}

// resend is where the page with the field for a code has the mail sent again, and where
// somebody goes from there who came from a provider.
func (h *handler) resend(r *http.Request) (action string, to destination) {
	name := r.URL.Query().Get("with")
	prove, err := h.svc.Providers.LookAtProve(name, cookie(r, h.provider))
	if err != nil {
		return "/signin", h.parseReturn(r.Context(), r.URL.Query().Get("return"))
	}
	return providerPath(name) + "/prove", h.parseReturn(r.Context(), prove.ReturnTo)
}

// providerLogout is asked by providers (Back-Channel Logout 1.0, section 2.5).
func (h *handler) providerLogout(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	f, err := form(w, r)
	if err != nil {
		return err
	}
	if err := h.svc.Providers.SignedOut(r.Context(), r.PathValue("name"), f.Get("logout_token")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (h *handler) loginRows(r *http.Request, session control.Session) (rows []loginRow, err error) {
	all, err := h.svc.Providers.Of(r.Context(), session.Account.ID)
	for _, l := range all {
		row := loginRow{ID: l.ID, Label: l.Label, Email: l.Email, Since: day(languageOf(r), l.CreatedAt)}
		if !l.LastUsedAt.IsZero() {
			row.Used = day(languageOf(r), l.LastUsedAt)
		}
		rows = append(rows, row)
	}
	return rows, err
}

func (h *handler) removeLogin(ctx context.Context, session control.Session, f url.Values) error {
	return h.svc.Providers.Remove(ctx, session.Account.ID, f.Get("login"), session.ID)
}

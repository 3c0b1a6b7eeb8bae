package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The pages of passkeys. The script passkeys.js has a ceremony begun, which answers with
// what the browser wants and keeps the rest in a cookie, and puts the browser's answer
// into a form. Adding and removing want somebody who has just signed in, in full.

const (
	pathPasskey  = "/signin/passkey"
	pathPasskeys = "/account/passkeys"
)

// passkeyRow is one on the account page.
type passkeyRow struct {
	ID, Name, Since string
	Used            string // day, "" for never
	Copied, Limited bool   // there may be a copy; it opens what an invitation did
	Change          string // address of its page
}

var passkeyID = regexp.MustCompile(`^[0-9a-f]{64}$`)

func toNewPasskey(back string) destination {
	return destination{path: signInPath(pathPasskeys+"/new", destination{path: back}), purpose: words.Of("to add a passkey")}
}

// askProof has somebody show who they are in a way that will do for an app: by a passkey,
// which they make here if they have none, or by what the sign-in page offers besides.
func (h *handler) askProof(w http.ResponseWriter, r *http.Request, session control.Session, to destination) error {
	if !h.svc.Passkeys.Offered() {
		return &controlapi.Error{Code: controlapi.CodeForbidden, Message: "This app asks for a passkey, and this server has none. Ask the person who shares it with you."}
	}
	has, err := h.svc.Passkeys.Of(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	if len(has) == 0 && !slices.Contains(to.proofs, controlapi.ProofProvider) {
		return seeOther(w, r, toNewPasskey(to.path).path)
	}
	return seeOther(w, r, signInPath("/signin", to))
}

// askPasskey shows the page that asks somebody signed in for their passkey, where that is
// what they are to show and have.
func (h *handler) askPasskey(w http.ResponseWriter, r *http.Request, session control.Session, to destination) (asked bool, err error) {
	if !h.svc.Passkeys.Offered() || slices.Contains(to.proofs, controlapi.ProofProvider) {
		return false, nil
	}
	if has, err := h.svc.Passkeys.Of(r.Context(), session.Account.ID); err != nil || len(has) == 0 {
		return false, err
	}
	return true, h.show(w, r, http.StatusOK, "passkey-use", page{
		Title: languageOf(r).Say("Use your passkey"), Email: session.Account.Email, Host: to.host, Return: to.path, Purpose: to.purpose,
		Begin: h.passkeyBegins(), formTarget: to.leads,
	})
}

// mayAddPasskey is the session of somebody who may add a passkey; who may not is sent to
// sign in. Where ok is false the answer is written already, or is err.
func (h *handler) mayAddPasskey(w http.ResponseWriter, r *http.Request, back string) (session control.Session, ok bool, err error) {
	session, ok, err = h.sessionBy(w, r, h.svc.Sessions.Any)
	if ok {
		ok, err = h.svc.Passkeys.MayAdd(r.Context(), session)
	}
	if !ok && err == nil {
		err = seeOther(w, r, signInPath("/signin", toNewPasskey(back)))
	}
	return session, ok, err
}

func toPasskey(id string) destination {
	return destination{path: pathPasskeys + "/change?" + url.Values{"passkey": {id}}.Encode(), purpose: words.Of("to change your passkeys")}
}

// passkeyBegins is where a page's script begins a sign-in, "" where there are no passkeys.
func (h *handler) passkeyBegins() string {
	if !h.svc.Passkeys.Offered() {
		return ""
	}
	return pathPasskey + "/begin"
}

// passkeyBegin answers everybody alike: no address is named, and nothing is looked up.
func (h *handler) passkeyBegin(w http.ResponseWriter, r *http.Request) error {
	options, state, err := h.svc.Passkeys.BeginSignIn(cookie(r, h.passkey))
	return h.ceremony(w, options, state, err)
}

// ceremony answers the script with what its browser wants, and has the browser keep the rest.
func (h *handler) ceremony(w http.ResponseWriter, options any, state string, err error) error {
	if err != nil {
		return err
	}
	setCookie(w, h.passkey, state, control.PasskeyLife)
	w.Header().Set("Cache-Control", "no-store")
	return reply(w, options, nil)
}

func (h *handler) passkeySignIn(w http.ResponseWriter, r *http.Request, f url.Values) error {
	in, err := h.svc.Passkeys.SignIn(r.Context(), control.PasskeyUse{
		State: cookie(r, h.passkey), Answer: []byte(f.Get("answer")), Client: clientAddr(r), Language: languageOf(r),
	})
	if control.IsRefusal(err, controlapi.CodeForbidden) {
		to := h.parseReturn(r.Context(), f.Get("return"))
		return h.show(w, r, http.StatusForbidden, "error", page{
			Title: languageOf(r).Say("That passkey was not taken"), Problem: problemOf(languageOf(r), err), Again: signInPath("/signin", to),
		})
	}
	if err != nil {
		return err
	}
	dropCookie(w, h.passkey)
	in.ReturnTo = f.Get("return")
	return h.signedIn(w, r, in)
}

// passkeyForm offers to make one, on the way to where somebody was going.
func (h *handler) passkeyForm(w http.ResponseWriter, r *http.Request) error {
	to := h.parseReturn(r.Context(), r.URL.Query().Get("return"))
	session, ok, err := h.mayAddPasskey(w, r, to.path)
	if !ok {
		return err
	}
	if !h.svc.Passkeys.Offered() {
		return notFound()
	}
	return h.show(w, r, http.StatusOK, "passkey", page{
		Title: languageOf(r).Say("Add a passkey"), Email: session.Account.Email, Host: to.host, Return: to.path, Back: cmp.Or(to.path, "/account"),
		Asked: to.proofs != nil, Begin: pathPasskeys + "/begin", formTarget: to.leads,
	})
}

func (h *handler) passkeyAddBegin(w http.ResponseWriter, r *http.Request) error {
	session, ok, err := h.mayAddPasskey(w, r, "")
	if !ok {
		return err
	}
	options, state, err := h.svc.Passkeys.BeginAdd(r.Context(), session)
	return h.ceremony(w, options, state, err)
}

func (h *handler) passkeyAdd(w http.ResponseWriter, r *http.Request, f url.Values) error {
	to := h.parseReturn(r.Context(), f.Get("return"))
	session, ok, err := h.mayAddPasskey(w, r, to.path)
	if !ok {
		return err
	}
	token, err := h.svc.Passkeys.Add(r.Context(), session, control.NewPasskey{
		State: cookie(r, h.passkey), Answer: []byte(f.Get("answer")), Name: h.passkeyName(r, f.Get("answer")), Client: clientAddr(r), Language: languageOf(r),
	})
	if err != nil {
		return err
	}
	dropCookie(w, h.passkey)
	setCookie(w, h.session, token, control.SessionLife)
	return h.onward(w, r, to.path)
}

// passkeyName is what a new passkey is called until its owner calls it something else:
// the device that made it, or a key beside it.
func (h *handler) passkeyName(r *http.Request, answer string) string {
	var made struct{ AuthenticatorAttachment string }
	if json.Unmarshal([]byte(answer), &made) == nil && made.AuthenticatorAttachment == "cross-platform" {
		return languageOf(r).Say("Another device or key")
	}
	return cmp.Or(deviceOf(r).System, languageOf(r).Say("This device"))
}

func (h *handler) passkeyRows(r *http.Request, session control.Session) (rows []passkeyRow, err error) {
	all, err := h.svc.Passkeys.Of(r.Context(), session.Account.ID)
	for _, p := range all {
		row := passkeyRow{ID: p.ID, Name: p.Name, Since: day(languageOf(r), p.CreatedAt), Copied: p.Copied, Limited: p.Limited, Change: toPasskey(p.ID).path}
		if !p.LastUsedAt.IsZero() {
			row.Used = day(languageOf(r), p.LastUsedAt)
		}
		rows = append(rows, row)
	}
	return rows, err
}

func (h *handler) passkeyChangeForm(w http.ResponseWriter, r *http.Request, f url.Values) error {
	session, ok, err := h.freshly(w, r, toPasskey(f.Get("passkey")))
	if !ok {
		return err
	}
	return h.showPasskey(w, r, session, f, nil)
}

// showPasskey shows a passkey: again with the name as it was sent, where that was refused.
func (h *handler) showPasskey(w http.ResponseWriter, r *http.Request, session control.Session, f url.Values, refusal *controlapi.Error) error {
	rows, err := h.passkeyRows(r, session)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.ID != f.Get("passkey") {
			continue
		}
		p, status := page{Title: row.Name, Name: row.Name, Passkey: row}, http.StatusOK
		if refusal != nil {
			p.Name, p.Problem, status = f.Get("name"), problemOf(languageOf(r), refusal), statusOf(refusal)
		}
		return h.show(w, r, status, "passkey-change", p)
	}
	return gone("That passkey was removed already.")
}

// passkeyChange renames a passkey, or with remove set ends it.
func (h *handler) passkeyChange(w http.ResponseWriter, r *http.Request, f url.Values) error {
	session, ok, err := h.freshly(w, r, toPasskey(f.Get("passkey")))
	if !ok {
		return err
	}
	if f.Get("remove") != "" {
		err = h.svc.Passkeys.Remove(r.Context(), session, f.Get("passkey"))
	} else {
		err = h.svc.Passkeys.Rename(r.Context(), session.Account.ID, f.Get("passkey"), f.Get("name"))
	}
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok && refusal.Code == controlapi.CodeInvalid {
		return h.showPasskey(w, r, session, f, refusal)
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, "/account")
}

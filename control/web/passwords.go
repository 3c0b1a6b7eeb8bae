package web

import (
	"errors"
	"net/http"
	"net/url"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The pages of app passwords. Making and listing want somebody who has just signed
// in, in full; revoking wants a full sign-in, however old.

// placeRow is a computer where somebody may have app passwords.
type placeRow struct {
	Name      string // short name
	Host      string
	Owner     string // who shares it, "" for one's own
	Only      bool   // whether the page shows no other
	Passwords []passwordRow
	Apps      []passwordAppRow
	Form      string // tells this form from another
	Typed     string // as name, by somebody who is told of a problem
	Problem   string
}

type passwordRow struct{ ID, Name, App, Since string }

type passwordAppRow struct {
	ID, Label, Host string
	Chosen          bool
}

// toPasswords is the page for the computer of this short name, or for all.
func toPasswords(computer string) destination {
	to := destination{path: controlapi.PathPasswordPages, purpose: words.Of("to see your app passwords")}
	if computer != "" {
		to.path += "?" + url.Values{controlapi.ParamComputer: {computer}}.Encode()
	}
	return to
}

func (h *handler) passwordsForm(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get(controlapi.ParamComputer)
	if name != "" && h.svc.ValidShortName(name) != nil {
		return gone("There is no computer of that name.")
	}
	session, ok, err := h.freshly(w, r, toPasswords(name))
	if !ok {
		return err
	}
	return h.showPasswords(w, r, session, name, nil, nil)
}

// showPasswords shows the passwords on one computer or on all: again with the form
// as it was sent, where that was refused.
func (h *handler) showPasswords(w http.ResponseWriter, r *http.Request, session control.Session, only string, sent url.Values, refusal *controlapi.Error) error {
	places, err := h.svc.Passwords.Of(r.Context(), session, only)
	if err != nil {
		return err
	}
	p, status, said := page{Title: languageOf(r).Say("App passwords"), Wide: true, Email: session.Account.Email, Name: only}, http.StatusOK, refusal == nil
	for _, place := range places {
		row := h.placeRow(languageOf(r), place)
		row.Only = only != ""
		if refusal != nil && row.Name == sent.Get("computer") {
			row.again(sent, problemOf(languageOf(r), refusal))
			status, said = statusOf(refusal), true
		}
		p.Places = append(p.Places, row)
	}
	if !said {
		return refusal
	}
	return h.show(w, r, status, "passwords", p)
}

func (h *handler) placeRow(l words.Language, place control.PasswordPlace) placeRow {
	row := placeRow{
		Name: place.Computer.Name, Host: place.Computer.Host, Owner: place.Owner, Form: h.svc.Passwords.NewForm(),
	}
	for _, a := range place.Apps {
		row.Apps = append(row.Apps, passwordAppRow{ID: a.ID, Label: a.Label, Host: a.Host})
		for _, p := range a.Passwords {
			row.Passwords = append(row.Passwords, passwordRow{ID: p.ID, Name: p.Name, App: a.Label, Since: day(l, p.CreatedAt)})
		}
	}
	return row
}

// makePassword shows a new password, this once. What can be put right is asked
// again, on the page.
func (h *handler) makePassword(w http.ResponseWriter, r *http.Request, f url.Values) error {
	name, only := f.Get("computer"), ""
	if h.svc.ValidShortName(name) != nil {
		return invalid("This form was not sent by its page. Open the page again.")
	}
	if f.Get("only") != "" {
		only = name
	}
	session, ok, err := h.freshly(w, r, toPasswords(only))
	if !ok {
		return err
	}
	made, err := h.svc.Passwords.Make(r.Context(), session, control.NewPassword{
		Computer: name, AppID: f.Get("app"), Name: f.Get("name"), Form: f.Get("form"),
	})
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok &&
		(refusal.Code == controlapi.CodeInvalid || refusal.Code == controlapi.CodeForbidden) {
		return h.showPasswords(w, r, session, only, f, refusal)
	}
	if err != nil {
		return err
	}
	return h.show(w, r, http.StatusOK, "password-made", page{
		Title: languageOf(r).Say("Your new app password"), Email: made.Email, Host: made.Host, Client: made.Label, Name: made.Name,
		Password: made.Password, Back: toPasswords(only).path,
	})
}

// again is the form as it was sent, with what was wrong.
func (row *placeRow) again(f url.Values, problem string) {
	row.Typed, row.Problem = f.Get("name"), problem
	for i := range row.Apps {
		row.Apps[i].Chosen = row.Apps[i].ID == f.Get("app")
	}
}

// revokePassword ends one password, or with all set every one of the account.
func (h *handler) revokePassword(w http.ResponseWriter, r *http.Request, session control.Session, f url.Values) error {
	name, account := f.Get("computer"), session.Account.ID
	var err error
	if f.Get("all") != "" {
		err = h.svc.Passwords.RevokeAll(r.Context(), account)
	} else {
		err = h.svc.Passwords.Revoke(r.Context(), account, name, f.Get("password"))
	}
	if err != nil {
		return err
	}
	// Back to the list, but for whom it would ask to sign in.
	to := "/account"
	fresh, err := h.svc.Sessions.Fresh(r.Context(), session)
	if err != nil {
		return err
	}
	if f.Get("all") == "" && fresh {
		if f.Get("only") == "" || h.svc.ValidShortName(name) != nil {
			name = ""
		}
		to = toPasswords(name).path
	}
	return seeOther(w, r, to)
}

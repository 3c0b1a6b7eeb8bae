package web

import (
	"net/http"
	"net/url"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// What somebody takes along or away: an export of what is kept of their account, and its end.

const (
	pathExport = "/account/export"
	pathDelete = "/account/delete"
)

func toExport() destination {
	return destination{path: pathExport, purpose: words.Of("to export your data")}
}

func toDelete() destination {
	return destination{path: pathDelete, purpose: words.Of("to delete your account")}
}

// export answers with a file that the browser keeps.
func (h *handler) export(w http.ResponseWriter, r *http.Request) error {
	session, ok, err := h.freshly(w, r, toExport())
	if !ok {
		return err
	}
	all, err := h.svc.Accounts.Export(r.Context(), session)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="porchlight-account.json"`)
	w.Header().Set("Cache-Control", "no-store")
	return reply(w, all, nil)
}

// deleteForm says what goes with an account, and asks.
func (h *handler) deleteForm(w http.ResponseWriter, r *http.Request) error {
	session, ok, err := h.freshly(w, r, toDelete())
	if !ok {
		return err
	}
	all, err := h.svc.Accounts.Kept(r.Context(), session)
	if err != nil {
		return err
	}
	p := page{Title: languageOf(r).Say("Delete your account?"), Email: session.Account.Email}
	for _, c := range all.Computers {
		row := computerRow{Host: hostOf(c.Address), People: -1} // whose it is, is among them
		for _, person := range c.People {
			if person.Status != controlapi.PersonRemoved {
				row.People++
			}
		}
		p.Own = append(p.Own, row)
	}
	for _, s := range all.Shared {
		if s.Status != controlapi.PersonRemoved {
			p.Shared = append(p.Shared, sharedRow{Host: hostOf(s.Address), Owner: s.Owner})
		}
	}
	return h.show(w, r, http.StatusOK, "account-delete", p)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}

func (h *handler) deleteAccount(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	session, ok, err := h.freshly(w, r, toDelete())
	if !ok {
		return err
	}
	if err := h.svc.Accounts.Delete(r.Context(), session, asker(r)); err != nil {
		return err
	}
	dropCookie(w, h.session)
	dropCookie(w, h.known)
	return h.show(w, r, http.StatusOK, "account-delete", page{Title: languageOf(r).Say("Your account is deleted")})
}

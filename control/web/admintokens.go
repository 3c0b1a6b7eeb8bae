package web

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The tokens of programs, which the command line makes, and an operator ends.

// scopes are what a token may, in words.
var scopes = map[control.TokenScope]words.Sentence{control.ScopeRead: words.Of("read"), control.ScopeSuspend: words.Of("suspend")}

func scopesOf(l words.Language, t control.AdminToken) string {
	var all []string
	for _, scope := range t.Scopes {
		all = append(all, l.Tell(scopes[scope]))
	}
	return l.And(all...)
}

func (h *handler) adminTokens(w http.ResponseWriter, r *http.Request) error {
	all, err := h.svc.AdminTokens.List(r.Context())
	if err != nil {
		return err
	}
	l := languageOf(r)
	list := adminList{
		adminTable: adminTable{Columns: []adminColumn{{l.Say("Token"), ""}, {l.Say("What it may"), ""}, {l.Say("Used"), "t opt-col"}, {l.Say("Ends"), "t"}}},
		Empty:      l.Say("There is no token."), Says: l.Say("What programs ask with. The command line makes them."),
	}
	for _, t := range all {
		list.Rows = append(list.Rows, []adminCell{{Text: t.Name, Link: adminLink("tokens", t.ID)}, {Text: scopesOf(l, t)}, used(l, t.UsedAt), {Text: day(l, t.Ends), At: t.Ends}})
	}
	return h.showList(w, r, l.Say("Tokens"), list)
}

// used is when something was, to within a day.
func used(l words.Language, at time.Time) adminCell {
	if at.IsZero() {
		return adminCell{Text: l.Say("never")}
	}
	return adminCell{Text: day(l, at), At: at}
}

func (h *handler) adminToken(w http.ResponseWriter, r *http.Request) error {
	all, err := h.svc.AdminTokens.List(r.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t control.AdminToken) bool { return t.ID == r.PathValue("id") })
	if i < 0 {
		return gone("There is no token of that id.")
	}
	l, t := languageOf(r), all[i]
	thing := adminThing{Line: l.Say("Made on %s, by the command line", day(l, t.CreatedAt)), EndToken: t.ID, Facts: []adminFact{
		{l.Say("What it may"), scopesOf(l, t)}, {l.Say("Used"), used(l, t.UsedAt).Text}, {l.Say("Ends"), moment(l, t.Ends)}, {l.Say("Id"), t.ID},
	}}
	return h.showAdmin(w, r, http.StatusOK, "admin-thing", pathAdmin+"/tokens", page{Title: t.Name}, func(p *adminPage) { p.Thing = &thing })
}

func (h *handler) endToken(w http.ResponseWriter, r *http.Request, f url.Values) error {
	_, err := h.svc.AdminTokens.Remove(r.Context(), f.Get("id"), operatorOf(r).ID)
	if err != nil && !control.IsRefusal(err, controlapi.CodeNotFound) { // somebody was quicker
		return err
	}
	return seeOther(w, r, pathAdmin+"/tokens")
}

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

// What is told of a computer that is off: to its owner, and to whoever has an app there.

// pathOff is the page of a computer that is off, for who has just been let in there.
const pathOff = "/off"

// stateRow is whether a computer is on, as far as that is told.
type stateRow struct {
	Known bool
	On    bool
	Since time.Time // when it was on last; zero where that is not told
	Said  string    // the same in words
}

func stateOf(l words.Language, p control.Presence) stateRow {
	return stateRow{Known: true, On: p.On, Since: p.Since, Said: moment(l, p.Since)}
}

// letIn is where somebody goes who has just accepted an invitation: to the app, where there is
// somebody to answer.
func letIn(a control.Accepted) string {
	if a.Off {
		return pathOff + "?" + url.Values{controlapi.ParamComputer: {a.Computer}}.Encode()
	}
	return "https://" + a.Host + "/"
}

// off says that a computer is off to who has an app there, and leads there once it is on.
func (h *handler) off(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get(controlapi.ParamComputer)
	session, ok, err := h.visiting(w, r, name)
	if err != nil {
		return err
	}
	if !ok {
		return seeOther(w, r, "/signin")
	}
	memberships, err := h.svc.People.Memberships(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(memberships, func(m control.Membership) bool { return m.Computer.Name == name })
	if i < 0 {
		return gone("That computer is not shared with you any more.")
	}
	m := memberships[i]
	presence, known := h.svc.People.Presence(r.Context(), m)
	if !known || presence.On {
		to := m.Computer.Host
		if len(m.Apps) > 0 {
			to = m.Apps[0].Host
		}
		return seeOther(w, r, "https://"+to+"/")
	}
	l := languageOf(r)
	return h.show(w, r, http.StatusOK, "off", page{
		Title: l.Say("%s is off", m.Computer.Host), Host: m.Computer.Host, State: stateOf(l, presence), Target: r.URL.RequestURI(),
	})
}

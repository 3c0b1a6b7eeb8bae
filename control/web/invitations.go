package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// The pages of an invitation: the mailed link's, whose one click signs in, and those of
// the address that its owner hands over. Looking at either changes nothing: mail
// scanners come here, too, and so does whoever a link was forwarded to.

// sealInvited is what the cookie of a browser is sealed for that had the code of an
// invitation mailed. A seal hides nothing, so it has the invitation's path, and not the
// address the code went to.
const sealInvited = "invitation cookie"

func (h *handler) invitationForm(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	i, err := h.svc.People.LookAtInvitation(r.Context(), token, cookie(r, h.session))
	if err != nil {
		return h.invitationOver(w, r, err)
	}
	p := invitationPage(r, i)
	p.Token, p.Action = token, control.PathInvitation
	return h.show(w, r, http.StatusOK, "invitation", p)
}

// invitationPage has what an invitation shows to whoever may see it.
func invitationPage(r *http.Request, i control.Invitation) page {
	language := languageOf(r)
	until, ends := linkEnds(language, i)
	return page{
		Title: language.Say("An invitation from %s", i.Owner), Email: i.Email,
		Owner: i.Owner, From: i.From, Line: i.Line, Apps: invitedRows(language, i.Apps), Other: i.Other, Until: until, Ends: ends,
		// Any of that computer's: by the time of the click another app may be the
		// first, or none.
		formTarget: "https://" + i.Root + " https://*." + i.Root,
	}
}

// linkEnds is when a link works no more: its own day, or sooner the end of all it leads to,
// which is a time, too.
func linkEnds(l words.Language, i control.Invitation) (string, time.Time) {
	outlasts := func(a control.InvitedApp) bool { return a.Until.IsZero() || !a.Until.Before(i.Until) }
	if len(i.Apps) == 0 || slices.ContainsFunc(i.Apps, outlasts) {
		return l.Day(i.Until.UTC()), time.Time{}
	}
	end := slices.MaxFunc(i.Apps, func(x, y control.InvitedApp) int { return x.Until.Compare(y.Until) }).Until
	return moment(l, end), end
}

func invitedRows(l words.Language, apps []control.InvitedApp) []invitedRow {
	rows := make([]invitedRow, len(apps))
	for n, a := range apps {
		initial, _ := utf8.DecodeRuneInString(a.Label)
		rows[n] = invitedRow{Label: a.Label, Initial: string(unicode.ToUpper(initial)), Host: a.Host}
		if !a.Until.IsZero() {
			rows[n].Until, rows[n].End = moment(l, a.Until), a.Until
		}
	}
	return rows
}

// invitationAccept is the one click: it signs in, accepts, and leads to the app.
func (h *handler) invitationAccept(w http.ResponseWriter, r *http.Request, f url.Values) error {
	accepted, err := h.svc.People.AcceptInvitation(r.Context(), f.Get("token"), cookie(r, h.session), clientAddr(r))
	if not, ok := errors.AsType[*control.NotByMail](err); ok {
		return seeOther(w, r, signInPath("/signin", destination{path: control.InvitationPath(not.Name)}))
	}
	if err != nil {
		return h.invitationOver(w, r, err)
	}
	if accepted.Token != "" {
		setCookie(w, h.session, accepted.Token, control.SessionLife)
		dropCookie(w, h.signIn)
	}
	return seeOther(w, r, letIn(accepted))
}

// invitationOver shows why an invitation cannot be used, and what can be done.
func (h *handler) invitationOver(w http.ResponseWriter, r *http.Request, err error) error {
	invitation, ok := errors.AsType[*control.InvitationOver](err)
	if !ok {
		return err
	}
	language, p := languageOf(r), page{}
	switch {
	case !invitation.Used.IsZero():
		p.Title, p.Used = language.Say("This invitation was used already"), words.Day{Day: invitation.Used.UTC()}
		if invitation.Open != "" {
			p.Target = "https://" + invitation.Open + "/"
		}
	case !invitation.Ended.IsZero():
		p.Title, p.Ended = language.Say("This invitation has ended"), words.Day{Day: invitation.Ended.UTC()}
	default:
		p.Title = language.Say("This invitation does not work")
	}
	return h.show(w, r, http.StatusNotFound, "invitation-over", p)
}

// invitationName is the name in the path of a request, or nobody's.
func invitationName(r *http.Request) string {
	name, _ := control.ParseInvitationName(r.PathValue("name"))
	return name
}

// namedForm is the page of an invitation's other address. To a browser that is signed in
// with the invited address it is that of the invitation; to any other it says who
// invites, and offers the code.
func (h *handler) namedForm(w http.ResponseWriter, r *http.Request) error {
	return h.showNamed(w, r, http.StatusOK, page{})
}

// showNamed shows the page with the problem in p, if there is one.
func (h *handler) showNamed(w http.ResponseWriter, r *http.Request, status int, p page) error {
	name := invitationName(r)
	session, _, err := h.current(w, r)
	if err != nil {
		return err
	}
	i, err := h.svc.People.LookAtNamed(r.Context(), name, session.Account.ID, cookie(r, h.session))
	if err != nil {
		return h.invitationOver(w, r, err)
	}
	template, full := "invitation", invitationPage(r, i.Invitation)
	full.Action, full.Problem, full.Wait = control.InvitationPath(name), p.Problem, p.Wait
	if !i.Proven {
		template, full.Other, full.formTarget = "invitation-named", session.Account.Email, ""
		if _, ok := h.mailed(r); ok && p.Wait == "" {
			template, full.Problem = "invitation-code", codeProblem(r)
		}
	}
	return h.show(w, r, status, template, full)
}

// mailed is the token of the browser that had the code of this invitation mailed.
func (h *handler) mailed(r *http.Request) (token string, ok bool) {
	token, path, ok := h.sealed(r, sealInvited)
	return token, ok && path == control.InvitationPath(invitationName(r))
}

// namedMail has the code mailed to the invited address.
func (h *handler) namedMail(w http.ResponseWriter, r *http.Request) error {
	name := invitationName(r)
	token, err := h.svc.BeginNamed(r.Context(), name, control.Browser{Client: clientAddr(r), Known: cookie(r, h.known), Language: languageOf(r)})
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok && refusal.RetryAfter > 0 {
		retryAfter(w, refusal)
		return h.showNamed(w, r, statusOf(refusal), page{Problem: problemOf(languageOf(r), refusal), Wait: waitInWords(languageOf(r), refusal.RetryAfter)})
	}
	if err != nil {
		return h.invitationOver(w, r, err)
	}
	path := control.InvitationPath(name)
	setCookie(w, h.signIn, h.svc.Keys.Seal(sealInvited, token+" "+path), control.SignInLife)
	return seeOther(w, r, path)
}

// namedCode signs the browser in that types the code.
func (h *handler) namedCode(w http.ResponseWriter, r *http.Request, f url.Values) error {
	token, ok := h.mailed(r)
	if !ok {
		return seeOther(w, r, control.InvitationPath(invitationName(r)))
	}
	in, err := h.svc.SignIn.WithCode(r.Context(), token, f.Get("code"), clientAddr(r))
	if control.IsRefusal(err, controlapi.CodeForbidden) {
		return wrong(w, r, control.InvitationPath(invitationName(r)), destination{})
	}
	if err != nil {
		return err
	}
	return h.signedIn(w, r, in)
}

// namedAccept is the one click of a browser that is signed in with the invited address.
func (h *handler) namedAccept(w http.ResponseWriter, r *http.Request) error {
	name := invitationName(r)
	session, ok, err := h.current(w, r)
	if err != nil {
		return err
	}
	if !ok {
		return seeOther(w, r, control.InvitationPath(name))
	}
	accepted, err := h.svc.People.AcceptNamed(r.Context(), name, session.Account.ID)
	switch {
	case control.IsRefusal(err, controlapi.CodeForbidden):
		return seeOther(w, r, control.InvitationPath(name))
	case control.IsRefusal(err, controlapi.CodeNotFound):
		return h.namedForm(w, r) // which says why
	case err != nil:
		return err
	}
	return seeOther(w, r, letIn(accepted))
}

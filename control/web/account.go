package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

func (h *handler) home(w http.ResponseWriter, r *http.Request) error {
	return seeOther(w, r, "/account")
}

func (h *handler) about(w http.ResponseWriter, r *http.Request) error {
	return h.show(w, r, http.StatusOK, "about", page{Title: languageOf(r).Say("What this is")})
}

// account shows what somebody has, can open and has allowed, and where they are
// signed in.
func (h *handler) account(w http.ResponseWriter, r *http.Request, session control.Session) error {
	l := languageOf(r)
	p := page{Title: l.Say("Your account"), Wide: true, Email: session.Account.Email}
	p.MayEnrol = h.svc.Enrolment.MayEnrol(session.Account) == nil && !h.svc.Local()
	if err := h.accountComputers(r, session, &p); err != nil {
		return err
	}
	grants, err := h.svc.Grants.OfAccount(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	p.Grants = grantRows(l, grants)
	if p.Passwords, err = h.svc.Passwords.Count(r.Context(), session.Account.ID); err != nil {
		return err
	}
	if p.HasPasskeys = h.svc.Passkeys.Offered(); p.HasPasskeys {
		if p.Passkeys, err = h.passkeyRows(r, session); err != nil {
			return err
		}
	}
	if p.MailOff = session.Account.MailOff; p.MailOff {
		if p.CodesLeft, err = h.svc.Recovery.Left(r.Context(), session.Account); err != nil {
			return err
		}
	}
	if p.Logins, err = h.loginRows(r, session); err != nil {
		return err
	}
	sessions, err := h.svc.Sessions.List(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		row := sessionRow{ID: s.ID, This: s.ID == session.ID, Limited: s.Limited, Device: deviceName(l, s.Device), By: l.Tell(proofs[s.Proof]),
			Since: moment(l, s.CreatedAt), Used: day(l, s.LastUsedAt)}
		if s.Client.IsValid() {
			row.Client = s.Client.String()
		}
		p.Sessions = append(p.Sessions, row)
	}
	return h.show(w, r, http.StatusOK, "account", p)
}

// accountComputers fills in the computers of one's own, those shared, and the
// invitations to others.
func (h *handler) accountComputers(r *http.Request, session control.Session, p *page) error {
	var own []control.OwnComputer
	var noneOwn error
	var asking sync.WaitGroup // whether one's own are on, while that is asked of the others
	asking.Go(func() { own, noneOwn = h.svc.Computers.Own(r.Context(), session.Account.ID) })
	memberships, err := h.svc.People.Memberships(r.Context(), session.Account.ID)
	presences := h.svc.People.Presences(r.Context(), memberships)
	asking.Wait()
	if err := cmp.Or(err, noneOwn); err != nil {
		return err
	}
	for _, c := range own {
		p.Own = append(p.Own, h.computerRowOf(languageOf(r), c))
	}
	for i, m := range memberships {
		if m.Invited {
			p.Invitations = append(p.Invitations, invitationRow{Host: m.Computer.Host, Owner: m.Owner, From: m.From, Path: m.Invitation})
		}
		if m.Role == controlapi.RoleMember && m.Status == controlapi.PersonActive {
			row := sharedRow{Name: m.Computer.Name, Host: m.Computer.Host, URL: m.Computer.URL, Owner: m.Owner, Apps: invitedRows(languageOf(r), m.Apps)}
			if !m.Ended.IsZero() {
				row.Ended, row.EndedSaid = m.Ended, moment(languageOf(r), m.Ended)
			}
			if presence := presences[i]; presence.OK {
				row.State = stateOf(languageOf(r), presence.Presence)
				for n := range row.Apps {
					row.Apps[n].Off = row.Off()
				}
			}
			p.Shared = append(p.Shared, row)
		}
	}
	return nil
}

// computerRow is one of somebody's own computers on the account page.
type computerRow struct {
	Name     string // short name
	Host     string
	URL      string
	What     string // "maya-laptop, Linux", as far as it is known
	State    stateRow
	Never    string // why there is no state to tell, or nothing
	Enrolled bool
	People   int
	Remove   string // address of the page that asks
}

func (h *handler) computerRowOf(l words.Language, c control.OwnComputer) computerRow {
	row := computerRow{
		Name: c.Name, Host: c.Host, URL: c.URL, What: c.Machine, State: stateOf(l, c.Presence), Enrolled: c.Enrolled, People: c.People,
		Remove: computerPath("/account/computer", c.Name),
	}
	if c.Platform != "" {
		if row.What != "" {
			row.What += ", "
		}
		row.What += platformName(c.Platform)
	}
	switch {
	case !c.Suspended.IsZero():
		row.Never = l.Tell(h.svc.Suspended(c.Suspended).Sentence())
	case !c.Enrolled:
		row.Never = l.Say("Not connected; the name is kept for you")
	case !c.On && c.Since.IsZero():
		row.Never = l.Say("Never connected")
	}
	return row
}

// invitationRow is an open invitation on the account page.
type invitationRow struct {
	Host  string
	Owner string
	From  string // what they call themselves, to stand beside Owner
	Path  string // of its page, where one click accepts it; empty where only its mail leads there
}

// sharedRow is somebody else's computer on the account page.
type sharedRow struct {
	Name  string
	Host  string
	URL   string
	Owner string
	Apps  []invitedRow
	State stateRow
	// Ended is when all they had there ended, and EndedSaid the same in words; or neither.
	Ended     time.Time
	EndedSaid string
}

// Off says that nobody answers there.
func (s sharedRow) Off() bool { return s.State.Known && !s.State.On }

// Leave is the address of the page that asks.
func (s sharedRow) Leave() string { return computerPath("/account/leave", s.Name) }

func computerPath(path, name string) string {
	return path + "?" + url.Values{"computer": {name}}.Encode()
}

// sessionRow is one signed-in browser on the account page.
type sessionRow struct {
	ID      string
	This    bool
	Limited bool // made by an invitation
	Client  string
	Device  string // "Firefox on Linux", or ""
	By      string // how they signed in, in words
	Since   string
	Used    string
}

// proofs are how somebody signed in, in words.
var proofs = map[controlapi.Proof]words.Sentence{
	controlapi.ProofMail: words.Of("by mail"), controlapi.ProofPasskey: words.Of("by passkey"),
	controlapi.ProofCode: words.Of("by recovery code"), controlapi.ProofProvider: words.Of("by an account elsewhere"),
}

// says is a part of User-Agent, and what it is of in people's words; the first that is in it
// counts, as browsers also say that they are others.
type says struct{ part, is string }

var (
	systems = []says{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "Chromebook"}, {"Windows", "Windows"}, {"Macintosh", "Mac"}, {"Linux", "Linux"},
	}
	browsers = []says{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Vivaldi/", "Vivaldi"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
	}
)

// deviceOf is what a browser says it is.
func deviceOf(r *http.Request) control.Device {
	said := func(all []says) string {
		i := slices.IndexFunc(all, func(one says) bool { return strings.Contains(r.UserAgent(), one.part) })
		if i < 0 {
			return ""
		}
		return all[i].is
	}
	return control.Device{Browser: said(browsers), System: said(systems)}
}

// deviceName is a device in words, "" for one that is not known.
func deviceName(l words.Language, d control.Device) string {
	if d.Browser == "" || d.System == "" {
		return cmp.Or(d.Browser, d.System)
	}
	return l.Say("%s on %s", d.Browser, d.System)
}

// removeForm asks what is to become of a computer.
func (h *handler) removeForm(w http.ResponseWriter, r *http.Request, session control.Session) error {
	own, err := h.svc.Computers.Own(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	for _, c := range own {
		if c.Name == r.URL.Query().Get("computer") {
			return h.show(w, r, http.StatusOK, "account-remove", page{
				Title: languageOf(r).Say("Remove %s?", c.Host), Email: session.Account.Email, Host: c.Host, Name: c.Name, Computer: h.computerRowOf(languageOf(r), c),
			})
		}
	}
	return gone("You have no computer of that name any more.")
}

// remove ends a computer's credential, and with decision=remove everything else
// about it.
func (h *handler) remove(ctx context.Context, session control.Session, f url.Values) error {
	switch f.Get("decision") {
	case "disconnect":
		return h.svc.Computers.Disconnect(ctx, session.Account.ID, f.Get("computer"))
	case "remove":
		return h.svc.Computers.Remove(ctx, session.Account.ID, f.Get("computer"))
	}
	return invalid("This form was not sent by its page. Open the page again.")
}

// leaveForm asks whether somebody wants to give up what is shared with them.
func (h *handler) leaveForm(w http.ResponseWriter, r *http.Request, session control.Session) error {
	memberships, err := h.svc.People.Memberships(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		if m.Role == controlapi.RoleMember && m.Computer.Name == r.URL.Query().Get("computer") {
			return h.show(w, r, http.StatusOK, "account-leave", page{
				Title: languageOf(r).Say("Leave %s?", m.Computer.Host), Email: session.Account.Email,
				Host: m.Computer.Host, Name: m.Computer.Name, Owner: m.Owner, Apps: invitedRows(languageOf(r), m.Apps),
			})
		}
	}
	return gone("That computer is not shared with you any more.")
}

func (h *handler) leaveComputer(ctx context.Context, session control.Session, f url.Values) error {
	return h.svc.People.Leave(ctx, session.Account.ID, f.Get("computer"))
}

// endSession signs out one browser, or with others set all but this one.
func (h *handler) endSession(ctx context.Context, session control.Session, f url.Values) error {
	if f.Get("others") != "" {
		return h.svc.Sessions.SignOutElsewhere(ctx, session.Account.ID, session.ID)
	}
	return h.svc.Sessions.End(ctx, session.Account.ID, f.Get("session"))
}

// revokeGrant ends a connected app's access.
func (h *handler) revokeGrant(ctx context.Context, session control.Session, f url.Values) error {
	return h.svc.Grants.RevokeForAccount(ctx, session.Account.ID, f.Get("grant"))
}

func gone(sentence string) error {
	return &controlapi.Error{Code: controlapi.CodeNotFound, Message: sentence}
}

func day(l words.Language, t time.Time) string { return l.DayOfYear(t.UTC()) }

func moment(l words.Language, t time.Time) string {
	return day(l, t) + t.UTC().Format(", 15:04 UTC")
}

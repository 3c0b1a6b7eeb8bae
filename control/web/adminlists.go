package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/internal/words"
)

// The lists of /admin: each is searched by what something begins with, and goes on by key.

// adminColumn is one of a table. Its class says that it is of numbers (n), or left out where
// there is little room (opt-col).
type adminColumn struct{ Name, Class string }

// adminCell is what a table says in one place.
type adminCell struct {
	Text  string
	Link  string
	At    time.Time // of which Text is the day, for who sees it in their own time
	More  string    // said more quietly
	Phone string    // what stands above it where the column for that is left out
	Dot   string    // "on", "off" or "bad"; "" for none
	Code  bool
}

// adminTable is a table.
type adminTable struct {
	Columns []adminColumn
	Rows    [][]adminCell
}

// Class is that of a column.
func (t adminTable) Class(i int) string { return t.Columns[i].Class }

// adminList is a page with a table.
type adminList struct {
	adminTable
	Path    string // of the page
	Search  string // what is searched for; "" where nothing is
	Query   string // what was
	Kind    string // which of Kinds it is
	Kinds   []adminTab
	Next    string // address of the page that goes on, "" at the end
	Partial bool
	Empty   string      // said where there is no row
	Says    string      // of the list
	Suspend string      // address of a form that ends something else
	Picks   []adminKind // what Kind may be, to be picked
	Export  string      // address of the rows as a file
	Chain   *adminChain
}

// asks is what the query of a list asks for.
func asks(r *http.Request) (control.Query, url.Values) {
	f := r.URL.Query()
	return control.Query{Prefix: f.Get("q"), After: f.Get("after")}, f
}

// goesOn is the address of the page after one.
func goesOn(r *http.Request, next string) string {
	if next == "" {
		return ""
	}
	return r.URL.Path + "?" + askedAgain(r, url.Values{"after": {next}})
}

// askedAgain is what a request searches for, and more.
func askedAgain(r *http.Request, f url.Values) string {
	for _, name := range []string{"q", "kind"} {
		if v := r.URL.Query().Get(name); v != "" {
			f.Set(name, v)
		}
	}
	return f.Encode()
}

func (h *handler) showList(w http.ResponseWriter, r *http.Request, title string, list adminList) error {
	list.Path, list.Query, list.Kind = r.URL.Path, r.URL.Query().Get("q"), r.URL.Query().Get("kind")
	return h.showAdmin(w, r, http.StatusOK, "admin-list", r.URL.Path, page{Title: title}, func(p *adminPage) { p.List = &list })
}

// adminLink is a page of one thing.
func adminLink(list, id string) string { return pathAdmin + "/" + list + "/" + url.PathEscape(id) }

// dated is a cell with a day.
func dated(l words.Language, t time.Time) adminCell {
	if t.IsZero() {
		return adminCell{}
	}
	return adminCell{Text: moment(l, t), At: t}
}

// suspendedCell says since when something is suspended, or else nothing.
func suspendedCell(l words.Language, since time.Time) adminCell {
	if since.IsZero() {
		return adminCell{}
	}
	return adminCell{Text: l.Say("Suspended since %s", day(l, since)), Dot: "bad"}
}

func (h *handler) adminAccounts(w http.ResponseWriter, r *http.Request) error {
	q, _ := asks(r)
	p, err := h.svc.Overview.Accounts(r.Context(), q)
	if err != nil {
		return err
	}
	l := languageOf(r)
	return h.showList(w, r, l.Say("Accounts"), adminList{
		adminTable: accountTable(l, p.Rows), Next: goesOn(r, p.Next), Partial: p.Partial,
		Search: l.Say("Mail address, or @domain"), Empty: l.Say("No account begins with that."),
	})
}

func accountTable(l words.Language, rows []control.Account) adminTable {
	t := adminTable{Columns: []adminColumn{{l.Say("Account"), ""}, {l.Say("State"), ""}, {l.Say("Since"), "t opt-col"}}}
	for _, a := range rows {
		t.Rows = append(t.Rows, []adminCell{{Text: a.Email, Link: adminLink("accounts", a.ID)}, suspendedCell(l, a.Suspended), dated(l, a.CreatedAt)})
	}
	return t
}

// kindCertificates is the list of computers whose certificates end.
const kindCertificates = "certificates"

func (h *handler) adminComputers(w http.ResponseWriter, r *http.Request) error {
	q, f := asks(r)
	l := languageOf(r)
	list := adminList{Kinds: []adminTab{{"", words.Of("All")}, {kindCertificates, words.Of("Certificate ends")}}}
	if f.Get("kind") == kindCertificates {
		p, err := h.svc.Overview.Certificates(r.Context(), q)
		if err != nil {
			return err
		}
		list.adminTable, list.Next = h.endingTable(l, p.Rows), goesOn(r, p.Next)
		list.Says, list.Empty = l.Say("They could not renew it, and it ends within 14 days. Why, their owners are told."), l.Say("Every certificate is renewed in time.")
		return h.showList(w, r, l.Say("Computers"), list)
	}
	p, err := h.svc.Overview.Computers(r.Context(), q)
	if err != nil {
		return err
	}
	list.adminTable, list.Next, list.Partial = computerTable(l, p.Rows), goesOn(r, p.Next), p.Partial
	list.Search, list.Empty = l.Say("Short name"), l.Say("No computer begins with that.")
	return h.showList(w, r, l.Say("Computers"), list)
}

// endingTable is computerTable with when their certificates end.
func (h *handler) endingTable(l words.Language, rows []control.EndingCertificate) adminTable {
	listed := make([]control.ListedComputer, len(rows))
	for i, c := range rows {
		listed[i] = c.ListedComputer
	}
	t := computerTable(l, listed)
	t.Columns[3] = adminColumn{l.Say("Certificate until"), "t"}
	for i, c := range rows {
		row := t.Rows[i]
		if row[3] = dated(l, c.Ends); row[2].Text == "" && c.Away(h.now()) {
			row[2] = adminCell{Text: l.Say("Never connected"), Dot: "off"}
			if !c.Seen.IsZero() {
				row[2].Text = l.Say("Off since %s", moment(l, c.Seen))
			}
		}
	}
	return t
}

func computerTable(l words.Language, rows []control.ListedComputer) adminTable {
	t := adminTable{Columns: []adminColumn{{l.Say("Computer"), ""}, {l.Say("Owner"), "opt-col"}, {l.Say("State"), ""}, {l.Say("Since"), "t opt-col"}}}
	for _, c := range rows {
		state := suspendedCell(l, c.Suspended)
		if state.Text == "" && !c.Connected {
			state = adminCell{Text: l.Say("Not connected"), Dot: "off"}
		}
		t.Rows = append(t.Rows, []adminCell{
			{Text: hostOf(c.URL), Link: adminLink("computers", c.ID), Phone: c.Owner},
			{Text: c.Owner, Link: adminLink("accounts", c.OwnerID)}, state, dated(l, c.CreatedAt),
		})
	}
	return t
}

// ownTable is computerTable of one owner.
func ownTable(l words.Language, rows []control.ListedComputer) adminTable {
	t := computerTable(l, rows)
	t.Columns = slices.Delete(t.Columns, 1, 2)
	for i, row := range t.Rows {
		row[0].Phone = ""
		t.Rows[i] = slices.Delete(row, 1, 2)
	}
	return t
}

func (h *handler) adminClients(w http.ResponseWriter, r *http.Request) error {
	q, _ := asks(r)
	p, err := h.svc.Overview.Clients(r.Context(), q)
	if err != nil {
		return err
	}
	l := languageOf(r)
	list := adminList{
		adminTable: adminTable{Columns: []adminColumn{{l.Say("Client"), ""}, {l.Say("State"), ""}, {l.Say("Since"), "t opt-col"}, {l.Say("Act"), "nb"}}},
		Next:       goesOn(r, p.Next), Partial: p.Partial, Search: l.Say("Name"), Empty: l.Say("No client begins with that."),
		Says: l.Say("Programs that people can let in. The command line adds and removes them."),
	}
	for _, c := range p.Rows {
		list.Rows = append(list.Rows, []adminCell{
			{Text: c.Name, More: c.Host}, suspendedCell(l, c.Suspended), dated(l, c.CreatedAt), act(l, control.SuspendClient, c.ID, !c.Suspended.IsZero()),
		})
	}
	return h.showList(w, r, l.Say("Clients"), list)
}

// act is the link that ends something, or brings it back.
func act(l words.Language, kind control.SuspensionKind, id string, suspended bool) adminCell {
	if suspended {
		return adminCell{Text: l.Say("Resume…"), Link: endPath("resume", kind, id)}
	}
	return adminCell{Text: l.Say("Suspend…"), Link: endPath("suspend", kind, id)}
}

func endPath(what string, kind control.SuspensionKind, id string) string {
	return pathAdmin + "/" + what + "?" + url.Values{"kind": {string(kind)}, "id": {id}}.Encode()
}

// kindNames are what is suspended, in words.
var kindNames = map[control.SuspensionKind]words.Sentence{
	control.SuspendAccount: words.Of("Account"), control.SuspendComputer: words.Of("Computer"), control.SuspendClient: words.Of("Client"),
	control.SuspendAddress: words.Of("Mail address"), control.SuspendDomain: words.Of("Domain"),
}

func (h *handler) adminSuspensions(w http.ResponseWriter, r *http.Request) error {
	q, _ := asks(r)
	if strings.TrimSpace(q.Prefix) != "" {
		q.By = control.ByName
	}
	p, err := h.svc.Overview.Suspensions(r.Context(), q)
	if err != nil {
		return err
	}
	l := languageOf(r)
	list := adminList{
		adminTable: adminTable{Columns: []adminColumn{{l.Say("Suspended"), ""}, {l.Say("Reason"), ""}, {l.Say("By"), "opt-col"}, {l.Say("Since"), "t opt-col"}, {l.Say("Act"), "nb"}}},
		Next:       goesOn(r, p.Next), Partial: p.Partial, Empty: l.Say("Nothing is suspended."), Search: l.Say("Name"),
		Says: l.Say("People read: %s", l.Tell(h.svc.Suspended(h.now()).Sentence())), Suspend: pathAdmin + "/suspend",
	}
	if q.By == control.ByName {
		list.Empty = sought(l, p.Next)
	}
	who, err := namesOf(h, r, p.Rows, func(s control.Suspension) []string { return []string{s.By} })
	if err != nil {
		return err
	}
	for _, s := range p.Rows {
		list.Rows = append(list.Rows, []adminCell{
			{Text: s.Name, Link: detailOf(s.Kind, s.ID), More: l.Tell(kindNames[s.Kind])}, {Text: s.Reason},
			{Text: who.said(l, s.By)}, dated(l, s.At), act(l, s.Kind, s.ID, true),
		})
	}
	return h.showList(w, r, l.Say("Suspensions"), list)
}

// sought is said where nothing was found: in all, or in what was looked at so far.
func sought(l words.Language, next string) string {
	if next != "" {
		return l.Say("None of the 5,000 that were looked at. More goes on.")
	}
	return l.Say("Nothing begins with that.")
}

// detailOf is the page of what is suspended, where there is one.
func detailOf(kind control.SuspensionKind, id string) string {
	switch kind {
	case control.SuspendAccount:
		return adminLink("accounts", id)
	case control.SuspendComputer:
		return adminLink("computers", id)
	}
	return ""
}

// reasons are why a mail was given up.
var reasons = map[string]words.Sentence{"refused": words.Of("Refused by the mail server"), "expired": words.Of("Given up for its age")}

func (h *handler) adminMails(w http.ResponseWriter, r *http.Request) error {
	q, f := asks(r)
	l := languageOf(r)
	list := adminList{
		adminTable: adminTable{Columns: []adminColumn{{l.Say("To"), ""}, {l.Say("Why"), ""}, {l.Say("Tries"), "n opt-col"}, {l.Say("When"), "t opt-col"}}},
		Search:     l.Say("Mail address"),
		Kinds:      []adminTab{{"", words.Of("Did not arrive")}, {"waiting", words.Of("Still tried")}},
		Empty:      l.Say("Every mail of the last seven days arrived."),
		Says:       l.Say("To whom, never what they say."),
	}
	all := h.svc.Overview.FailedMails
	if f.Get("kind") == "waiting" {
		all, list.Empty = h.svc.Overview.WaitingMails, l.Say("No mail waits.")
	}
	p, err := all(r.Context(), q)
	if err != nil {
		return err
	}
	for _, m := range p.Rows {
		why := adminCell{Text: l.Tell(reasons[m.Reason])}
		if m.Code != 0 {
			why.More = l.Say("code %s", itoa(m.Code))
		}
		when := dated(l, m.FailedAt)
		if m.FailedAt.IsZero() {
			when, why.Text = dated(l, m.Next), l.Say("Tried again %s", moment(l, m.Next))
		}
		list.Rows = append(list.Rows, []adminCell{{Text: m.To}, why, {Text: itoa(m.Tries)}, when})
	}
	list.Next = goesOn(r, p.Next)
	return h.showList(w, r, l.Say("Mail"), list)
}

// adminFind searches accounts and computers together.
func (h *handler) adminFind(w http.ResponseWriter, r *http.Request) error {
	q, _ := asks(r)
	q.Limit, q.After = foundMost, ""
	l := languageOf(r)
	found := adminFound{Query: strings.TrimSpace(q.Prefix)}
	if found.Query != "" {
		accounts, err := h.svc.Overview.Accounts(r.Context(), q)
		if err != nil {
			return err
		}
		byID := q
		if byID.By = control.ByID; len(accounts.Rows) == 0 && !strings.Contains(q.Prefix, "@") {
			if accounts, err = h.svc.Overview.Accounts(r.Context(), byID); err != nil {
				return err
			}
		}
		found.Accounts = accountTable(l, accounts.Rows)
		if !strings.Contains(q.Prefix, "@") {
			// A whole host is searched by its first name.
			q.Prefix, _, _ = strings.Cut(q.Prefix, ".")
			computers, err := h.svc.Overview.Computers(r.Context(), q)
			if err != nil {
				return err
			}
			found.Computers = computerTable(l, computers.Rows)
			domains := q
			if domains.By, domains.Prefix = control.ByDomain, found.Query; len(accounts.Rows) == 0 {
				of, err := h.svc.Overview.Accounts(r.Context(), domains)
				if err != nil {
					return err
				}
				found.Accounts = accountTable(l, of.Rows)
			}
		}
	}
	return h.showAdmin(w, r, http.StatusOK, "admin-find", pathAdmin, page{Title: l.Say("Search")}, func(p *adminPage) { p.Found = &found })
}

// foundMost is how many of each a search shows.
const foundMost = 20

// adminFound is what a search found.
type adminFound struct {
	Query               string
	Accounts, Computers adminTable
}

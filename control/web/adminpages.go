package web

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// What /admin shows of one account and one computer, of the nodes, and what needs a look.

// adminFact is one line of what is known.
type adminFact struct{ Name, Value string }

// adminThing is an account or a computer.
type adminThing struct {
	Line      string // below its name
	Dot       string // of the line
	Ended     string // that it is suspended, in words, or ""
	Reason    string
	Facts     []adminFact
	Computers adminTable
	Partial   bool
	Usage     *adminUsage
	Act       adminCell // the link that ends it, or brings it back
	EndToken  string    // id of the token that it is
}

func (h *handler) adminAccount(w http.ResponseWriter, r *http.Request) error {
	a, err := h.svc.Overview.Account(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	h.svc.Operators.Looked(operatorOf(r).ID, "account", a.ID)
	l := languageOf(r)
	t := adminThing{Line: l.Say("Account since %s", day(l, a.CreatedAt)), Partial: a.Partial, Act: act(l, control.SuspendAccount, a.ID, false)}
	for _, s := range a.Suspensions {
		t.Ended, t.Reason = l.Say("Suspended since %s", moment(l, s.At)), s.Reason
		t.Act = act(l, s.Kind, s.ID, true)
	}
	mail := l.Say("on")
	if a.MailOff {
		mail = l.Say("off")
	}
	t.Facts = []adminFact{{l.Say("Passkeys"), l.Count(a.Passkeys, "%d", "%d")}, {l.Say("Signing in by mail"), mail}}
	if len(a.Providers) > 0 {
		t.Facts = append(t.Facts, adminFact{l.Say("Providers"), l.And(a.Providers...)})
	}
	t.Facts = append(t.Facts, adminFact{l.Say("Browsers"), l.Count(a.Sessions, "%d signed in", "%d signed in")})
	if a.Operator {
		t.Facts = append(t.Facts, adminFact{l.Say("Role"), l.Say("Operator, by the command line")})
	}
	t.Facts = append(t.Facts, adminFact{l.Say("Id"), a.ID})
	if len(a.Computers) > 0 {
		t.Computers = ownTable(l, a.Computers)
	}
	return h.showAdmin(w, r, http.StatusOK, "admin-thing", pathAdmin+"/accounts", page{Title: a.Email}, func(p *adminPage) { p.Thing = &t })
}

func (h *handler) adminComputer(w http.ResponseWriter, r *http.Request) error {
	c, err := h.svc.Overview.Computer(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	h.svc.Operators.Looked(operatorOf(r).ID, "computer", c.ID)
	l := languageOf(r)
	t := adminThing{Act: act(l, control.SuspendComputer, c.ID, c.Suspension != nil), Usage: h.usageOf(l, c.Usage)}
	switch {
	case c.On:
		t.Line, t.Dot = l.Say("On"), "on"
	case !c.Connected:
		t.Line, t.Dot = l.Say("Not connected"), "off"
	case c.Seen.IsZero():
		t.Line, t.Dot = l.Say("Never connected"), "off"
	default:
		t.Line, t.Dot = l.Say("Off since %s", moment(l, c.Seen)), "off"
	}
	if !c.Suspended.IsZero() {
		t.Ended = l.Say("Suspended since %s", moment(l, c.Suspended))
		if c.Suspension != nil {
			t.Reason = c.Suspension.Reason
		} else {
			t.Reason = l.Say("with its owner’s account")
		}
	}
	t.Facts = []adminFact{{l.Say("Owner"), c.Owner}, {l.Say("People"), l.Count(c.People, "%d", "%d")}, {l.Say("Since"), day(l, c.CreatedAt)}}
	if len(c.Domains) > 0 {
		t.Facts = append(t.Facts, adminFact{l.Say("Own domains"), l.And(domainNames(c.Domains)...)})
	}
	if c.Certificate != nil {
		t.Facts = append(t.Facts, adminFact{l.Say("Certificate"), l.Say("%[1]s, until %[2]s", c.Certificate.Issuer, day(l, c.Certificate.Ends))})
		if c.Certificate.Problem != "" {
			t.Facts = append(t.Facts, adminFact{l.Say("Not trusted"), c.Certificate.Problem})
		}
	}
	t.Facts = append(t.Facts, adminFact{l.Say("Id"), c.ID})
	return h.showAdmin(w, r, http.StatusOK, "admin-thing", pathAdmin+"/computers", page{Title: hostOf(c.URL)}, func(p *adminPage) { p.Thing = &t })
}

func domainNames(all []control.ListedDomain) (names []string) {
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names
}

// adminNodes are the nodes, and what the one that answers is bounded by.
type adminNodes struct {
	Nodes, Limits adminTable
	Certificate   string
	CertEnds      time.Time
	Abuse         string // whom people are told to ask
}

func (h *handler) adminNodes(w http.ResponseWriter, r *http.Request) error {
	all, err := h.svc.Overview.Nodes(r.Context())
	if err != nil {
		return err
	}
	l := languageOf(r)
	n := adminNodes{Nodes: nodeTable(l, all), Abuse: h.svc.Suspended(h.now()).Ask}
	if h.certEnds != nil {
		if n.CertEnds = h.certEnds(); !n.CertEnds.IsZero() {
			n.Certificate = day(l, n.CertEnds)
		}
	}
	n.Limits.Columns = []adminColumn{{l.Say("Limit"), ""}, {l.Say("At most"), "n"}, {l.Say("Reached"), "n"}}
	for _, limit := range h.svc.Overview.Limits() {
		value := l.Say("by the machine")
		if limit.Value > 0 {
			value = l.Count(limit.Value, "%d", "%d")
		}
		reached := adminCell{Text: l.Say("never")}
		if limit.Reached > 0 {
			reached = adminCell{Text: l.Count(int(limit.Reached), "%d time", "%d times"), Dot: "bad"}
		}
		n.Limits.Rows = append(n.Limits.Rows, []adminCell{{Text: limit.Name, Code: true}, {Text: value}, reached})
	}
	return h.showAdmin(w, r, http.StatusOK, "admin-nodes", pathAdmin+"/nodes", page{Title: l.Say("Nodes")}, func(p *adminPage) { p.Nodes = &n })
}

func nodeTable(l words.Language, nodes []control.Node) adminTable {
	t := adminTable{Columns: []adminColumn{{l.Say("Node"), ""}, {l.Say("State"), ""}, {l.Say("Version"), "opt-col"}, {l.Say("Computers"), "n"}, {l.Say("Visitors now"), "n opt-col"}}}
	for _, n := range nodes {
		state := adminCell{Text: l.Say("On"), Dot: "on"}
		if n.Draining {
			state = adminCell{Text: l.Say("Draining"), Dot: "off"}
		}
		row := []adminCell{{Text: cmp.Or(n.Name, l.Say("this node")), More: n.Address}, state, {Text: n.Version}, {Text: "–"}, {Text: "–"}}
		if n.This {
			row[3].Text, row[4].Text = l.Count(n.Computers, "%d", "%d"), l.Count(n.Visits, "%d", "%d")
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// adminEnds asks before something is suspended or resumed.
type adminEnds struct {
	Kind, ID string
	Name     string // "" where something has still to be named
	Resume   bool
	Effect   string
	Own      bool // it ends who asks, too
	Reason   string
	Read     words.Sentence // what others read
	Kinds    []adminKind
}

type adminKind struct {
	Kind string
	Name words.Sentence
	Is   bool
}

func (h *handler) suspendForm(w http.ResponseWriter, r *http.Request, f url.Values) error {
	return h.showEnds(w, r, f, false, nil)
}

func (h *handler) resumeForm(w http.ResponseWriter, r *http.Request, f url.Values) error {
	return h.showEnds(w, r, f, true, nil)
}

// showEnds shows what suspending or resuming does: again with what was typed, where that was
// refused.
func (h *handler) showEnds(w http.ResponseWriter, r *http.Request, f url.Values, resume bool, refusal error) error {
	l := languageOf(r)
	e := adminEnds{Kind: f.Get("kind"), ID: strings.TrimSpace(f.Get("id")), Resume: resume, Reason: f.Get("reason"), Read: h.svc.Suspended(h.now()).Sentence()}
	title, status := l.Say("Suspend"), http.StatusOK
	if resume {
		title = l.Say("Resume")
	}
	if e.ID != "" {
		if err := h.effect(r, &e); err != nil {
			if e.Name = ""; !control.IsRefusal(err, controlapi.CodeNotFound) && !control.IsRefusal(err, controlapi.CodeInvalid) || e.Kind == "" {
				return err
			}
			refusal = err
		}
	}
	for _, kind := range []control.SuspensionKind{control.SuspendAddress, control.SuspendDomain, control.SuspendAccount, control.SuspendComputer, control.SuspendClient} {
		e.Kinds = append(e.Kinds, adminKind{string(kind), kindNames[kind], e.Kind == string(kind)})
	}
	if refusal != nil {
		status = http.StatusBadRequest
	}
	return h.showAdmin(w, r, status, "admin-ends", pathAdmin+"/suspensions", page{Title: title, Problem: problemOf(l, refusal)}, func(p *adminPage) { p.Ends = &e })
}

// effect names what is suspended, and says what that does.
func (h *handler) effect(r *http.Request, e *adminEnds) error {
	l := languageOf(r)
	cuts, err := h.svc.Overview.Cuts(r.Context(), control.SuspensionKind(e.Kind), e.ID)
	if err != nil {
		return err
	}
	defer func() {
		if e.Effect != "" {
			e.Effect += cutsSaid(l, control.SuspensionKind(e.Kind), cuts)
		}
	}()
	switch control.SuspensionKind(e.Kind) {
	case control.SuspendAccount:
		a, err := h.svc.Overview.Account(r.Context(), e.ID)
		if err != nil {
			return err
		}
		e.ID, e.Name, e.Own = a.ID, a.Email, a.ID == operatorOf(r).ID
		e.Effect = l.Say("It signs in nowhere, and opens nothing.")
	case control.SuspendComputer:
		c, err := h.svc.Overview.Computer(r.Context(), e.ID)
		if err != nil {
			return err
		}
		e.ID, e.Name = c.ID, hostOf(c.URL)
		e.Effect = l.Say("It goes off the net within seconds, and whoever visits it is cut off.")
	case control.SuspendClient:
		named, err := h.svc.Overview.Names(r.Context(), []string{e.ID})
		if err != nil {
			return err
		}
		if e.Name = named[e.ID].Name; e.Name == "" {
			return gone("There is no such client.")
		}
		e.Effect = l.Say("Whoever let it in keeps that; meanwhile it gets no token and opens nothing.")
	case control.SuspendAddress:
		e.Name, e.Effect = e.ID, l.Say("Nobody signs in with this address or is invited to it, and its account is suspended.")
	case control.SuspendDomain:
		e.Name, e.Effect = strings.TrimPrefix(e.ID, "@"), l.Say("Nobody signs in with an address of this domain or of one below it, and their accounts are suspended, one after another.")
	default:
		return invalid("Say what it is: an account, a computer, a client, a mail address or a domain.")
	}
	return nil
}

// cutsSaid says how much is cut off, in sentences that follow another.
func cutsSaid(l words.Language, kind control.SuspensionKind, c control.Cuts) (said string) {
	say := func(n int, exactly, orMore string) {
		switch {
		case n == 0:
		case c.More:
			said += " " + orMore
		default:
			said += " " + exactly
		}
	}
	if kind == control.SuspendClient {
		say(c.People, l.Count(c.People, "It was let in %d time.", "It was let in %d times."), l.Say("It was let in %d times or more.", c.People))
		return said
	}
	if kind == control.SuspendDomain {
		say(c.Accounts, l.Count(c.Accounts, "%d account is there.", "%d accounts are there."), l.Say("%d accounts or more are there.", c.Accounts))
	}
	if kind != control.SuspendComputer {
		say(c.Computers, l.Count(c.Computers, "%d computer goes off the net within seconds, and whoever visits it is cut off.",
			"%d computers go off the net within seconds, and whoever visits them is cut off."),
			l.Say("%d computers or more go off the net within seconds, and whoever visits them is cut off.", c.Computers))
	}
	say(c.People, l.Count(c.People, "%d person is cut off meanwhile.", "%d people are cut off meanwhile."), l.Say("%d people or more are cut off meanwhile.", c.People))
	return said
}

func (h *handler) suspend(w http.ResponseWriter, r *http.Request, f url.Values) error {
	s, err := h.svc.Suspensions.Suspend(r.Context(), control.SuspensionKind(f.Get("kind")), strings.TrimSpace(f.Get("id")), f.Get("reason"), operatorOf(r).ID)
	if control.IsRefusal(err, controlapi.CodeInvalid) || control.IsRefusal(err, controlapi.CodeNotFound) {
		return h.showEnds(w, r, f, false, err)
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, cmp.Or(detailOf(s.Kind, s.ID), pathAdmin+"/suspensions"))
}

func (h *handler) resume(w http.ResponseWriter, r *http.Request, f url.Values) error {
	kind, id := control.SuspensionKind(f.Get("kind")), f.Get("id")
	_, err := h.svc.Suspensions.Resume(r.Context(), kind, id, f.Get("reason"), operatorOf(r).ID)
	if control.IsRefusal(err, controlapi.CodeInvalid) {
		return h.showEnds(w, r, f, true, err)
	}
	if err != nil && !control.IsRefusal(err, controlapi.CodeNotFound) { // somebody was quicker
		return err
	}
	return seeOther(w, r, cmp.Or(detailOf(kind, id), pathAdmin+"/suspensions"))
}

package web

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"porchlight/control"
	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// happened are the kinds of audit rows, in words.
var happened = map[string]words.Sentence{
	"sign-in": words.Of("Signed in"), "sign-in-failed": words.Of("Was refused a sign-in"),
	"account-made": words.Of("Account made"), "account-removed": words.Of("Account removed"), "exported": words.Of("Exported the account"),
	"computer-connected": words.Of("Connected a computer"), "computer-disconnected": words.Of("Disconnected a computer"),
	"domain-added": words.Of("Added an own domain"), "domain-removed": words.Of("Removed an own domain"),
	"domain-proven": words.Of("Proved an own domain"), "domain-ended": words.Of("Lost an own domain"),
	"grant-given": words.Of("Let an app in"), "grant-ended": words.Of("Ended an app’s access"),
	"password-made": words.Of("Made an app password"), "password-ended": words.Of("Ended an app password"),
	"passkey-added": words.Of("Added a passkey"), "passkey-removed": words.Of("Removed a passkey"), "passkey-copied": words.Of("There may be a copy of a passkey"),
	"login-bound": words.Of("Bound a provider’s sign-in"), "login-removed": words.Of("Removed a provider’s sign-in"),
	"mail-off": words.Of("Turned signing in by mail off"), "mail-on": words.Of("Turned signing in by mail on"),
	"recovery-begun": words.Of("Recovery begun"), "recovery-stopped": words.Of("Recovery stopped"), "recovery-codes-made": words.Of("Made recovery codes"),
	"suspended": words.Of("Suspended"), "resumed": words.Of("Resumed"),
	"operator-added": words.Of("Made an operator"), "operator-removed": words.Of("Operator no more"),
	"operator-entered": words.Of("Opened /admin"), "operator-refused": words.Of("Was refused /admin"), "operator-looked": words.Of("Looked"),
	"token-added": words.Of("Made a token"), "token-removed": words.Of("Removed a token"), "token": words.Of("Asked with a token"), "operator": words.Of("Asked the server"),
	"signed-out": words.Of("Signed out"), "started": words.Of("Node began"), "stopped": words.Of("Node ended"),
	"lost": words.Of("Rows were lost while the store was away"),
}

// opaque are ids and hashes, which tell a person nothing.
var opaque = regexp.MustCompile(`^([a-z0-9]{26}|[0-9a-f]{64})$`)

// names are what ids are of.
type names map[string]control.Named

// namesOf are those of the ids that rows have.
func namesOf[T any](h *handler, r *http.Request, rows []T, ids func(T) []string) (names, error) {
	var all []string
	for _, row := range rows {
		all = append(all, ids(row)...)
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(id string) bool { return !opaque.MatchString(id) })
	return h.svc.Overview.Names(r.Context(), all)
}

// said is what an id is called: itself where it is gone.
func (n names) said(l words.Language, id string) string {
	switch {
	case id == control.ByCommandLine:
		return l.Say("the command line")
	case strings.HasPrefix(id, "token:"):
		return l.Say("a token")
	case n[id].Name != "":
		return n[id].Name
	}
	return id
}

// auditAsked is what a request asks for of the audit log.
func auditAsked(r *http.Request) control.Query {
	q, f := asks(r)
	q.Prefix, q.About, q.Kind = "", q.Prefix, f.Get("kind")
	return q
}

// adminChain says whether the audit log is whole, as this node knows it.
type adminChain struct {
	Verified, Told, Dot string
}

func chainOf(l words.Language, s audit.State) *adminChain {
	c := &adminChain{Dot: "off", Verified: l.Say("Not verified since this node began."), Told: l.Say("Its end was signed and told elsewhere %s.", moment(l, s.Told))}
	rows := 0
	for _, chain := range s.Report.Chains {
		rows += chain.Rows
	}
	switch {
	case len(s.Report.Problems) > 0:
		c.Dot, c.Verified = "bad", l.Say("Verified %[1]s, and it is not whole: %[2]s", moment(l, s.Verified), s.Report.Problems[0])
	case !s.Verified.IsZero():
		c.Dot = "on"
		c.Verified = l.Count(rows, "Verified %[2]s: %[1]d row, as it was written.", "Verified %[2]s: %[1]d rows, each follows the one before.", moment(l, s.Verified))
	}
	switch {
	case s.Nowhere:
		c.Told = l.Say("Its end is told nowhere else: --audit-head does that.")
	case s.Untold != "":
		c.Dot, c.Told = "bad", l.Say("Its end could not be told elsewhere: %s", s.Untold)
	case s.Told.IsZero():
		c.Told = l.Say("Its end was not told elsewhere yet.")
	}
	return c
}

// verifyAudit goes through all rows, and leads to what was found.
func (h *handler) verifyAudit(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	if err := h.svc.Overview.VerifyAudit(r.Context()); err != nil {
		return err
	}
	return seeOther(w, r, pathAdmin+"/audit")
}

// exportAudit streams rows as JSON lines, the oldest of each node first. When it fails on the
// way the answer is broken off.
func (h *handler) exportAudit(w http.ResponseWriter, r *http.Request) error {
	h.svc.Operators.Looked(operatorOf(r).ID, "audit export", "")
	lines, begun := json.NewEncoder(w), false
	err := h.svc.Overview.EachAudit(r.Context(), auditAsked(r), func(row audit.Row) error {
		if !begun {
			begun = true
			exportHead(w)
		}
		return lines.Encode(row)
	})
	if err != nil && begun {
		h.log.Error("the audit log was not exported to its end", "err", err)
		panic(http.ErrAbortHandler) // the head is gone; breaking off is all that is left to say
	}
	if err == nil && !begun {
		exportHead(w)
	}
	return err
}

func exportHead(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="porchlight-audit.jsonl"`)
	w.WriteHeader(http.StatusOK)
}

func (h *handler) adminAudit(w http.ResponseWriter, r *http.Request) error {
	q := auditAsked(r)
	l := languageOf(r)
	p, err := h.svc.Overview.Audit(r.Context(), q)
	if err != nil && !control.IsRefusal(err, controlapi.CodeNotFound) { // of whom there is no account is nothing
		return err
	}
	named, err := namesOf(h, r, p.Rows, func(row audit.Row) []string { return []string{row.By, row.On, row.What} })
	if err != nil {
		return err
	}
	list := adminList{
		adminTable: adminTable{Columns: []adminColumn{{l.Say("When"), "t"}, {l.Say("Who"), "opt-col"}, {l.Say("What"), ""}, {l.Say("On whom"), "opt-col"}, {l.Say("Row"), "n opt-col"}}},
		Next:       goesOn(r, p.Next), Empty: l.Say("Nothing was kept yet."),
		Says:   l.Say("Rows are added, never changed; each carries the print of the one before."),
		Search: l.Say("Mail address or id"), Export: r.URL.Path + "/export?" + askedAgain(r, url.Values{}), Chain: chainOf(l, h.svc.Overview.AuditState()),
		Picks: []adminKind{{"", words.Of("All that happened"), q.Kind == ""}},
	}
	for _, kind := range slices.Sorted(maps.Keys(happened)) {
		list.Picks = append(list.Picks, adminKind{kind, happened[kind], kind == q.Kind})
	}
	if q.Kind != "" || q.About != "" {
		list.Empty = sought(l, p.Next)
	}
	for _, row := range p.Rows {
		by, on := named.said(l, row.By), named.said(l, row.On)
		link := detailOf(named[row.On].Kind, row.On)
		if row.By == "" { // it is about who did it
			by, on, link = on, "", ""
		}
		what := adminCell{Text: row.Kind, More: row.What, Phone: by}
		if opaque.MatchString(row.What) {
			what.More = named[row.What].Name
		}
		if s, known := happened[row.Kind]; known {
			what.Text = l.Tell(s)
		}
		list.Rows = append(list.Rows, []adminCell{dated(l, row.At), {Text: by}, what, {Text: on, Link: link}, {Text: strconv.FormatUint(row.Seq, 10) + " · " + row.Hash[:min(4, len(row.Hash))] + "…", Code: true}})
	}
	return h.showList(w, r, l.Say("Audit"), list)
}

func itoa(n int) string { return strconv.Itoa(n) }

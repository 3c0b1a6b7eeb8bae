package web

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"porchlight/control"
	"porchlight/control/audit"
	"porchlight/internal/words"
)

// happened are the kinds of audit rows, in words.
var happened = map[string]words.Sentence{
	"sign-in": words.Of("Signed in"), "sign-in-failed": words.Of("Was refused a sign-in"),
	"account-made": words.Of("Account made"), "account-removed": words.Of("Account removed"), "exported": words.Of("Exported the account"),
	"computer-connected": words.Of("Connected a computer"), "computer-disconnected": words.Of("Disconnected a computer"),
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

func (h *handler) adminAudit(w http.ResponseWriter, r *http.Request) error {
	q, _ := asks(r)
	q.Prefix = ""
	p, err := h.svc.Overview.Audit(r.Context(), q)
	if err != nil {
		return err
	}
	named, err := namesOf(h, r, p.Rows, func(row audit.Row) []string { return []string{row.By, row.On, row.What} })
	if err != nil {
		return err
	}
	l := languageOf(r)
	list := adminList{
		adminTable: adminTable{Columns: []adminColumn{{l.Say("When"), "t"}, {l.Say("Who"), "opt-col"}, {l.Say("What"), ""}, {l.Say("On whom"), "opt-col"}, {l.Say("Row"), "n opt-col"}}},
		Next:       goesOn(r, p.Next), Empty: l.Say("Nothing was kept yet."),
		Says: l.Say("Rows are added, never changed; each carries the print of the one before. The command line verifies them."),
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

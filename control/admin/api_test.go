package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/docs/openapi"
	"porchlight/test/programs"
)

// asks makes a request of the API as a program does, and holds the answer to its document.
func asks(t *testing.T, a *madeAdmin, method, path, token, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	document := programs.Got(openapi.Admin())(t)
	document.Checked(a.API(), t.Errorf).ServeHTTP(w, r)
	return w
}

func token(t *testing.T, a *madeAdmin, scopes ...control.TokenScope) AddedToken {
	t.Helper()
	c := a.Direct()
	defer c.Close()
	return programs.Got(c.AddToken(t.Context(), AddToken{Name: "a program", Scopes: scopes}))(t)
}

// Weakness: an interface for programs that takes a browser's word, or lets a token do more than
// it was made for. Checked: no route answers without a token, with one that may something else,
// one that ended, or to a page of any origin; none allows an origin; and there is none that
// makes operators, tokens, accounts, invitations, passkeys or clients.
func TestAPIRefuses(t *testing.T) {
	t.Parallel()
	a := newAdmin(t)
	read, suspend := token(t, a, control.ScopeRead), token(t, a, control.ScopeSuspend)
	const act = `{"kind":"domain","id":"evil.example","reason":"spam"}`
	reads := []string{"accounts", "computers", "usage", "nodes", "limits", "mails/failed", "mails/waiting", "clients", "suspensions", "audit"}
	type try struct {
		name, method, path, token, body string
		header                          []string
		want                            int
	}
	var tries []try
	for _, list := range reads {
		path := APIPath + list
		tries = append(tries,
			try{"its own token", "GET", path, read.Token, "", nil, 200},
			try{"no token", "GET", path, "", "", nil, 401},
			try{"another's secret", "GET", path, "pla_" + read.ID + "." + suspend.Token[len(suspend.Token)-43:], "", nil, 401},
			try{"a token for something else", "GET", path, suspend.Token, "", nil, 403},
			try{"a page", "GET", path, read.Token, "", []string{"Origin", "https://control.porch.test"}, 403},
			try{"a page's question", "OPTIONS", path, "", "", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "GET"}, 404},
			try{"a cookie and no token", "GET", path, "", "", []string{"Cookie", "a=" + read.Token}, 401},
			try{"a token in the address", "GET", path + "?token=" + read.Token, "", "", nil, 401},
			try{"Basic", "GET", path, "", "", []string{"Authorization", "Basic " + read.Token}, 401},
		)
	}
	for _, path := range []string{"suspensions", "suspensions/end"} {
		tries = append(tries,
			try{"a token that reads", "POST", APIPath + path, read.Token, act, nil, 403},
			try{"no token", "POST", APIPath + path, "", act, nil, 401},
			try{"a page", "POST", APIPath + path, suspend.Token, act, []string{"Origin", "null"}, 403},
			try{"a form", "POST", APIPath + path, suspend.Token, act, []string{"Content-Type", "text/plain"}, 400},
			try{"its own token", "POST", APIPath + path, suspend.Token, act, nil, 200},
		)
	}
	for _, path := range []string{"operators", "tokens", "accounts", "clients", "keys", "keys/now", "line", "invitations", "passkeys", "client-hosts", "accounts/x@example.net/recover"} {
		tries = append(tries, try{"more than there is", "POST", APIPath + path, suspend.Token, `{}`, nil, 404})
	}
	for _, path := range []string{"backup", "outbox", "keys", "operators", "tokens", "../backup", "ca", ""} {
		tries = append(tries, try{"more than there is", "GET", APIPath + path, read.Token, "", nil, 404})
	}
	for _, try := range tries {
		w := asks(t, a, try.method, try.path, try.token, try.body, try.header...)
		if w.Code != try.want && !(try.path == APIPath+"../backup" && w.Code == http.StatusTemporaryRedirect) {
			t.Errorf("%s: %s %s: %d %s", try.name, try.method, try.path, w.Code, w.Body)
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s %s: %s", try.name, try.method, try.path, name)
			}
		}
		if w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s may be kept by caches", try.method, try.path)
		}
	}
}

// What a token does is done as itself, is kept by its id, and its reading once an hour.
func TestAPIActs(t *testing.T) {
	t.Parallel()
	a := newAdmin(t)
	now := time.Now()
	a.Admin.cfg.Now = func() time.Time { return now }
	program := token(t, a, control.ScopeRead, control.ScopeSuspend)
	account := programs.Got(a.cfg.Accounts.Ensure(t.Context(), "lena@example.com"))(t)
	w := asks(t, a, "POST", APIPath+"suspensions", program.Token, `{"kind":"account","id":"lena@example.com","reason":"Complaint 2211"}`)
	var done control.Suspension
	if err := json.Unmarshal(w.Body.Bytes(), &done); err != nil || w.Code != 200 || done.By != "token:"+program.ID || done.ID != account.ID {
		t.Fatalf("suspending: %d %s", w.Code, w.Body)
	}
	var page control.Page[control.Account]
	for range 3 {
		w = asks(t, a, "GET", APIPath+"accounts?prefix=LENA&limit=1", program.Token, "")
	}
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Rows) != 1 || page.Rows[0].Suspended.IsZero() {
		t.Errorf("searching: %d %s", w.Code, w.Body)
	}
	var detail control.AccountDetail
	w = asks(t, a, "GET", APIPath+"accounts/"+url.PathEscape("lena@example.com"), program.Token, "")
	if err := json.Unmarshal(w.Body.Bytes(), &detail); err != nil || len(detail.Suspensions) != 1 || detail.Suspensions[0].Reason != "Complaint 2211" {
		t.Errorf("one account: %d %s", w.Code, w.Body)
	}
	for _, query := range []string{"limit=0", "limit=201", "limit=x", "by=app", "sort=1", "prefix=a&prefix=b", "%zz", "prefix=%00"} {
		if w := asks(t, a, "GET", APIPath+"accounts?"+query, program.Token, ""); w.Code != 400 {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	now = now.Add(readNoted)
	asks(t, a, "GET", APIPath+"accounts", program.Token, "")
	reader := token(t, a, control.ScopeRead)
	if w := asks(t, a, "POST", APIPath+"suspensions", reader.Token, `{"kind":"account","id":"lena@example.com","reason":"x"}`, "Content-Type", "application/json; charset=utf-8"); w.Code != 403 {
		t.Errorf("a token that reads suspends: %d %s", w.Code, w.Body)
	}
	for _, id := range []string{"%00", "%FF", strings.Repeat("a", 5000), "..%2F..", strings.Repeat("a", 600)} {
		for _, list := range []string{"accounts/", "computers/"} {
			if w := asks(t, a, "GET", APIPath+list+id, reader.Token, ""); w.Code != 404 {
				t.Errorf("%s%.20s: %d %s", list, id, w.Code, w.Body)
			}
		}
	}
	programs.Must(t, a.FlushAudit(t.Context()))
	var kept, refused []string
	programs.Must(t, audit.List(t.Context(), a.cfg.Store, func(row audit.Row) error {
		if row.By == "token:"+reader.ID && strings.HasPrefix(row.What, "POST") {
			refused = append(refused, row.What)
		}
		if row.By == "token:"+program.ID {
			kept = append(kept, row.Kind+" "+row.What)
		}
		return nil
	}))
	want := []string{
		"operator POST /admin/api/suspensions", "operator GET /admin/api/accounts",
		"operator GET /admin/api/accounts/{id}", "operator GET /admin/api/accounts, refused", "operator GET /admin/api/accounts",
	}
	if !slices.Equal(kept, want) {
		t.Errorf("kept is %q", kept)
	}
	if len(refused) != 1 || refused[0] != "POST /admin/api/suspensions, refused" {
		t.Errorf("of what a token may not do is kept %q", refused)
	}
	c := a.Direct()
	defer c.Close()
	newest := programs.Got(Listed(t.Context(), c, auditRows, control.Query{Limit: 2}))(t)
	if len(newest.Rows) != 2 || newest.Rows[0].Seq != newest.Rows[1].Seq+1 || newest.Next == "" {
		t.Errorf("the newest rows are %+v", newest)
	}
	var n int
	for q := (control.Query{Limit: 2}); ; n++ {
		page := programs.Got(Listed(t.Context(), c, auditRows, q))(t)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if n != 4 {
		t.Errorf("%d pages of the audit log follow the first", n)
	}
	programs.Got(c.RemoveToken(t.Context(), program.ID))(t)
	if w := asks(t, a, "GET", APIPath+"accounts", program.Token, ""); w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("a removed token: %d %v", w.Code, w.Header())
	}
	// Of what goes wrong here a program is told nothing.
	again := token(t, a, control.ScopeRead)
	programs.Must(t, a.cfg.Store.Close())
	if w := asks(t, a, "GET", APIPath+"accounts", again.Token, ""); w.Code != 503 || !strings.Contains(w.Body.String(), controlapi.CodeUnavailable) || strings.Contains(w.Body.String(), "kv:") {
		t.Errorf("a closed store: %d %s", w.Code, w.Body)
	}
}

// Every question of programs is in the OpenAPI document, and nothing else is.
func TestEveryQuestionIsDescribed(t *testing.T) {
	t.Parallel()
	a := newAdmin(t)
	routes := []string{"POST /admin/api/suspensions", "POST /admin/api/suspensions/end"}
	for _, rt := range a.overviewRoutes("/admin/api") {
		routes = append(routes, rt.method+" "+rt.path)
	}
	slices.Sort(routes)
	if described := programs.Got(openapi.Admin())(t).Operations(); !slices.Equal(routes, described) {
		t.Errorf("routes:\n%s\ndescribed:\n%s", strings.Join(routes, "\n"), strings.Join(described, "\n"))
	}
}

// auditRows is the list that programs read by a token, and the command line in another form.
var auditRows = Listing[audit.Row]{"/overview/audit"}

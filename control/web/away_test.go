package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// needNoStore are the routes that are answered while the database is away: nothing that
// they say is of anybody.
var needNoStore = map[string]bool{
	"GET /{$}":                            true, // leads to /account
	"GET /signin/check":                   true, // says what the browser's own cookie says
	"GET /about":                          true,
	"GET /signin/recovery":                true, // names nobody
	"POST /signin/passkey/begin":          true, // names nobody
	"GET /assets/{file}":                  true,
	"OPTIONS " + controlapi.PathToken:     true,
	"OPTIONS " + controlapi.PathRevoke:    true,
	"GET " + controlapi.PathPublicKey:     true, // checks tokens, and opens nothing
	"OPTIONS " + controlapi.PathPublicKey: true,
	"GET " + controlapi.PathDiscovery:     true,
	"GET " + controlapi.PathOpenID:        true,
	"GET " + controlapi.PathKeySet:        true,
	"OPTIONS " + controlapi.PathKeySet:    true,
	"OPTIONS " + controlapi.PathDiscovery: true,
	"GET /healthz":                        true,

	// There is no provider here; TestProviderNeedsTheStore has one.
	"GET /signin/with/{name}":         true,
	"GET /signin/with/{name}/back":    true,
	"GET /signin/with/{name}/prove":   true,
	"POST /signin/with/{name}/prove":  true,
	"GET /signin/with/{name}/bind":    true,
	"POST /signin/with/{name}/bind":   true,
	"POST /signin/with/{name}/logout": true,

	"GET /.well-known/security.txt": true,
	"GET /install/{file}":           true,
}

// answeredWithin is far longer than any of them may take: the store gives up after the
// patience below, and a route after its own bound of seconds.
const answeredWithin = 30 * time.Second

var formOfPasswords = regexp.MustCompile(`name="form" value="([^"]+)"`)

// called is what a test sends to a route: a form or JSON, as somebody.
type called struct {
	path   string // empty for the route's
	fields []string
	json   any
	as     *browser // empty for a signed-in one
}

// TestDatabaseAway has everybody ask for everything while PostgreSQL is stopped: each
// route of the table, so that a new one is among them, as somebody who would be let in.
// All say so, soon; none answers from what it remembers; and nothing was changed. When the
// database is back, so are they.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	server := programs.Got(pgtest.Start(pgtest.Options{}))(t)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	store := programs.Got(kv.Open(t.Context(), server.Database(t), kv.Options{Patience: 300 * time.Millisecond}))(t)
	t.Cleanup(func() { store.Close() })
	r := newRigOn(t, store)
	made := time.Now()
	b, calls := everyCall(t, r)
	routes := newHandler(r.svc, Config{}).routes
	routes = append(routes, route{"OPTIONS", controlapi.PathToken, tierPublic, nil}, route{"OPTIONS", controlapi.PathRevoke, tierPublic, nil})
	before := rowsOf(t, store)
	programs.Must(t, server.Shutdown())
	t.Run("away", func(t *testing.T) {
		for _, rt := range routes {
			name := nameOf(rt)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := b.call(t, rt, calls[name])
				if needNoStore[name] {
					if a.StatusCode >= 500 {
						t.Errorf("status %d, and it needs no database: %s", a.StatusCode, a.body)
					}
					return
				}
				if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || !strings.Contains(a.body, "cannot get at its data just now") {
					t.Errorf("status %d, Retry-After %q, to %q: %s", a.StatusCode, a.Header.Get("Retry-After"), a.Header.Get("Location"), a.body)
				}
				if len(a.Cookies()) > 0 {
					t.Errorf("it sets %v", a.Cookies())
				}
			})
		}
	})
	programs.Must(t, server.StartAgain())
	programs.Eventually(t, "the database is found again", func() bool {
		return store.View(t.Context(), func(tx kv.Tx) error { _, err := tx.Scan("", "", 1); return err }) == nil
	})
	after := rowsOf(t, store)
	if time.Since(made) > 20*time.Second { // a visitor's code ends by itself after a minute
		aVisit := func(row string) bool { return strings.HasPrefix(row, "visit/") }
		after, before = slices.DeleteFunc(after, aVisit), slices.DeleteFunc(before, aVisit)
	}
	if !slices.Equal(after, before) {
		t.Errorf("rows were changed:\n%s\n\nbefore:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	for _, rt := range routes {
		name := nameOf(rt)
		if a := b.call(t, rt, calls[name]); a.StatusCode >= 500 {
			t.Errorf("%s with the database back: status %d: %s", name, a.StatusCode, a.body)
		}
	}
}

func nameOf(rt route) string {
	if rt.method == "" { // answers every method itself
		return "POST " + rt.path
	}
	return rt.method + " " + rt.path
}

// everyCall is a signed-in browser, and what is to be said to the routes that look at
// what they are sent before they look at who sends it, or change most.
func everyCall(t *testing.T, r *rig) (*browser, map[string]called) {
	t.Helper()
	r.knocking(controlapi.KnocksFromEverybody)
	c := r.remote(0)
	b, tokens := c.granted()
	bob := r.member("bob@example.com", "app1")
	api := r.client()
	visit := must(url.Parse(b.get(visitPath()).to(t))).Query().Get("code")
	invited := must(api.Invite(t.Context(), controlapi.Invite{Email: "carol@example.com", Apps: []string{"app1"}}))
	link := tokenOf(t, r.invitations("carol@example.com", 1))
	named := must(url.Parse(must(api.InvitationLink(t.Context(), controlapi.LinkWanted{AccountID: invited.AccountID})).URL)).Path
	door := doorOf("app1", "notes")
	asks, begun := r.ask(), r.browser()
	begun.post("/signin", "email", "dora@example.com").to(t)
	begunNamed := r.browser()
	begunNamed.post(named + "/mail").to(t)
	r.signedIn("ingrid@example.com").post("/knock", door...)
	b.http.Timeout = answeredWithin
	form := formOfPasswords.FindStringSubmatch(b.get(controlapi.PathPasswordPages).want(t, http.StatusOK).body)
	if form == nil {
		t.Fatal("the page has no form for an app password")
	}
	made := must(api.MakePassword(t.Context(), controlapi.MakePassword{App: "app1", Name: "phone"}))
	grants := must(api.Grants(t.Context()))
	key, touching := b.passkey(), r.browser()
	touched := string(key.Use(t, touching.begun("/signin/passkey")))
	return b, map[string]called{
		"POST /signin":            {fields: []string{"email", "erin@example.com"}, as: r.browser()},
		"GET /signin/check":       {as: begun},
		"POST /signin/recovery":   {fields: []string{"email", "maya@example.com", "code", "abcdefghijklmnop"}},
		"POST /signin/code":       {fields: []string{"code", "123 456"}, as: begun},
		"GET /signin/link":        {path: "/signin/link?token=" + link},
		"POST /signin/link":       {fields: []string{"token", link}},
		"GET /invitation":         {path: "/invitation?token=" + link},
		"POST /invitation":        {fields: []string{"token", link}},
		"GET /i/{name}":           {path: named},
		"POST /i/{name}":          {path: named},
		"POST /i/{name}/mail":     {path: named + "/mail", as: r.browser()},
		"POST /i/{name}/code":     {path: named + "/code", fields: []string{"code", "123 456"}, as: begunNamed},
		"GET /visit":              {path: visitPath()},
		"GET /knock":              {path: knockPage("app1", "notes")},
		"POST /knock":             {fields: door},
		"POST /knock/accept":      {fields: door},
		"GET /oauth/authorize":    {path: c.authorizePath()},
		"POST /oauth/authorize":   {path: c.authorizePath(), fields: []string{"decision", "allow", "computer", "maya"}},
		"POST /oauth/revoke":      {fields: []string{"token", tokens.AccessToken, "client_id", c.client.ID, "client_secret", c.config.ClientSecret}},
		"POST /oauth/token":       {fields: []string{"grant_type", "refresh_token", "refresh_token", tokens.RefreshToken, "client_id", c.client.ID, "client_secret", c.config.ClientSecret}},
		"POST /account/passwords": {fields: []string{"form", form[1], "computer", "maya", "app", "app1", "name", "tablet"}},
		"POST /signin/passkey":    {fields: []string{"answer", touched}, as: touching},
		"GET /device":             {path: "/device?code=" + asks.UserCode},
		"POST /device":            {fields: []string{"code", asks.UserCode, "name", "study", "decision", "allow"}},
		"GET /device/done":        {path: "/device/done?computer=maya"},
		"GET /assets/{file}":      {path: assetOf(t, b)},
		"GET /account/computer":   {path: "/account/computer?name=maya"},
		"POST /account/computer":  {fields: []string{"name", "maya", "what", "disconnect"}},
		"GET /account/leave":      {path: "/account/leave?name=maya"},
		"POST /account/leave":     {fields: []string{"name", "maya"}},

		"POST /v1/enrol":              {json: controlapi.EnrolRequest{Machine: "den", Platform: "linux"}},
		"POST /v1/enrol/token":        {json: controlapi.EnrolPoll{DeviceCode: asks.DeviceCode}},
		"PUT /v1/apps":                {json: controlapi.Apps{Apps: []controlapi.App{}}},
		"POST /v1/visits":             {json: controlapi.Redeem{Code: visit, CodeVerifier: verifier, RedirectURI: callback}},
		"POST /v1/people/invite":      {json: controlapi.Invite{Email: "frank@example.com", Apps: []string{"app1"}}},
		"POST /v1/people/invitations": {json: controlapi.Invitations{Emails: []string{"gina@example.com"}, Apps: []string{"app1"}}},
		"POST /v1/people/link":        {json: controlapi.LinkWanted{AccountID: invited.AccountID}},
		"POST /v1/people/grant":       {json: controlapi.SetAccess{AccountID: bob.AccountID, App: "app1"}},
		"POST /v1/people/revoke":      {json: controlapi.Remove{AccountID: bob.AccountID}},
		"POST /v1/knocks/answer":      {json: controlapi.AnswerKnock{ID: r.asking()[0].ID, Answer: controlapi.KnockNo}},
		"POST /v1/grants/revoke":      {json: controlapi.RevokeGrant{ID: grants[0].ID}},
		"POST /v1/domains":            {json: controlapi.AddDomain{Name: "notes.maya.test", AppID: "app1"}},
		"POST /v1/domains/look":       {json: controlapi.NamedDomain{Name: "own.maya.test"}},
		"POST /v1/domains/remove":     {json: controlapi.NamedDomain{Name: "own.maya.test"}},
		"PUT /v1/challenges":          {json: controlapi.Challenges{Values: []string{}}},
		"POST /v1/passwords":          {json: controlapi.MakePassword{App: "app1", Name: "tablet"}},
		"POST /v1/passwords/revoke":   {json: controlapi.RevokePassword{ID: made.ID}},
	}
}

// assetOf is the address of an asset that pages use.
func assetOf(t *testing.T, b *browser) string {
	t.Helper()
	_, after, ok := strings.Cut(b.get("/about").want(t, http.StatusOK).body, `"/assets/`)
	file, _, _ := strings.Cut(after, `"`)
	if !ok {
		t.Fatal("the page has no assets")
	}
	return "/assets/" + file
}

// call asks a route for what it is for.
func (b *browser) call(t *testing.T, rt route, c called) answer {
	t.Helper()
	if c.as != nil {
		b = c.as
	}
	path := c.path
	if path == "" {
		path = strings.ReplaceAll(rt.path, "{$}", "")
	}
	method, _, _ := strings.Cut(nameOf(rt), " ")
	var req *http.Request
	switch {
	case rt.tier == tierDevice:
		body := programs.Got(json.Marshal(c.json))(t)
		req = b.request(method, path, strings.NewReader(string(body)))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+b.owner.Credential)
		req.Header.Set(controlapi.HeaderProtocol, controlapi.Protocol)
	case method == http.MethodPost:
		form := url.Values{}
		for i := 0; i < len(c.fields); i += 2 {
			form.Set(c.fields[i], c.fields[i+1])
		}
		req = b.request(method, path, strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if rt.tier == tierPage {
			req.Header.Set("Sec-Fetch-Site", "same-origin")
			req.Header.Set("Origin", authURL)
		}
	default:
		req = b.request(method, path, nil)
	}
	return b.do(req)
}

// rowsOf are the rows of a store, but for when agents were last there.
func rowsOf(t *testing.T, store kv.Store) (rows []string) {
	t.Helper()
	err := store.Dump(t.Context(), func(r kv.Record) error {
		if !strings.HasPrefix(r.Key, "computer-seen/") {
			rows = append(rows, r.Key+" "+string(r.Value))
		}
		return nil
	})
	programs.Must(t, err)
	return rows
}

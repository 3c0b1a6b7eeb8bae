package web

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// rows are all rows of the store, budgets and times of last use aside.
func (r *rig) rows() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	err := r.store.View(r.t.Context(), func(tx kv.Tx) error {
		after := ""
		for {
			items, err := tx.Scan("", after, 256)
			if err != nil || len(items) == 0 {
				return err
			}
			for _, it := range items {
				if after = it.Key; !strings.HasPrefix(it.Key, "budget/") && !strings.HasPrefix(it.Key, "computer-seen/") {
					out[it.Key] = string(it.Value)
				}
			}
		}
	})
	programs.Must(r.t, err)
	return out
}

// unchanged fails when something was written since before.
func (r *rig) unchanged(what string, before map[string]string) {
	r.t.Helper()
	after := r.rows()
	for key, value := range after {
		if before[key] != value {
			r.t.Errorf("%s wrote %s: %s", what, key, value)
		}
		delete(before, key)
	}
	for key := range before {
		r.t.Errorf("%s deleted %s", what, key)
	}
}

// Every page of the account by GET, with all that a form could send, changes
// nothing.
func TestGettingChangesNothing(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	r.member(invited, "app1")
	started := r.ask()
	b := r.signedIn(invited)
	owner := r.browser()
	owner.signIn("maya@example.com", "")
	before := r.rows()
	for _, path := range []string{
		"/account", "/account/leave?computer=maya", "/account/computer?computer=maya&decision=remove",
		"/account/sessions/end?others=yes", "/account/grants/revoke?grant=x", "/signout?everywhere=yes",
		"/account/passwords", "/account/passwords?computer=maya&app=app1&name=x&form=" + strings.Repeat("a", 26), "/account/passwords/revoke?all=yes",
		"/device?code=" + started.UserCode + "&name=study&decision=allow", "/device/done?computer=maya", "/signin", "/about",
	} {
		for _, who := range []*browser{b, owner} {
			who.get(path)
			who.do(who.request(http.MethodHead, path, nil))
		}
	}
	r.unchanged("reading", before)
}

func TestDisconnectAndRemoveOnTheDashboard(t *testing.T) {
	t.Parallel()
	var ended endings
	r := newRig(t, ended.hear)
	r.member(invited, "app1")
	b := r.signedIn("maya@example.com")
	page := b.get("/account/computer?computer=maya").want(t, http.StatusOK)
	goldenPage(t, "account-remove", page.body)
	b.get("/account/computer?computer=olga").want(t, http.StatusNotFound)
	before := r.rows()
	b.post("/account/computer", "computer", "maya").want(t, http.StatusBadRequest)
	b.post("/account/computer", "computer", "olga", "decision", "remove").want(t, http.StatusNotFound)
	r.unchanged("a form that was not ours", before)

	if to := b.post("/account/computer", "computer", "maya", "decision", "disconnect").to(t); to != "/account" {
		t.Errorf("led to %s", to)
	}
	_, err := r.client().People(t.Context())
	wantError(t, err, controlapi.CodeUnauthorized)
	if gone := ended.all(); !slices.Equal(gone, []string{r.owner.Computer.ID}) {
		t.Errorf("told of %v", gone)
	}
	if page := b.get("/account").want(t, http.StatusOK); !strings.Contains(page.body, "the name is kept for you") {
		t.Error("the account does not say that the name is kept")
	}
	b.post("/account/computer", "computer", "maya", "decision", "remove").to(t)
	if page := b.get("/account").want(t, http.StatusOK); strings.Contains(page.body, "maya.localhost") {
		t.Error("the computer is still there")
	}
	// The name is still her own, and nobody comes along with it.
	e := programs.Got(r.svc.Computers.Ensure(t.Context(), "maya@example.com", "maya"))(t)
	if people, err := r.svc.People.List(t.Context(), e.Computer.ID); err != nil || len(people) != 1 {
		t.Errorf("its people are %+v, %v", people, err)
	}
}

// A member leaves: their visits end, the agent hears of it at once, and their
// owner sees it.
func TestLeaveOnTheDashboard(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	p := r.member(invited, "app1", "app2")
	b := r.signedIn(invited)
	b.get(visitPath()).to(t)
	page := b.get("/account").want(t, http.StatusOK)
	for _, want := range []string{"Shared by maya@example.com", "Notes", "https://photos.maya.localhost:8443/", "/account/leave?computer=maya"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the account does not say %q", want)
		}
	}
	goldenPage(t, "account-leave", b.get("/account/leave?computer=maya").want(t, http.StatusOK).body)
	_, next := r.waitForNext()
	b.post("/account/leave", "computer", "maya").to(t)
	if s := <-next; !slices.ContainsFunc(s.People, func(q controlapi.Person) bool {
		return q.AccountID == p.AccountID && q.Status == controlapi.PersonRemoved
	}) {
		t.Errorf("the agent hears %+v", s.People)
	}
	b.get(visitPath()).want(t, http.StatusForbidden)
	b.post("/account/leave", "computer", "maya").want(t, http.StatusNotFound)
	b.get("/account/leave?computer=maya").want(t, http.StatusNotFound)

	owner := r.signedIn("maya@example.com")
	owner.get("/account/leave?computer=maya").want(t, http.StatusNotFound)
	owner.post("/account/leave", "computer", "maya").want(t, http.StatusForbidden)
}

// Weakness: whoever was invited and signed in without the mail's link read "Nothing yet".
// Checked: the account of the person invited, and no other, names the computer, who
// invites and the invitation's page, in both languages, until it is accepted or taken
// back; and no app before the click.
func TestOpenInvitationsOnTheDashboard(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	r.member("carol@example.com", "app1")
	path := strings.TrimPrefix(r.inviteAll(invited)[0].Link.URL, authURL)
	b, carol := r.browser(), r.browser()
	b.signIn(invited, "")
	carol.signIn("carol@example.com", "")
	page := b.get("/account").want(t, http.StatusOK)
	goldenPage(t, "account-invited", page.body)
	for _, hidden := range []string{"Nothing yet", "Photos", "Leave"} {
		if strings.Contains(page.body, hidden) {
			t.Errorf("the account says %q", hidden)
		}
	}
	if !strings.Contains(page.body, path) {
		t.Errorf("the account does not lead to %s", path)
	}
	german := b.request(http.MethodGet, "/account", nil)
	german.Header.Set("Accept-Language", "de")
	if page := b.do(german).want(t, http.StatusOK); !strings.Contains(page.body, "lädt Sie ein") || !strings.Contains(page.body, ">Zur Einladung<") {
		t.Errorf("in German: %s", page.body)
	}
	owner := r.signedIn("maya@example.com")
	for _, other := range []*browser{carol, owner} {
		if body := other.get("/account").want(t, http.StatusOK).body; strings.Contains(body, control.PathInvitationName) || strings.Contains(body, invited) {
			t.Errorf("another account shows it: %s", body)
		}
	}

	b.post(path).to(t)
	if body := b.get("/account").want(t, http.StatusOK).body; strings.Contains(body, control.PathInvitationName) || !strings.Contains(body, "Photos") {
		t.Errorf("accepted: %s", body)
	}
	made := r.inviteAll("dora@example.com")
	must(r.client().Remove(t.Context(), controlapi.Remove{AccountID: made[0].Person.AccountID}))
	dora := r.signedIn("dora@example.com")
	if body := dora.get("/account").want(t, http.StatusOK).body; strings.Contains(body, control.PathInvitationName) || !strings.Contains(body, "Nothing yet") {
		t.Errorf("when it was taken back: %s", body)
	}
}

var sessionField = regexp.MustCompile(`name="session" value="([a-z0-9]+)"`)

func TestSignOutOtherBrowsers(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	r.member(invited, "app1")
	b, second, third := r.browser(), r.browser(), r.browser()
	for n, who := range []*browser{b, second, third} {
		who.post("/signin", "email", invited).to(t)
		who.post("/signin/link", "token", tokenOf(t, r.mails(invited, n+1))).to(t)
	}
	stranger := r.signedIn("maya@example.com")

	page := b.get("/account").want(t, http.StatusOK)
	ids := sessionField.FindAllStringSubmatch(page.body, -1)
	if len(ids) != 2 || strings.Count(page.body, "This browser") != 1 {
		t.Fatalf("the sessions are\n%s", page.body)
	}
	stranger.post("/account/sessions/end", "session", ids[0][1]).to(t)
	if got := len(sessionField.FindAllString(b.get("/account").body, -1)); got != 2 {
		t.Fatalf("somebody else signed one out; %d are left", got)
	}
	b.post("/account/sessions/end", "session", ids[0][1]).to(t)
	if got := len(sessionField.FindAllString(b.get("/account").want(t, http.StatusOK).body, -1)); got != 1 {
		t.Errorf("%d others are left", got)
	}
	has, next := r.waitForNext()
	b.post("/account/sessions/end", "others", "yes").to(t)
	b.get("/account").want(t, http.StatusOK)
	for _, who := range []*browser{second, third} {
		if to := who.get("/account").to(t); !strings.HasPrefix(to, "/signin") {
			t.Errorf("another browser gets %s", to)
		}
	}
	if after := <-next; after.err != nil || after.Version == has.Version {
		t.Errorf("the agent hears %+v", after)
	}
}

// Who is signed in only by an invitation, or not at all, has none of these
// pages, and their forms do nothing.
func TestAccountPagesWantAFullSignIn(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	started := r.ask()
	r.invite("app1")
	limited := r.browser()
	limited.accept(1)
	for name, b := range map[string]*browser{"an invitation's": limited, "nobody's": r.browser()} {
		before := r.rows()
		for _, path := range []string{"/account", "/account/leave?computer=maya", "/account/computer?computer=maya", "/account/passwords", "/device", "/device/done"} {
			if to := b.get(path).to(t); !strings.HasPrefix(to, "/signin?return=") {
				t.Errorf("%s %s leads to %s", name, path, to)
			}
		}
		for path, fields := range map[string][]string{
			"/account/leave":        {"computer", "maya"},
			"/account/computer":     {"computer", "maya", "decision", "remove"},
			"/account/sessions/end": {"others", "yes"},
			"/device":               {"code", started.UserCode, "name", "study", "decision", "allow"},
		} {
			if to := b.post(path, fields...).to(t); !strings.HasPrefix(to, "/signin?return=") {
				t.Errorf("%s %s leads to %s", name, path, to)
			}
		}
		r.unchanged(name, before)
	}
}

// Forms that no page of ours sends are refused with a page, and leave nothing.
func TestHostileForms(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	r.member(invited, "app1")
	b := r.signedIn("maya@example.com")
	const kind = "application/x-www-form-urlencoded"
	for _, path := range []string{
		"/signin", "/signin/code", "/signin/link", "/invitation", "/signout", "/device",
		"/account/leave", "/account/computer", "/account/sessions/end", "/account/grants/revoke",
		"/account/passwords", "/account/passwords/revoke",
	} {
		for name, c := range map[string]struct {
			kind, body, site string
			want             int
		}{
			"a field twice":   {kind, "code=1&code=2&email=a@example.com&email=b@example.com", "same-origin", http.StatusBadRequest},
			"too long":        {kind, "email=" + strings.Repeat("a", maxForm+1), "same-origin", http.StatusBadRequest},
			"JSON":            {"application/json", `{"email": "maya@example.com"}`, "same-origin", http.StatusBadRequest},
			"no type":         {"", "email=maya@example.com", "same-origin", http.StatusBadRequest},
			"multipart":       {"multipart/form-data; boundary=x", "--x--", "same-origin", http.StatusBadRequest},
			"a bad escape":    {kind, "email=%zz", "same-origin", http.StatusBadRequest},
			"another site's":  {kind, "everywhere=yes&others=yes", "cross-site", http.StatusForbidden},
			"a sibling app's": {kind, "everywhere=yes&others=yes", "same-site", http.StatusForbidden},
		} {
			before := r.rows()
			req := b.request(http.MethodPost, path, strings.NewReader(c.body))
			req.Header.Set("Sec-Fetch-Site", c.site)
			if c.kind != "" {
				req.Header.Set("Content-Type", c.kind)
			}
			a := b.do(req)
			if a.StatusCode != c.want || !strings.Contains(a.body, "<h1>") {
				t.Errorf("%s to %s: %s\n%s", name, path, a.Status, a.body)
			}
			r.unchanged(name+" to "+path, before)
		}
	}
	b.get("/account").want(t, http.StatusOK)
}

// Addresses that look like somebody's are somebody else's, or nobody's: the
// domain is shown as it is on the wire, and letters outside ASCII before the @
// are refused.
func TestLookAlikeAddresses(t *testing.T) {
	t.Parallel()
	var clock lateClock
	r := peopleRig(t, func(c *control.Config) { c.Now = clock.Now })
	real := r.invite("app1")
	for _, email := range []string{
		"b\u043eb@example.com", "bob\uff20example.com", "bob@example\u3002com.", "\u202ebob@example.com", "bob @example.com", "bob@[127.0.0.1]",
	} {
		_, err := r.client().Invite(t.Context(), controlapi.Invite{Email: email, Apps: []string{"app1"}})
		var e *controlapi.Error
		if err == nil || !errors.As(err, &e) || e.Code != controlapi.CodeInvalid {
			t.Errorf("%q: %v", email, err)
		}
	}
	twin, err := r.client().Invite(t.Context(), controlapi.Invite{Email: "bob@ex\u0430mple.com", Apps: []string{"app2"}})
	if err != nil || twin.AccountID == real.AccountID || !strings.HasPrefix(twin.Email, "bob@xn--") {
		t.Errorf("the twin is %+v, %v", twin, err)
	}
	// What mail servers take for the same domain is the same address.
	for _, email := range []string{"BOB@EXAMPLE.COM", "bob@exam\u200bple.com", "bob@\uff45xample.com"} {
		clock.Add(15 * time.Minute) // three invitations to an address in that time
		same, err := r.client().Invite(t.Context(), controlapi.Invite{Email: email, Apps: []string{"app2"}})
		if err != nil || same.AccountID != real.AccountID || same.Email != invited {
			t.Errorf("%q is %+v, %v", email, same, err)
		}
	}
}

func TestDevicePages(t *testing.T) {
	t.Parallel()
	var clock lateClock
	r := newRig(t, func(c *control.Config) { c.Now = clock.Now })
	b := r.browser()
	b.signIn("maya@example.com", "/device")
	page := b.get("/device").want(t, http.StatusOK)
	goldenPage(t, "device", page.body)
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self';") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", csp)
	}
	started := r.ask(func(e *controlapi.EnrolRequest) {
		e.Machine, e.Apps = `<b>"Maya's" laptop</b>`, []string{"notes"}
	})
	page = b.post("/device", "code", started.UserCode).want(t, http.StatusOK)
	goldenPage(t, "device-confirm", page.body)
	if strings.Contains(page.body, "<b>\"Maya") {
		t.Error("a machine's name is markup")
	}
	for name, want := range map[string]string{"notes": "An app on that computer", "www": "reserved", "A B": "1 to 63 characters"} {
		page := b.post("/device", "code", started.UserCode, "name", name, "decision", "allow").want(t, http.StatusBadRequest)
		if !strings.Contains(unescaped(page.body), want) || !strings.Contains(page.body, `aria-invalid="true"`) || !strings.Contains(unescaped(page.body), `value="`+name+`"`) {
			t.Errorf("%q: %s", name, page.body)
		}
	}
	b.post("/device", "code", started.UserCode, "decision", "perhaps").want(t, http.StatusBadRequest)
	goldenPage(t, "device-replace", b.post("/device", "code", started.UserCode, "name", "maya", "decision", "allow").want(t, http.StatusOK).body)

	// After ten minutes at the page, signing in again is asked for, and leads
	// back with the code.
	clock.Add(control.FreshFor)
	path := "/device?code=" + started.UserCode
	to := b.post("/device", "code", started.UserCode, "name", "study", "decision", "allow").to(t)
	if to != "/signin?return="+url.QueryEscape(path) {
		t.Errorf("led to %s", to)
	}
	page = b.get(to).want(t, http.StatusOK)
	if !strings.Contains(page.body, "to connect a computer") || !strings.Contains(page.body, `value="maya@example.com"`) {
		t.Errorf("the sign-in page is\n%s", page.body)
	}
	if to := b.get("/signin?return=/device%3Fcode=evil").to(t); to != "/account" {
		t.Errorf("a code that is none leads to %s", to)
	}
	b.post("/signin", "email", "maya@example.com", "return", "/device").to(t)
	if to := b.post("/signin/link", "token", tokenOf(t, r.mails("maya@example.com", 2))).to(t); to != "/device" {
		t.Errorf("signing in again led to %s", to)
	}
	page = b.post("/device", "code", "BBBB-BBBB").want(t, http.StatusNotFound)
	goldenPage(t, "device-wrong", page.body)
	for range 4 {
		b.post("/device", "code", "BBBB-BBBB").want(t, http.StatusNotFound)
	}
	if page := b.post("/device", "code", "BBBB-BBBB").want(t, http.StatusTooManyRequests); page.Header.Get("Retry-After") == "" {
		t.Error("it does not say how long to wait")
	}
}

// The page at the end of connecting names a computer to its owner only: nobody is
// led to believe that another's is theirs.
func TestDeviceDoneNamesOnesOwnOnly(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	r.member(invited, "app1")
	for email, names := range map[string]bool{"maya@example.com": true, invited: false} {
		b := r.signedIn(email)
		page := b.get("/device/done?computer=maya").want(t, http.StatusOK)
		if strings.Contains(page.body, "maya.localhost") != names {
			t.Errorf("%s is shown\n%s", email, page.body)
		}
	}
}

// The agent of a computer whose name was another account's is told so.
func TestSyncTellsOfFormerOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	programs.Must(t, r.svc.Accounts.Remove(t.Context(), "maya@example.com"))
	e, err := r.svc.Computers.Ensure(t.Context(), "maya@example.com", "maya") // another account of the same address
	programs.Must(t, err)
	if s := r.first(tells(t, r.svc, e.Credential)); !s.Computer.Former {
		t.Errorf("it is told %+v", s.Computer)
	}
}

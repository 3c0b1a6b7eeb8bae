package local

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: signing in leads wherever the link says. Attack: targets a browser
// could read as another host, and a redirect URI of the attacker's. Checked: the
// visitor ends at this host, and the sign-in service sends nobody elsewhere.
func openRedirect(t *testing.T, s *street) {
	browser := s.browser(t)
	programs.Got(browser.SignIn(t.Context(), s.address, bobEmail, s.mails))(t)
	for _, target := range []string{"//evil.example/", "/%5cevil.example", "/%2f%2fevil.example", "/@evil.example", "/.porchlight/callback?code=x&state=y", "/?next=https://evil.example"} {
		req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodPost, s.address+"/.porchlight/sign-out", nil))(t)
		req.Header.Set("Origin", s.address)
		resp, err := browser.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("signing out: %v, %v", resp, err)
		}
		resp.Body.Close()
		page, err := browser.Open(t.Context(), s.address+target)
		if err != nil || page.URL.Host != s.host {
			t.Errorf("%s led to %+v, %v", target, page, err)
		}
	}
	account := s.account()
	for _, redirect := range []string{"https://evil.example", s.address + ".evil.example", s.address + "@evil.example", "http://" + s.host, "javascript:alert(1)//"} {
		query := url.Values{
			controlapi.ParamComputer: {account.Name}, controlapi.ParamRedirectURI: {redirect + controlapi.CallbackPath}, controlapi.ParamState: {"s"},
			controlapi.ParamCodeChallenge: {strings.Repeat("A", 43)}, controlapi.ParamCodeChallengeMethod: {"S256"},
		}
		page, err := browser.Open(t.Context(), account.AuthURL+controlapi.PathVisit+"?"+query.Encode())
		if err != nil || page.Status != http.StatusBadRequest || !strings.HasPrefix(page.URL.String(), account.AuthURL) {
			t.Errorf("%s: %+v, %v", redirect, page, err)
		}
	}
	s.app.forget()
}

// Weakness: whoever publishes an approved name gets its visitors. Attack:
// another program takes a name over, with another label and port; later the name
// is approved for something new. Checked: the owner is told, and what people were
// given does not pass on to the new app.
func nameTakeover(t *testing.T, s *street) {
	ctx := t.Context()
	publish := func(label string, port int) {
		t.Helper()
		programs.Got(s.open.Publish(ctx, agentapi.PublishRequest{Name: "diary", Label: label, LocalPort: port}))(t)
	}
	// bobMay is whether he may open the app of that name.
	bobMay := func() bool {
		t.Helper()
		memberships := programs.Got(s.controlPlane.Service.People.Memberships(ctx, s.bobID))(t)
		return slices.ContainsFunc(memberships[0].Apps, func(a control.InvitedApp) bool { return strings.HasPrefix(a.Host, "diary.") })
	}
	publish("Diary", s.app.port)
	programs.Got(s.owner.Approve(ctx, "diary"))(t)
	_, err := s.house.owner.SetAccess(ctx, agentapi.AccessRequest{AccountID: s.bobID, App: "Diary", Granted: true})
	if err != nil || !bobMay() {
		t.Fatalf("giving bob the app: %v", err)
	}
	before := len(s.state(t).Notices)
	other := newWiretap(t)
	publish("Bank", other.port)
	if notices := s.state(t).Notices; len(notices) <= before || !slices.ContainsFunc(notices, func(n agentapi.Notice) bool { return strings.Contains(n.Text, "Bank") }) {
		t.Errorf("the owner was told %+v", notices)
	}
	programs.Got(s.owner.Revoke(ctx, "diary"))(t)
	publish("Diary", other.port)
	programs.Got(s.owner.Approve(ctx, "diary"))(t)
	if bobMay() {
		t.Fatal("bob was given the new app")
	}
	page, err := s.bob.Open(ctx, strings.Replace(s.address, "notes.", "diary.", 1))
	if err != nil || page.Status != http.StatusForbidden || len(other.requests()) > 0 {
		t.Errorf("bob at the new app: %+v, %v; it was sent %q", page, err, other.requests())
	}
	programs.Got(s.owner.Revoke(ctx, "diary"))(t)
}

// Weakness: signing in at somebody's app tells its owner who came. Attack: lure
// somebody who is signed in at the service, and is nobody here, to an app.
// Checked: the service shows its own page and makes no code; neither agent nor
// app, and so not the owner, hears of them.
func luredStranger(t *testing.T, s *street) {
	const email = "carol@example.com"
	ctx := t.Context()
	programs.Got(s.controlPlane.Service.Computers.Ensure(ctx, email, "carol"))(t)
	page := programs.Got(s.browser(t).SignIn(ctx, s.address, email, s.mails))(t)
	if page.Status != http.StatusForbidden || !strings.HasPrefix(page.URL.String(), s.account().AuthURL+"/") || strings.Contains(page.Body, "code=") {
		t.Errorf("HTTP %d at %s:\n%s", page.Status, page.URL, page.Body)
	}
	s.untouched(t)
	people, err := s.owner.People(ctx)
	if err != nil || slices.ContainsFunc(people.Members, func(p agentapi.Person) bool { return p.Email == email }) {
		t.Errorf("the owner sees %+v, %v", people, err)
	}
}

// Weakness: names of apps become script on pages of the product. Attack: a label
// that is markup. Checked: the launcher shows it as text, under a policy that
// runs no script at all.
func scriptInNames(t *testing.T, s *street) {
	const label = `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	ctx := t.Context()
	programs.Got(s.open.Publish(ctx, agentapi.PublishRequest{Name: "markup", Label: label, LocalPort: s.app.port}))(t)
	programs.Got(s.owner.Approve(ctx, "markup"))(t)
	account := s.account()
	page, err := s.browser(t).SignIn(ctx, account.URL, account.Email, s.mails)
	if err != nil || page.Status != http.StatusOK {
		t.Fatalf("%+v, %v", page, err)
	}
	own := `<script src="` + account.URL + `/.porchlight/launcher.js" defer></script>` // and nothing else
	if body := strings.Replace(page.Body, own, "", 1); !strings.Contains(body, "&lt;script&gt;alert(1)") || strings.Contains(body, "<script") || strings.Contains(page.Body, "<img") {
		t.Errorf("the launcher:\n%s", page.Body)
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(policy, "script-src "+account.URL+"/.porchlight/launcher.js;") {
		t.Errorf("policy %q", policy)
	}
	programs.Got(s.owner.Revoke(ctx, "markup"))(t)
}

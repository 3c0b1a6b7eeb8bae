package web

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const line = "The pictures from Lisbon are in. <b>Have</b> a look."

// inviteAll invites as the owner's computer does, with a line and the owner's name.
func (r *rig) inviteAll(emails ...string) []controlapi.InvitationMade {
	r.t.Helper()
	made, err := r.client().InviteAll(r.t.Context(), controlapi.Invitations{Emails: emails, Apps: []string{"app2"}, Line: line, Name: "Maya"})
	programs.Must(r.t, err)
	return made.Invitations
}

// codeFor waits for the nth sign-in mail and returns its code.
func (r *rig) codeFor(email string, nth int) string {
	r.t.Helper()
	return codeLine.FindStringSubmatch(r.mails(email, nth).Text)[1]
}

// mailsTo counts the mails to an address.
func (r *rig) mailsTo(email string) int {
	r.t.Helper()
	n := 0
	for _, m := range must(r.outbox.List(r.t.Context(), 200)) {
		if m.To == email {
			n++
		}
	}
	return n
}

// Several addresses are invited at once: each is told of, and the mail has the line
// and the name beside the address.
func TestInviteAll(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		r.putApps(controlapi.App{ID: "app1", Name: "notes", Label: "Notes", Live: true}, controlapi.App{ID: "app2", Name: "photos", Label: "Photos", Live: true})
		made := r.inviteAll(invited, "not an address", "Bob@EXAMPLE.com", "maya@example.com", "lena@example.com\r\nBcc: eve@example.com", "lena@example.com")
		if len(made) != 5 {
			t.Fatalf("%d entries: %+v", len(made), made)
		}
		for i, refused := range []string{"", "does not look like", "owner of the computer", "does not look like", ""} {
			one := made[i]
			if refused != "" {
				if one.Refused == nil || !strings.Contains(one.Refused.Message, refused) || one.Link != nil || one.Person != nil {
					t.Errorf("%q: %+v", one.Email, one)
				}
				continue
			}
			if one.Refused != nil || one.Person.Status != controlapi.PersonPending || !strings.HasPrefix(one.Link.URL, authURL+"/i/") {
				t.Errorf("%q: %+v", one.Email, one)
			}
		}
		m := r.mailsNamed("Maya (", invited, 1)
		if m.Subject != "Maya (maya@example.com) shares Photos with you" || !strings.Contains(m.Text, "Maya wrote:\n> "+line+"\n") {
			t.Errorf("the mail is %s\n%s", m.Subject, m.Text)
		}
		if strings.Contains(m.Text, "/i/") || r.mailsTo("maya@example.com") != 0 || r.mailsTo("lena@example.com") != 1 {
			t.Error("the mails are not those of two invitations")
		}
		c := r.client()
		for what, bad := range map[string]controlapi.Invitations{
			"nobody":         {Apps: []string{"app2"}},
			"too many":       {Emails: strings.Split(strings.Repeat("a@example.com,", 50)+"b@example.com", ","), Apps: []string{"app2"}},
			"no app":         {Emails: []string{"carl@example.com"}},
			"a strange app":  {Emails: []string{"carl@example.com"}, Apps: []string{"app9"}},
			"a link":         {Emails: []string{"carl@example.com"}, Apps: []string{"app2"}, Line: "See www.evil.example"},
			"two lines":      {Emails: []string{"carl@example.com"}, Apps: []string{"app2"}, Line: "a\r\nb"},
			"a long line":    {Emails: []string{"carl@example.com"}, Apps: []string{"app2"}, Line: strings.Repeat("a", 201)},
			"a name with @":  {Emails: []string{"carl@example.com"}, Apps: []string{"app2"}, Name: "bank@example.com"},
			"a bidi name":    {Emails: []string{"carl@example.com"}, Apps: []string{"app2"}, Name: "Maya\u202e"},
			"an end of none": {Emails: []string{"carl@example.com"}, Apps: []string{"app2"}, Until: "tomorrow"},
		} {
			_, err := c.InviteAll(t.Context(), bad)
			t.Log(what)
			wantError(t, err, controlapi.CodeInvalid)
		}
		if r.mailsTo("carl@example.com") != 0 {
			t.Error("a refusal mailed something")
		}
		if _, err := r.svc.Accounts.ByEmail(t.Context(), "carl@example.com"); !control.IsRefusal(err, controlapi.CodeNotFound) {
			t.Errorf("a refusal made an account: %v", err)
		}
	})
}

// The whole way of an invitation's other address: whoever opens it proves the address by
// a code, and one click accepts. Before that it says who invites and nothing else; a
// second browser can do nothing with it, and looking changes nothing.
func TestNamedInvitation(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		r.putApps(controlapi.App{ID: "app1", Name: "notes", Label: "Notes", Live: true}, controlapi.App{ID: "app2", Name: "photos", Label: "Photos", Live: true})
		link := r.inviteAll(invited)[0].Link.URL
		path := strings.TrimPrefix(link, authURL)
		mailed := r.mailsNamed("Maya (", invited, 1).Links[0]
		b := r.browser()
		for range 3 {
			page := b.get(link).want(t, http.StatusOK)
			goldenPage(t, "invitation-named", page.body)
			hidden(t, page.body, mailed)
			b.do(b.request(http.MethodHead, link, nil)).want(t, http.StatusOK)
		}
		if r.mailsTo(invited) != 1 || len(b.http.Jar.Cookies(must(url.Parse(authURL)))) != 0 || r.listed().Status != controlapi.PersonPending {
			t.Error("looking changed something")
		}
		if to := b.post(path).to(t); to != path {
			t.Errorf("accepting without a proof leads to %s", to)
		}
		if to := b.post(path+"/code", "code", "000000").to(t); to != path {
			t.Errorf("a code nobody asked for leads to %s", to)
		}

		if to := b.post(path + "/mail").to(t); to != path {
			t.Errorf("asking for the code leads to %s", to)
		}
		code := r.codeFor(invited, 1)
		page := b.get(path).want(t, http.StatusOK)
		goldenPage(t, "invitation-code", page.body)
		hidden(t, page.body, mailed)
		for _, c := range b.http.Jar.Cookies(must(url.Parse(authURL))) {
			head, _, _ := strings.Cut(c.Value, ".")
			plain, _ := base64.RawURLEncoding.DecodeString(head)
			hidden(t, c.Value+string(plain), mailed)
		}
		// Whoever else has the link, and even the code, has nothing.
		other := r.browser()
		if to := other.post(path+"/code", "code", code).to(t); to != path {
			t.Errorf("the code in another browser leads to %s", to)
		}
		if to := other.post("/signin/code", "code", code).to(t); !strings.HasPrefix(to, "/signin") {
			t.Errorf("the code in another browser leads to %s", to)
		}
		wrong := "111 111"
		if code == wrong {
			wrong = "222 222"
		}
		again := b.get(b.post(path+"/code", "code", wrong).to(t)).want(t, http.StatusOK).body
		if hidden(t, again, mailed); !strings.Contains(again, "That code is not right") {
			t.Errorf("a wrong code: %s", again)
		}
		if to := b.post(path+"/code", "code", code).to(t); to != path {
			t.Errorf("the right code leads to %s", to)
		}

		page = b.get(path).want(t, http.StatusOK)
		goldenPage(t, "invitation-proven", page.body)
		if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "https://*.maya.localhost:8443;") {
			t.Errorf("the redirect to the app would be blocked: %s", csp)
		}
		if r.listed().Status != controlapi.PersonPending {
			t.Error("the code alone accepted")
		}
		if to := b.post(path).to(t); to != "https://photos.maya.localhost:8443/" {
			t.Errorf("accepting leads to %s", to)
		}
		if r.listed().Status != controlapi.PersonActive {
			t.Errorf("accepted is %+v", r.listed())
		}
		if to := b.get(visitPath("app", "app2", "redirect_uri", photosURL)).to(t); !strings.HasPrefix(to, photosURL+"?code=") {
			t.Errorf("the app's bounce leads to %s", to)
		}

		goldenPage(t, "invitation-used-here", b.post(path).want(t, http.StatusNotFound).body)
		goldenPage(t, "invitation-over", other.get(path).want(t, http.StatusNotFound).body)
		goldenPage(t, "invitation-over", other.get(mailed).want(t, http.StatusNotFound).body)
		other.post(path+"/mail").want(t, http.StatusNotFound)
	})
}

// hidden looks for what an invitation's other address shows nobody.
func hidden(t *testing.T, body, mailed string) {
	t.Helper()
	token := must(url.Parse(mailed)).Query().Get("token")
	for _, secret := range []string{invited, "bob@", "example.com\"", "Photos", "photos", "Lisbon", token} {
		if strings.Contains(body, secret) {
			t.Errorf("%q is shown:\n%s", secret, body)
		}
	}
}

// Who is signed in with another address is told so and cannot accept; the same person
// by a session of their own needs no code.
func TestNamedInvitationOfAnother(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	r.member("carol@example.com", "app1")
	r.member(invited, "app1")
	path := strings.TrimPrefix(r.inviteAll(invited)[0].Link.URL, authURL)
	b := r.signedIn("carol@example.com")
	page := b.get(path).want(t, http.StatusOK)
	if !strings.Contains(page.body, "signed in as carol@example.com") || strings.Contains(page.body, invited) || strings.Contains(page.body, "Photos") {
		t.Errorf("carol is shown:\n%s", page.body)
	}
	if to := b.post(path).to(t); to != path {
		t.Errorf("accepting for another leads to %s", to)
	}
	b.post(path + "/mail").to(t)
	if to := b.post(path+"/code", "code", r.codeFor(invited, 1)).to(t); to != path {
		t.Errorf("the code leads to %s", to)
	}
	if body := b.get("/account").want(t, http.StatusOK).body; !strings.Contains(body, invited) || strings.Contains(body, "carol@") {
		t.Error("the browser is not the invited person's")
	}
	again := r.browser()
	again.post("/signin", "email", invited).to(t)
	again.post("/signin/link", "token", tokenOf(t, r.mails(invited, 2))).to(t)
	if to := again.post(path).to(t); to != "https://photos.maya.localhost:8443/" {
		t.Errorf("accepting leads to %s", to)
	}
}

// The mailed code's own link leads back to the invitation.
func TestCodeMailLeadsBack(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	path := strings.TrimPrefix(r.inviteAll(invited)[0].Link.URL, authURL)
	r.browser().post(path + "/mail").to(t)
	phone := r.browser()
	m := r.mails(invited, 1)
	if body := phone.get(m.Links[0]).want(t, http.StatusOK).body; !strings.Contains(body, "to accept an invitation") {
		t.Errorf("the link's page says\n%s", body)
	}
	if to := phone.post("/signin/link", "token", tokenOf(t, m)).to(t); to != path {
		t.Errorf("the link leads to %s", to)
	}
	if to := phone.post(path).to(t); to != "https://photos.maya.localhost:8443/" {
		t.Errorf("accepting leads to %s", to)
	}
}

// Taken back, never there and mistyped are the same page; an ended one says so.
func TestInvitationsThatAreOver(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	r := newRig(t, func(c *control.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	r.putApps(controlapi.App{ID: "app2", Name: "photos", Label: "Photos", Live: true})
	link := r.inviteAll(invited)[0].Link.URL
	mailed := r.mailsNamed("Maya (", invited, 1).Links[0]
	ahead.Store(int64(7 * 24 * time.Hour))
	b := r.browser()
	goldenPage(t, "invitation-ended", b.get(link).want(t, http.StatusNotFound).body)
	goldenPage(t, "invitation-ended", b.get(mailed).want(t, http.StatusNotFound).body)
	b.post(strings.TrimPrefix(link, authURL)+"/mail").want(t, http.StatusNotFound)

	ahead.Store(0)
	programs.Got(r.client().Remove(t.Context(), controlapi.Remove{AccountID: r.listed().AccountID}))(t)
	for _, at := range []string{link, mailed, mailed[:len(mailed)-1], authURL + "/i/aaaa-aaaa-aaaa-aaaa", authURL + "/i/x", authURL + "/i/%2e%2e"} {
		page := b.get(at).want(t, http.StatusNotFound)
		goldenPage(t, "invitation-none", page.body)
	}
	if !strings.Contains(b.do(german(b.request(http.MethodGet, link, nil))).body, "Diese Einladung gilt nicht") {
		t.Error("the page is not in the browser's language")
	}
}

func german(r *http.Request) *http.Request {
	r.Header.Set("Accept-Language", "de")
	return r
}

// The codes spend from the budgets of signing in, and who asks too often is told how
// long to wait, on a page that goes on.
func TestCodesAreBounded(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	path := strings.TrimPrefix(r.inviteAll(invited)[0].Link.URL, authURL)
	b := r.browser()
	for n := range 2 { // of one network in 15 minutes
		b.post(path + "/mail").to(t)
		r.mails(invited, n+1)
	}
	page := b.post(path+"/mail").want(t, http.StatusTooManyRequests)
	if page.Header.Get("Retry-After") == "" || !strings.Contains(page.body, "Several mails were asked for") || !strings.Contains(page.body, "Try again in ") ||
		strings.Contains(page.body, invited) || !strings.Contains(page.body, "Mail me the code") {
		t.Errorf("refused: %s", page.body)
	}
	b.post("/signin", "email", invited).want(t, http.StatusTooManyRequests)
}

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/test/programs"
)

// knocking has the rig's computer take knocks.
func (r *rig) knocking(from controlapi.KnocksFrom) {
	r.t.Helper()
	programs.Must(r.t, r.client().PutApps(r.t.Context(), controlapi.Apps{
		Apps: []controlapi.App{
			{ID: "app1", Name: "notes", Label: "Secret Diary", Live: true}, {ID: "app2", Name: "photos", Label: "Secret Photos", Live: true},
			{ID: "app3", Name: "paused", Label: "Secret Draft", Live: false},
		}, Knocks: from,
	}))
}

// asking are those the owner is told of.
func (r *rig) asking() []controlapi.Knock {
	r.t.Helper()
	return r.snapshot().Knocks
}

// fields of a form about an app of maya's.
func doorOf(app, name string) []string {
	return []string{"computer", "maya", "app", app, "host", name + ".maya.localhost:8443"}
}

func knockPage(app, name string) string {
	f := doorOf(app, name)
	return "/knock?" + url.Values{f[0]: {f[1]}, f[2]: {f[3]}, f[4]: {f[5]}}.Encode()
}

func visitTo(app, name string) string {
	return visitPath("app", app, "redirect_uri", "https://"+name+".maya.localhost:8443/.porchlight/callback")
}

// signedIn is a browser of somebody with an account.
func (r *rig) signedIn(email string) *browser {
	r.t.Helper()
	programs.Got(r.svc.Accounts.Ensure(r.t.Context(), email))(r.t)
	b := r.browser()
	b.signIn(email, "/account")
	return b
}

var reload = regexp.MustCompile(`<meta http-equiv="refresh" content="(\d+); url=([^"]+)">`)

// The whole way, for somebody unknown: refused, asked, waited, let in, accepted, and on
// to the app; in both stores.
func TestKnockTheWholeWay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		r.knocking(controlapi.KnocksFromKnown)
		b := r.signedIn("carla@example.org")
		if a := b.get(visitPath()).want(t, http.StatusForbidden); strings.Contains(a.body, "Ask maya") {
			t.Errorf("a stranger may ask: %s", a.body)
		}
		r.knocking(controlapi.KnocksFromEverybody)
		asks := b.get(visitPath()).want(t, http.StatusForbidden)
		for _, never := range []string{"Secret", "maya@example.com"} {
			if strings.Contains(asks.body, never) {
				t.Errorf("the page has %q: %s", never, asks.body)
			}
		}
		if !strings.Contains(asks.body, "Ask maya to let you in") {
			t.Fatalf("nobody is asked: %s", asks.body)
		}
		for range 2 { // GETs ask nothing
			b.get(knockPage("app1", "notes")).want(t, http.StatusForbidden)
		}
		if len(r.asking()) != 0 {
			t.Fatalf("a page that was opened rang: %+v", r.asking())
		}
		if to := b.post("/knock", doorOf("app1", "notes")...).to(t); to != knockPage("app1", "notes") {
			t.Errorf("asking leads to %s", to)
		}
		waits := b.get(knockPage("app1", "notes")).want(t, http.StatusOK)
		m := reload.FindStringSubmatch(waits.body)
		if m == nil || unescaped(m[2]) != knockPage("app1", "notes") || !strings.Contains(waits.body, "maya has been asked") {
			t.Fatalf("the page does not wait: %s", waits.body)
		}
		b.get(visitPath()).want(t, http.StatusForbidden)
		told := r.asking()
		if len(told) != 1 || told[0].Email != "carla@example.org" || told[0].App != "app1" || told[0].Known {
			t.Fatalf("the owner is told %+v", told)
		}
		p, err := r.client().AnswerKnock(t.Context(), controlapi.AnswerKnock{ID: told[0].ID, Answer: controlapi.KnockYes, Until: controlapi.UntilNever})
		if err != nil || p.Status != controlapi.PersonPending {
			t.Fatalf("%+v, %v", p, err)
		}
		if _, err := r.client().AnswerKnock(t.Context(), controlapi.AnswerKnock{ID: told[0].ID, Answer: controlapi.KnockNo}); !control.IsRefusal(err, controlapi.CodeNotFound) {
			t.Errorf("a second answer: %v", err)
		}
		if a := b.get(knockPage("app1", "notes")).want(t, http.StatusOK); !strings.Contains(a.body, "maya lets you in") || reload.MatchString(a.body) {
			t.Errorf("the page does not tell: %s", a.body)
		}
		other := r.signedIn2(b, "carla@example.org")
		if to := other.post("/knock/accept", doorOf("app1", "notes")...).to(t); to != knockPage("app1", "notes") {
			t.Errorf("accepted in another browser: %s", to)
		}
		if to := b.post("/knock/accept", doorOf("app1", "notes")...).to(t); to != "https://notes.maya.localhost:8443/" {
			t.Errorf("accepting leads to %s", to)
		}
		if to := b.get(knockPage("app1", "notes")).to(t); to != "https://notes.maya.localhost:8443/" {
			t.Errorf("the page that waited leads to %s", to)
		}
		if to := b.get(visitPath()).to(t); !strings.HasPrefix(to, callback+"?") {
			t.Errorf("the visit leads to %s", to)
		}
		if n := len(r.mailsOf("carla@example.org")); n != 2 {
			t.Errorf("%d mails were sent: two sign-ins need two", n)
		}
	})
}

// signedIn2 is another browser of somebody who has had a mail already.
func (r *rig) signedIn2(_ *browser, email string) *browser {
	r.t.Helper()
	b := r.browser()
	b.post("/signin", "email", email).want(r.t, http.StatusSeeOther)
	link := r.mails(email, 2)
	b.post("/signin/link", "token", tokenOf(r.t, link)).want(r.t, http.StatusSeeOther)
	return b
}

func (r *rig) mailsOf(email string) (subjects []string) {
	r.t.Helper()
	for _, m := range must(r.outbox.List(r.t.Context(), 100)) {
		if m.To == email {
			subjects = append(subjects, m.Subject)
		}
	}
	return subjects
}

// Weakness: a page that shows whether the owner said no, listens at all, or has such an
// app tells strangers what the owner does and what there is.
// Checked: refused, muted, ignored, an app that is not live, one that does not exist, and
// a name that does not exist get the same bytes, at once and an hour later, in both stores.
func TestKnocksGetTheSameBytes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		r.knocking(controlapi.KnocksFromEverybody)
		cases := map[string][2]string{
			"refused": {"app1", "notes"}, "muted": {"app1", "notes"}, "ignored": {"app1", "notes"},
			"notlive": {"app3", "paused"}, "missing": {"app9", "nothing"}, "othername": {"app1", "nothing"},
		}
		pages := map[string]*browser{}
		seen := map[string]map[string][]string{} // bytes by moment and page
		look := func(moment, what, page string, a answer) {
			body := a.body
			for old, with := range map[string]string{what + "@example.org": "EMAIL", cases[what][1] + ".maya.localhost": "HOST", url.QueryEscape(what + "@example.org"): "EMAIL"} {
				body = strings.ReplaceAll(body, old, with)
			}
			body = regexp.MustCompile(`(app=|name="app" value=")app\d`).ReplaceAllString(body, "${1}APP")
			body = fmt.Sprint(a.StatusCode, slices.Sorted(maps.Keys(a.Header)), "\n", body)
			if seen[moment+page] == nil {
				seen[moment+page] = map[string][]string{}
			}
			seen[moment+page][body] = append(seen[moment+page][body], what)
		}
		all := func(moment string) {
			for what, c := range cases {
				look(moment, what, "visit", pages[what].get(visitTo(c[0], c[1])))
				look(moment, what, "knock", pages[what].get(knockPage(c[0], c[1])))
			}
		}
		for what := range cases {
			pages[what] = r.signedIn(what + "@example.org")
		}
		all("at first")
		for what, c := range cases {
			look("asking", what, "", pages[what].post("/knock", doorOf(c[0], c[1])...))
		}
		all("asked")
		told := r.asking()
		if len(told) != 3 {
			t.Fatalf("the owner is told %+v", told)
		}
		for _, k := range told {
			answer := map[string]controlapi.KnockAnswer{"refused@example.org": controlapi.KnockNo, "muted@example.org": controlapi.KnockNever}[k.Email]
			if answer != "" {
				must(r.client().AnswerKnock(t.Context(), controlapi.AnswerKnock{ID: k.ID, Answer: answer}))
			}
		}
		all("answered")
		for what, c := range cases {
			look("asking again", what, "", pages[what].post("/knock", doorOf(c[0], c[1])...))
		}
		for moment, bodies := range seen {
			if len(bodies) == 1 {
				continue
			}
			t.Errorf("%s: %d pages", moment, len(bodies))
			for body, whose := range bodies {
				t.Logf("%v:\n%s", whose, body)
			}
		}
		if len(r.asking()) != 1 {
			t.Errorf("the owner is told %+v", r.asking())
		}
	})
}

// Forms from elsewhere, without a session, with fields twice or of another computer are
// refused, and nobody is asked.
func TestKnocksFromElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.knocking(controlapi.KnocksFromEverybody)
	b := r.signedIn("carla@example.org")
	for what, origin := range map[string]string{"an app": "https://notes.maya.localhost:8443", "a stranger": "https://evil.example"} {
		body := strings.NewReader(url.Values{"computer": {"maya"}, "app": {"app1"}, "host": {"notes.maya.localhost:8443"}}.Encode())
		req := b.request(http.MethodPost, "/knock", body)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-site")
		req.Header.Set("Origin", origin)
		if a := b.do(req); a.StatusCode != http.StatusForbidden {
			t.Errorf("a form of %s: %d", what, a.StatusCode)
		}
	}
	b.post("/knock", "computer", "maya", "app", "app1", "host", "notes.other.localhost:8443").want(t, http.StatusBadRequest)
	b.post("/knock", "computer", "maya", "app", "app1").want(t, http.StatusBadRequest)
	anybody := r.browser()
	if to := anybody.post("/knock", doorOf("app1", "notes")...).to(t); !strings.HasPrefix(to, "/signin?return=") {
		t.Errorf("without a session: %s", to)
	}
	if to := anybody.get(knockPage("app1", "notes")).to(t); to != "/signin?return="+url.QueryEscape(knockPage("app1", "notes")) {
		t.Errorf("without a session: %s", to)
	}
	if n := len(r.asking()); n != 0 {
		t.Errorf("%d knocks", n)
	}
	// Signing in leads back.
	if to := anybody.signInAgain("carla@example.org", knockPage("app1", "notes")); to != knockPage("app1", "notes") {
		t.Errorf("signing in leads to %s", to)
	}
}

// signInAgain is signIn of somebody who has had one mail.
func (b *browser) signInAgain(email, returnTo string) string {
	b.t.Helper()
	b.post("/signin", "email", email, "return", returnTo).want(b.t, http.StatusSeeOther)
	return b.post("/signin/link", "token", tokenOf(b.t, b.mails(email, 2))).to(b.t)
}

// Somebody invited who types the address, and signs in there, comes to their invitation
// and by one click into the app.
func TestSigningInLeadsToTheInvitation(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	r.invite("app1")
	b := r.browser()
	b.signIn(invited, "/account")
	to := b.get(visitPath()).to(t)
	if !strings.HasPrefix(to, control.PathInvitationName) {
		t.Fatalf("the visit leads to %s", to)
	}
	if a := b.get(to).want(t, http.StatusOK); !strings.Contains(a.body, "Notes</bdi> as "+invited) {
		t.Errorf("the page is %s", a.body)
	}
	if app := b.post(to).to(t); app != "https://notes.maya.localhost:8443/" {
		t.Errorf("accepting leads to %s", app)
	}
	if to := b.get(visitPath()).to(t); !strings.HasPrefix(to, callback+"?") {
		t.Errorf("the visit leads to %s", to)
	}
	if to := b.get(visitTo("app2", "photos")).want(t, http.StatusForbidden); strings.Contains(to.body, control.PathInvitationName) {
		t.Errorf("an app they were not invited to: %s", to.body)
	}
}

// An agent that says nothing of knocks cannot answer any: nobody is asked.
func TestNobodyKnocksAtAnOldAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.knocking(controlapi.KnocksFromEverybody)
	b := r.signedIn("carla@example.org")
	b.post("/knock", doorOf("app1", "notes")...).to(t)
	if len(r.asking()) != 1 {
		t.Fatal("nobody is told")
	}
	r.knocking("") // an older version takes over
	if len(r.asking()) != 0 {
		t.Errorf("%+v waits", r.asking())
	}
	if a := b.get(visitTo("app2", "photos")).want(t, http.StatusForbidden); strings.Contains(a.body, "Ask maya") {
		t.Errorf("somebody is asked: %s", a.body)
	}
	for range 4 {
		b.post("/knock", doorOf("app2", "photos")...).to(t)
	}
	if len(r.asking()) != 0 {
		t.Errorf("%+v waits", r.asking())
	}
}

// 1,000 knocks from 100 accounts at once leave 20, in both stores.
func TestAThousandKnocksAtOnce(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		r.knocking(controlapi.KnocksFromEverybody)
		var wg sync.WaitGroup
		for n := range 100 {
			account := must(r.svc.Accounts.Ensure(t.Context(), fmt.Sprintf("p%d@example.org", n)))
			session := control.Session{ID: fmt.Sprint("s", n), Account: account}
			wg.Go(func() {
				for i := range 10 {
					d := control.Door{Computer: "maya", App: "app1", Host: "notes.maya.localhost:8443"}
					if i%2 == 1 {
						d.App, d.Host = "app2", "photos.maya.localhost:8443"
					}
					if i > 1 {
						d.Host = fmt.Sprintf("n%d.maya.localhost:8443", i)
					}
					err := r.svc.Knocks.Ask(t.Context(), d, session)
					if err != nil && !control.IsRefusal(err, controlapi.CodeTooMany) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := len(r.asking()); n != controlapi.MaxKnocks {
			t.Errorf("%d wait", n)
		}
	})
}

// The pages of a knock, read as a whole.
func TestKnockPages(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	r := newRig(t, func(c *control.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	r.knocking(controlapi.KnocksFromEverybody)
	b := r.signedIn("carol@example.com")
	goldenPage(t, "no-access-knock", b.get(visitPath()).want(t, http.StatusForbidden).body)
	b.post("/knock", doorOf("app1", "notes")...).to(t)
	goldenPage(t, "knock-waiting", b.get(knockPage("app1", "notes")).want(t, http.StatusOK).body)
	must(r.client().AnswerKnock(t.Context(), controlapi.AnswerKnock{ID: r.asking()[0].ID, Answer: controlapi.KnockYes}))
	goldenPage(t, "knock-invited", b.get(knockPage("app1", "notes")).want(t, http.StatusOK).body)
	b.post("/knock", doorOf("app2", "photos")...).to(t)
	ahead.Store(int64(2*time.Hour + time.Minute))
	goldenPage(t, "knock-unanswered", b.get(knockPage("app2", "photos")).want(t, http.StatusOK).body)
	b.post("/knock", doorOf("app9", "nothing")...).to(t)
	goldenPage(t, "no-access-spent", b.get(knockPage("app8", "nothing-else")).want(t, http.StatusForbidden).body)
}

// Weakness: somebody with an invitation from before there were names read that nothing is
// shared with them.
// Checked: the page of the app's address and their account say that they are invited, and
// where the link is.
func TestInvitationWithoutANameIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.knocking(controlapi.KnocksFromEverybody)
	must(r.svc.People.Invite(t.Context(), r.owner.Computer.ID, controlapi.Invite{Email: invited, Apps: []string{"app1"}}))
	if err := r.store.Update(t.Context(), func(tx kv.Tx) error {
		items, err := tx.Scan("invitation/", "", 10)
		for _, item := range items {
			var row map[string]any
			if err := json.Unmarshal(item.Value, &row); err != nil {
				return err
			}
			delete(row, "name")
			if err := tx.Put(item.Key, must(json.Marshal(row)), time.Hour); err != nil {
				return err
			}
		}
		if len(items) != 1 {
			t.Errorf("%d invitations are stored", len(items))
		}
		if err != nil {
			return err
		}
		names, err := tx.Scan("invitation-name/", "", 10)
		for _, name := range names {
			err = errors.Join(err, tx.Delete(name.Key))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	b := r.signedIn(invited)
	goldenPage(t, "knock-pending", b.get(visitPath()).want(t, http.StatusForbidden).body)
	page := b.get("/account").want(t, http.StatusOK).body
	for _, said := range []string{"invites you</span>", "Open the link in the mail that invited you."} {
		if !strings.Contains(page, said) {
			t.Errorf("the account does not say %q: %s", said, page)
		}
	}
	if strings.Contains(page, "Nothing yet") {
		t.Error("the account says that nothing is there")
	}
}

package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

// A share that ends, on each store: a sync that waits brings it at the moment, to an
// agent that knows nothing of ends too; the visit that would follow is refused; and
// given again, it opens again. Bad ends change nothing.
func TestSharesEnd(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		c, ctx := r.client(), t.Context()
		r.putApps(
			controlapi.App{ID: "app1", Name: "notes", Label: "Notes", Live: true},
			controlapi.App{ID: "app2", Name: "wiki", Label: "Wiki", Live: true},
		)
		bob := r.member("bob@example.com", "app1", "app2")
		row := func(s controlapi.Snapshot) controlapi.Person {
			t.Helper()
			i := slices.IndexFunc(s.People, func(p controlapi.Person) bool { return p.AccountID == bob.AccountID })
			if i < 0 {
				t.Fatalf("bob is not in %+v", s)
			}
			return s.People[i]
		}
		for _, bad := range []string{"tomorrow", "90s", "2020-01-31T18:00:00Z", "2090-01-31T18:00:00Z"} {
			_, err := c.SetAccess(ctx, controlapi.SetAccess{AccountID: bob.AccountID, App: "app1", Granted: true, Until: bad})
			_, err2 := c.Invite(ctx, controlapi.Invite{Email: "bob@example.com", Apps: []string{"app1"}, Until: bad})
			for _, err := range []error{err, err2} {
				if e, ok := err.(*controlapi.Error); !ok || e.Code != controlapi.CodeInvalid || e.HTTPStatus != http.StatusBadRequest {
					t.Errorf("until %q: %v", bad, err)
				}
			}
		}
		end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		given, err := c.SetAccess(ctx, controlapi.SetAccess{AccountID: bob.AccountID, App: "app1", Granted: true, Until: end.Format(time.RFC3339)})
		if err != nil || !given.Until["app1"].Equal(end) || !slices.Equal(given.Apps, []string{"app1", "app2"}) {
			t.Fatalf("given %+v, %v", given, err)
		}
		kept, err := c.SetAccess(ctx, controlapi.SetAccess{AccountID: bob.AccountID, App: "app1", Granted: true})
		if err != nil || !kept.Until["app1"].Equal(end) {
			t.Fatalf("given again without an end: %+v, %v", kept, err)
		}
		first, next := r.waitForNext()
		s := synced{first, nil}
		if !row(s.Snapshot).Until["app1"].Equal(end) {
			t.Fatalf("synced %+v", s)
		}
		end = soon(t, func(end string) error {
			_, err := c.SetAccess(ctx, controlapi.SetAccess{AccountID: bob.AccountID, App: "app1", Granted: true, Until: end})
			return err
		})
		for len(row(s.Snapshot).Apps) == 2 {
			s = <-next
			programs.Must(t, s.err)
		}
		if early := time.Until(end); early > 0 {
			t.Errorf("it ended %v too early", early)
		}
		if p := row(s.Snapshot); !slices.Equal(p.Apps, []string{"app2"}) || len(p.Until) != 0 || !p.Ended["app1"].Equal(end) || p.Status != controlapi.PersonActive || p.Epoch != bob.Epoch {
			t.Errorf("ended as %+v", p)
		}
		again, err := c.Invite(ctx, controlapi.Invite{Email: "bob@example.com", Apps: []string{"app1"}, Until: controlapi.UntilNever})
		if err != nil || len(again.Apps) != 2 || len(again.Until)+len(again.Ended) != 0 {
			t.Errorf("given again: %+v, %v", again, err)
		}
	})
}

// soon gives with an end that comes soon. On a busy machine it may have come before it is
// given, which is refused: then with a later one.
func soon(t *testing.T, give func(end string) error) (end time.Time) {
	t.Helper()
	for away := 2 * time.Second; ; away *= 2 {
		end = time.Now().Add(away).UTC().Truncate(time.Second)
		err := give(end.Format(time.RFC3339))
		if err == nil {
			return end
		}
		if e, ok := errors.AsType[*controlapi.Error](err); !ok || e.Code != controlapi.CodeInvalid || time.Now().Before(end) {
			t.Fatal(err)
		}
	}
}

// The node that gave the end is gone when it comes: another ends the share.
func TestSharesEndOnAnotherNode(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	shared := func(c *control.Config) { c.SharedStore = true }
	a := newRigOn(t, openStore(t, database), shared)
	bob := a.member("bob@example.com", "app1")
	b := newRigOn(t, openStore(t, database), shared)
	end := soon(t, func(end string) error {
		_, err := a.svc.People.SetAccess(t.Context(), b.owner.Computer.ID, controlapi.SetAccess{AccountID: bob.AccountID, App: "app1", Granted: true, Until: end})
		return err
	})
	a.stop()
	open, told := true, tells(t, b.svc, b.owner.Credential) // of the same computer, with its newest credential
	for open {
		s := <-told
		programs.Must(t, s.err)
		open = slices.ContainsFunc(s.People, func(p controlapi.Person) bool { return slices.Contains(p.Apps, "app1") })
	}
	if early := time.Until(end); early > 0 {
		t.Errorf("it ended %v too early", early)
	}
}

// Whoever was given an app until a date reads so, on the invitation and in their account.
func TestPagesSayWhenAShareEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const email = "bob@example.com"
	end := time.Now().Add(100 * time.Hour)
	must(r.svc.People.Invite(t.Context(), r.owner.Computer.ID, controlapi.Invite{Email: email, Apps: []string{"app1"}, Until: end.Format(time.RFC3339)}))
	b, want := r.browser(), "Until "+moment(words.English, end)
	// A script says it in the reader's own time, and nothing else of ours is one.
	timed := `<time datetime="` + end.UTC().Format(time.RFC3339) + `">` + moment(words.English, end) + "</time>"
	page := b.get("/invitation?token=" + tokenOf(t, r.mailsNamed("", email, 1)))
	if page.want(t, http.StatusOK); !strings.Contains(page.body, "Until "+timed) {
		t.Errorf("the invitation does not say %q", want)
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src https://control.localhost:8443"+timesPath+"; ") || !strings.Contains(page.body, `<script src="`+timesPath+`" defer></script>`) {
		t.Errorf("%s\n%s", policy, page.body)
	}
	if script := b.get(timesPath).want(t, http.StatusOK); !strings.Contains(script.body, `querySelectorAll("time")`) || !strings.HasPrefix(script.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("%v %s", script.Header, script.body)
	}
	if other := b.get("/about"); strings.Contains(other.Header.Get("Content-Security-Policy"), "script") || strings.Contains(other.body, "<script") {
		t.Errorf("a page that tells no time: %v", other.Header)
	}
	if link := "only for bob@example.com, until " + timed + "."; !strings.Contains(page.body, link) {
		t.Errorf("the link ends with what it leads to, and the invitation does not say %q: %s", link, page.body)
	}
	b.post("/invitation", "token", tokenOf(t, r.mailsNamed("", email, 1)))
	a := r.signedIn(email)
	if page := a.get("/account").want(t, http.StatusOK); !strings.Contains(page.body, "Until "+timed) {
		t.Errorf("the account does not say %q", timed)
	}
}

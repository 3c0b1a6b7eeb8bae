package web

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// turnOn has the computer's agent be there until it is turned off.
func (r *rig) turnOn() (off func()) {
	r.t.Helper()
	told := make(chan struct{}, 100)
	off = r.svc.Feed.Tell(r.owner.Credential, netip.Addr{}, "", func(controlapi.Snapshot) error { told <- struct{}{}; return nil }, func(error) {})
	<-told
	return off
}

// Whoever has an app on a computer reads whether it is on, and since when it is off where its
// owner tells that; somebody without an app reads neither.
func TestAccountSaysWhatIsOff(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	tell := func(is bool) {
		t.Helper()
		programs.Must(t, r.client().PutApps(t.Context(), controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}, TellOff: is}))
	}
	tell(true)
	r.member(invited, "app1")
	without := r.member("dora@example.com", "app1")
	programs.Got(r.client().SetAccess(t.Context(), controlapi.SetAccess{AccountID: without.AccountID, App: "app1"}))(t)
	b, dora, owner := r.signedIn(invited), r.signedIn("dora@example.com"), r.signedIn("maya@example.com")
	says := func(who *browser) string {
		t.Helper()
		state := regexp.MustCompile(`<span class="state-line"><span class="dot[^"]*"></span>(.*?)</span>`).FindStringSubmatch(who.get("/account").want(t, http.StatusOK).body)
		if state == nil {
			return ""
		}
		return regexp.MustCompile(`<time data-since datetime="[-0-9]+T[:0-9]+Z">[^<]* UTC</time>`).ReplaceAllString(state[1], "TIME")
	}
	said := func(when, toBob, toOwner string) {
		t.Helper()
		for who, want := range map[*browser]string{b: toBob, dora: "", owner: toOwner} {
			if got := says(who); got != want {
				t.Errorf("%s %q is said, want %q", when, got, want)
			}
		}
	}
	said("before it was ever on", "", "")
	off := r.turnOn()
	said("while it is on", "On", "On")
	off()
	said("while it is off", "Off since TIME", "Off since TIME")
	page := b.get("/account")
	if strings.Contains(page.body, `href="https://notes.maya`) || !strings.Contains(page.body, "notes.maya.localhost") {
		t.Error("what is off is led to, or not named")
	}
	if !strings.Contains(page.body, `<script src="`+timesPath+`" defer></script>`) {
		t.Error("nothing says it in the reader's own time")
	}
	tell(false)
	said("where the owner does not tell since when", "Off", "Off since TIME")
	if s := r.snapshot(); s.Reported != (controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}}).Digest() {
		t.Error("the snapshot says otherwise than was reported")
	}
}

// An invitation leads to the app, or says that the computer is off; the page goes on once it
// is on, and is nobody else's.
func TestInvitationToWhatIsOff(t *testing.T) {
	t.Parallel()
	r := peopleRig(t)
	off := r.turnOn()
	off()
	r.invite("app1")
	b := r.browser()
	if to := b.accept(1); to != "/off?computer=maya" {
		t.Fatalf("led to %s", to)
	}
	page := b.get("/off?computer=maya").want(t, http.StatusOK)
	for _, want := range []string{"<h1>maya.localhost:8443 is off</h1>", "Nothing is wrong with your access.", `href="/off?computer=maya"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not say %q: %s", want, page.body)
		}
	}
	if strings.Contains(page.body, "Off since") {
		t.Error("the owner does not tell since when, and it is said")
	}
	if to := r.browser().get("/off?computer=maya").to(t); to != "/signin" {
		t.Errorf("somebody who is signed out is led to %s", to)
	}
	programs.Got(r.svc.Computers.Ensure(t.Context(), "dora@example.com", "doras"))(t)
	dora := r.signedIn("dora@example.com")
	dora.get("/off?computer=maya").want(t, http.StatusNotFound)
	dora.get("/off?computer=nobodys").want(t, http.StatusNotFound)
	off = r.turnOn()
	defer off()
	if to := b.get("/off?computer=maya").to(t); to != "https://notes.maya.localhost:8443/" {
		t.Errorf("once it is on it leads to %s", to)
	}
}

// The account page asks the other nodes about all computers at the same time: here each answers
// only once all are asked about.
func TestAccountAsksAboutAllAtOnce(t *testing.T) {
	t.Parallel()
	var asked sync.WaitGroup
	asked.Add(4)
	all := make(chan struct{})
	go func() { asked.Wait(); close(all) }()
	var looking atomic.Bool // at the page, and not letting somebody in
	r := peopleRig(t, func(c *control.Config) {
		c.SharedStore = true
		c.Held = func(ctx context.Context, host string) (held, sure bool) {
			if !looking.Load() {
				return true, true
			}
			asked.Done()
			select {
			case <-all:
			case <-ctx.Done():
				t.Errorf("nobody asked about the others while %s was asked about", host)
			}
			return true, true
		}
	})
	for n, owner := range []string{invited, invited, "anna@example.com"} {
		e := programs.Got(r.svc.Computers.Ensure(t.Context(), owner, fmt.Sprintf("other%d", n)))(t)
		if owner != invited {
			programs.Must(t, r.svc.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}}))
			r.memberOf(e.Computer.ID, invited, "app1")
		}
	}
	r.member(invited, "app1")
	b := r.signedIn(invited)
	looking.Store(true)
	page := b.get("/account").want(t, http.StatusOK)
	if on := strings.Count(page.body, `<span class="dot"></span>On`); on != 4 {
		t.Errorf("%d of 4 computers are on: %s", on, page.body)
	}
}

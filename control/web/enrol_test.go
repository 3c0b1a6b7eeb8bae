package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// lateClock is a time that a test moves forward.
type lateClock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *lateClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *lateClock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// stranger speaks to the control plane without a credential.
func (r *rig) stranger() *controlapi.Client {
	return &controlapi.Client{BaseURL: authURL, HTTP: &http.Client{Transport: r.transport()}}
}

func (r *rig) ask(change ...func(*controlapi.EnrolRequest)) controlapi.EnrolStarted {
	r.t.Helper()
	req := controlapi.EnrolRequest{Machine: "maya-laptop", Platform: "linux", Name: "study"}
	for _, f := range change {
		f(&req)
	}
	return programs.Got(r.stranger().Enrol(r.t.Context(), req))(r.t)
}

func (r *rig) poll(s controlapi.EnrolStarted) (controlapi.Enrolled, error) {
	return r.stranger().PollEnrol(r.t.Context(), controlapi.EnrolPoll{DeviceCode: s.DeviceCode})
}

// The whole way: the computer asks, its owner signs in, types the code, looks,
// chooses a name; the computer gets its credential and can sync.
func TestConnectAComputer(t *testing.T) {
	t.Parallel()
	onStores(t, connectAComputer)
}

func connectAComputer(t *testing.T, r *rig) {
	started := r.ask()
	if started.VerificationURI != authURL+"/device" || started.VerificationURIComplete != authURL+"/device?code="+started.UserCode ||
		started.ExpiresIn != 600 || started.Interval != 5 {
		t.Errorf("started is %+v", started)
	}
	_, err := r.poll(started)
	wantError(t, err, controlapi.CodeAuthorizationPending)

	b := r.browser()
	path := "/device?code=" + started.UserCode
	back := b.get(path).to(t)
	if back != "/signin?return="+url.QueryEscape(path) {
		t.Errorf("signed out, the page leads to %s", back)
	}
	if got := b.signIn("maya@example.com", path); got != path {
		t.Errorf("signing in leads to %s", got)
	}
	if page := b.get(path).want(t, http.StatusOK); !strings.Contains(page.body, `value="`+started.UserCode+`"`) {
		t.Error("the code is not filled in")
	}
	page := b.post("/device", "code", strings.ToLower(strings.ReplaceAll(started.UserCode, "-", " "))).want(t, http.StatusOK)
	for _, want := range []string{"maya-laptop", "Linux", "127.0.0.1", "less than a minute ago", `name="name"`, `value="study"`, ".localhost:8443"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if _, err := r.svc.Computers.ByName(t.Context(), "study"); !control.IsRefusal(err, controlapi.CodeNotFound) {
		t.Errorf("looking made a computer: %v", err)
	}
	done := b.post("/device", "code", started.UserCode, "name", "study", "decision", "allow").to(t)
	if done != "/device/done?computer=study" {
		t.Errorf("connecting leads to %s", done)
	}
	if page := b.get(done).want(t, http.StatusOK); !strings.Contains(page.body, "study.localhost:8443") {
		t.Error("the page does not say which computer it is")
	}

	// Of many polls at once, one is answered.
	answers := make(chan controlapi.Enrolled, 16)
	var all sync.WaitGroup
	for range cap(answers) {
		all.Go(func() {
			got, err := r.poll(started)
			if err == nil {
				answers <- got
			} else if !control.IsRefusal(err, controlapi.CodeExpiredToken) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(answers) != 1 {
		t.Fatalf("%d polls were answered", len(answers))
	}
	got := <-answers
	if got.Email != "maya@example.com" || got.AccountID != r.owner.AccountID || got.Computer.Host != "study.localhost:8443" {
		t.Fatalf("got %+v", got)
	}
	if snapshot := r.first(tells(t, r.svc, got.Credential)); snapshot.Computer != got.Computer || len(snapshot.People) != 1 {
		t.Errorf("its snapshot is %+v", snapshot)
	}
	if people, err := r.client().People(t.Context()); err != nil || people.Name != "maya" {
		t.Errorf("the computer that was there has %+v, %v", people, err)
	}
}

// Two nodes on one PostgreSQL: what one confirms, the other answers, and a
// credential ended at one ends what the other holds for it.
func TestEnrolmentAcrossNodes(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	var ended endings
	shared := func(c *control.Config) { c.SharedStore = true }
	one := newRigOn(t, openStore(t, database), shared)
	two := newRigOn(t, openStore(t, database), shared, ended.hear) // takes the computer over from one
	started := one.ask()
	b := two.browser()
	b.signIn("maya@example.com", "/device")
	b.post("/device", "code", started.UserCode, "name", "study", "decision", "allow").want(t, http.StatusSeeOther)
	got := programs.Got(one.poll(started))(t)
	at := func(r *rig) *controlapi.Client {
		return &controlapi.Client{BaseURL: authURL, Credential: got.Credential, HTTP: &http.Client{Transport: r.transport()}}
	}
	next := tells(t, two.svc, got.Credential)
	two.first(next)
	programs.Must(t, at(one).EndCredential(t.Context()))
	wantError(t, (<-next).err, controlapi.CodeUnauthorized)
	late := time.After(programs.Patience)
	for !slices.Contains(ended.all(), got.Computer.ID) {
		select {
		case <-ended.news:
		case <-late:
			t.Fatalf("the other node hears of %v", ended.all())
		}
	}
}

// endings collects what Config.OnCredentialEnded tells.
type endings struct {
	mu   sync.Mutex
	ids  []string
	news chan struct{} // receives when there are more
}

func (e *endings) hear(c *control.Config) {
	e.news = make(chan struct{}, 1)
	c.OnCredentialEnded = func(id string) {
		e.mu.Lock()
		e.ids = append(e.ids, id)
		e.mu.Unlock()
		select {
		case e.news <- struct{}{}:
		default:
		}
	}
}

func (e *endings) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.ids)
}

func TestDenyAComputer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	started := r.ask()
	b := r.browser()
	b.signIn("maya@example.com", "/device")
	if got := b.post("/device", "code", started.UserCode, "name", "study", "decision", "deny").to(t); got != "/device/done" {
		t.Errorf("denying leads to %s", got)
	}
	_, err := r.poll(started)
	if e := wantError(t, err, controlapi.CodeAccessDenied); e.HTTPStatus != http.StatusBadRequest {
		t.Errorf("the status is %d", e.HTTPStatus)
	}
	b.post("/device", "code", started.UserCode, "name", "study", "decision", "allow").want(t, http.StatusNotFound)
}

// A name that is connected changes hands in a step of its own, and the computer
// that had it is cut off when the other one arrives.
func TestReplaceAComputer(t *testing.T) {
	t.Parallel()
	var ended endings
	r := newRig(t, ended.hear)
	started := r.ask()
	b := r.browser()
	b.signIn("maya@example.com", "/device")
	page := b.post("/device", "code", started.UserCode, "name", "maya", "decision", "allow").want(t, http.StatusOK)
	if !strings.Contains(page.body, "Replace maya.localhost:8443?") || !strings.Contains(page.body, "cut off") {
		t.Fatalf("the page is %s", page.body)
	}
	_, err := r.poll(started)
	wantError(t, err, controlapi.CodeAuthorizationPending)
	// A name other than the one asked about is asked about again.
	page = b.post("/device", "code", started.UserCode, "name", "maya", "replace", "other", "decision", "allow").want(t, http.StatusOK)
	if !strings.Contains(page.body, "Replace maya") {
		t.Error("replacing one name allowed another")
	}
	b.post("/device", "code", started.UserCode, "name", "maya", "replace", "maya", "decision", "allow").want(t, http.StatusSeeOther)
	if len(ended.all()) != 0 {
		t.Error("the computer was cut off before the other one arrived")
	}

	_, next := r.waitForNext()
	got, err := r.poll(started)
	if err != nil || got.Computer.ID != r.owner.Computer.ID {
		t.Fatalf("got %+v, %v", got, err)
	}
	if gone := ended.all(); !slices.Equal(gone, []string{r.owner.Computer.ID}) {
		t.Errorf("told of %v", gone)
	}
	wantError(t, (<-next).err, controlapi.CodeUnauthorized)
	_, err = r.client().People(t.Context())
	wantError(t, err, controlapi.CodeUnauthorized)
}

// DELETE /v1/computer ends the credential; the name stays the account's and can
// be taken up again without the extra step.
func TestLeaveAndComeBack(t *testing.T) {
	t.Parallel()
	var ended endings
	r := newRig(t, ended.hear)
	programs.Must(t, r.client().EndCredential(t.Context()))
	if gone := ended.all(); !slices.Equal(gone, []string{r.owner.Computer.ID}) {
		t.Errorf("told of %v", gone)
	}
	wantError(t, r.client().EndCredential(t.Context()), controlapi.CodeUnauthorized)
	started := r.ask()
	b := r.browser()
	b.signIn("maya@example.com", "/device")
	b.post("/device", "code", started.UserCode, "name", "maya", "decision", "allow").want(t, http.StatusSeeOther)
	got, err := r.poll(started)
	if err != nil || got.Computer.ID != r.owner.Computer.ID {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// Weakness: a request of somebody who shows no credential is read whole before
// anything is asked of it. Checked: at most 64 KiB are, which is room for the
// names of five hundred apps.
func TestEnrolmentRequestsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ask(func(req *controlapi.EnrolRequest) {
		for n := range control.MaxApps {
			req.Apps = append(req.Apps, fmt.Sprintf("%063d", n))
		}
	})
	b := r.browser()
	for _, path := range []string{controlapi.PathEnrol, controlapi.PathEnrolToken} {
		req := b.request(http.MethodPost, path, strings.NewReader(`{"machine": "`+strings.Repeat("m", maxAsk)+`"}`))
		req.Header.Set("Content-Type", "application/json")
		if a := b.do(req); a.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %s %s", path, a.Status, a.body)
		}
	}
}

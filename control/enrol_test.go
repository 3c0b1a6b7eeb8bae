package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// enrolling is an enrolment under test, with the session of its owner.
type enrolling struct {
	*bench
	started controlapi.EnrolStarted
	session Session
}

func (b *bench) enrolling(change ...func(*controlapi.EnrolRequest)) enrolling {
	b.t.Helper()
	r := controlapi.EnrolRequest{Machine: "laptop", Platform: "linux", Name: "study"}
	for _, f := range change {
		f(&r)
	}
	account := ok[Account](b.t)(b.Accounts.Ensure(b.t.Context(), "olga@example.com"))
	return enrolling{
		bench: b, started: ok[controlapi.EnrolStarted](b.t)(b.Enrolment.Begin(b.t.Context(), r, home)),
		session: b.signedIn(account, ""),
	}
}

func (e enrolling) confirm(name string, replace bool) (Confirmed, error) {
	return e.Enrolment.Confirm(e.t.Context(), e.session, e.started.UserCode, name, replace, home)
}

func (e enrolling) poll() (controlapi.Enrolled, error) {
	return e.Enrolment.Poll(e.t.Context(), e.started.DeviceCode)
}

func TestEnrolment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.enrolling()
	if !regexp.MustCompile(`^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$`).MatchString(e.started.UserCode) {
		t.Errorf("the code is %s", e.started.UserCode)
	}
	asking := ok[Asking](t)(b.Enrolment.LookAt(t.Context(), e.session.Account, e.started.UserCode, home))
	if want := (Asking{Machine: "laptop", Platform: "linux", Name: "study", Client: home, BeganAt: b.clock.Now()}); asking != want {
		t.Errorf("asking is %+v", asking)
	}
	done := ok[Confirmed](t)(e.confirm("study", false))
	_, err := e.confirm("other", false)
	wantRefusal(t, err, controlapi.CodeNotFound) // the code was used
	_, err = b.Agents.Authenticate(t.Context(), e.started.DeviceCode)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	got := ok[controlapi.Enrolled](t)(e.poll())
	if got.Computer != done.Computer || got.Email != "olga@example.com" {
		t.Errorf("got %+v", got)
	}
	if c := ok[controlapi.Computer](t)(b.Agents.Authenticate(t.Context(), got.Credential)); c != done.Computer {
		t.Errorf("authenticated as %+v", c)
	}
	_, err = e.poll()
	wantRefusal(t, err, controlapi.CodeExpiredToken)
	if n := b.rows("enrolment/") + b.rows("user-code/"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// Of many polls after one confirmation, one gets the credential.
func TestEnrolmentIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.enrolling()
	ok[Confirmed](t)(e.confirm("study", false))
	var mu sync.Mutex
	var won []string
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			got, err := e.poll()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, got.Credential)
			} else if !IsRefusal(err, controlapi.CodeExpiredToken) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("%d polls were answered", len(won))
	}
	ok[controlapi.Computer](t)(b.Agents.Authenticate(t.Context(), won[0]))
}

func TestEnrolmentPolling(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.enrolling()
	after := func(wait time.Duration, want string) {
		t.Helper()
		b.clock.Add(wait)
		_, err := e.poll()
		wantRefusal(t, err, want)
	}
	after(0, controlapi.CodeAuthorizationPending)
	after(5*time.Second, controlapi.CodeAuthorizationPending)
	after(4*time.Second, controlapi.CodeSlowDown)
	after(9*time.Second, controlapi.CodeSlowDown) // ten by now
	after(15*time.Second, controlapi.CodeAuthorizationPending)
	for range 20 {
		after(0, controlapi.CodeSlowDown)
	}
	after(enrolmentIntervalMax, controlapi.CodeAuthorizationPending)
	// A confirmation is told of however early the poll.
	e.session.Proven = b.clock.Now()
	ok[Confirmed](t)(e.confirm("study", false))
	ok[controlapi.Enrolled](t)(e.poll())
}

func TestEnrolmentEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.enrolling()
	// Polling does not lengthen its life.
	for range 9 {
		b.clock.Add(time.Minute)
		_, err := e.poll()
		wantRefusal(t, err, controlapi.CodeAuthorizationPending)
	}
	b.clock.Add(time.Minute)
	_, err := e.poll()
	wantRefusal(t, err, controlapi.CodeExpiredToken)
	e.session.Proven = b.clock.Now()
	_, err = e.confirm("study", false)
	wantRefusal(t, err, controlapi.CodeNotFound)
}

// Only somebody who has just signed in connects a computer: a browser left open
// is not enough.
func TestEnrolmentWantsAFreshSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.enrolling()
	e.session.Proven = b.clock.Now().Add(-FreshFor)
	_, err := e.confirm("study", false)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
}

func TestEnrolmentNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.owner()
	e := b.enrolling(func(r *controlapi.EnrolRequest) { r.Apps = []string{"notes", "photos"} })
	for name, why := range map[string]string{
		"":                      "1 to 63",
		"Study":                 "1 to 63",
		"stüdy":                 "1 to 63",
		"a.b":                   "1 to 63",
		strings.Repeat("a", 64): "1 to 63",
		"www":                   "reserved",
		"portal":                "reserved",
		"control":               "reserved",
		"maya":                  "taken",
		"notes":                 "app on that computer",
	} {
		_, err := e.confirm(name, true)
		if !IsRefusal(err, controlapi.CodeInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", name, err)
		}
	}
	ok[Confirmed](t)(e.confirm("study", false))

	// A wish that cannot come true is none; the account's own name is suggested then, where
	// it can be had without another question.
	suggested := func(wish, app string) string {
		e := b.enrolling(func(r *controlapi.EnrolRequest) { r.Name, r.Apps = wish, []string{"notes", app} })
		return ok[Asking](t)(b.Enrolment.LookAt(t.Context(), e.session.Account, e.started.UserCode, home)).Name
	}
	for _, wish := range []string{"www", "Laptop of Olga", "notes", ""} {
		if got := suggested(wish, "photos"); got != "olga" {
			t.Errorf("%q is suggested as %q", wish, got)
		}
	}
	if got := suggested("", "olga"); got != "" {
		t.Errorf("the name of an app is suggested: %q", got)
	}
	e = b.enrolling()
	ok[Confirmed](t)(e.confirm("olga", false))
	if got := suggested("", "photos"); got != "olga" { // confirmed, and not come for its credential
		t.Errorf("its own name is suggested as %q", got)
	}
	ok[controlapi.Enrolled](t)(e.poll())
	if got := suggested("", "photos"); got != "" {
		t.Errorf("the name of a computer that is connected is suggested: %q", got)
	}
}

// What a stranger's computer calls itself reaches the page as one short line.
func TestEnrolmentShowsNoTricks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for machine, want := range map[string]string{
		"  laptop\r\n":                 "laptop",
		"a\u202egnp.exe":               "agnp.exe",
		"x\x00\x1b[2J\u200by":          "x[2Jy",
		strings.Repeat("é", 500):       strings.Repeat("é", maxMachine),
		"\xff\xfe":                     "",
		"<script>alert(1)</script> &c": "<script>alert(1)</script> &c",
	} {
		e := b.enrolling(func(r *controlapi.EnrolRequest) { r.Machine = machine })
		if a := ok[Asking](t)(b.Enrolment.LookAt(t.Context(), e.session.Account, e.started.UserCode, home)); a.Machine != want {
			t.Errorf("%q is shown as %q", machine, a.Machine)
		}
	}
	for name, r := range map[string]controlapi.EnrolRequest{
		"no platform":       {Machine: "m"},
		"a sentence":        {Machine: "m", Platform: "Linux, really"},
		"apps that are not": {Machine: "m", Platform: "linux", Apps: []string{"Notes"}},
		"apps without end":  {Machine: "m", Platform: "linux", Apps: slices.Repeat([]string{"a"}, MaxApps+1)},
	} {
		_, err := b.Enrolment.Begin(t.Context(), r, home)
		if !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Weakness: a user code has 34 bits, and guessing it adds a stranger's computer
// to one's own account, or shows who asks. Checked: five wrong tries end it for
// the account, thirty for the address, right codes included.
func TestEnrolmentCodesCannotBeGuessed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.enrolling()
	look := func(account Account, code string) error {
		_, err := b.Enrolment.LookAt(t.Context(), account, code, home)
		return err
	}
	for range 5 {
		wantRefusal(t, look(e.session.Account, "BBBB-BBBB"), controlapi.CodeNotFound)
	}
	wantRefusal(t, look(e.session.Account, e.started.UserCode), controlapi.CodeTooMany)
	_, err := e.confirm("study", false)
	wantRefusal(t, err, controlapi.CodeTooMany)
	other := Account{ID: "another", MayEnrol: true}
	for n := range 25 {
		other.ID = fmt.Sprint("another", n/5)
		wantRefusal(t, look(other, "BBBB-BBBB"), controlapi.CodeNotFound)
	}
	other.ID = "yet another"
	wantRefusal(t, look(other, e.started.UserCode), controlapi.CodeTooMany)
	if _, err := b.Enrolment.LookAt(t.Context(), other, e.started.UserCode, netip.MustParseAddr("198.51.100.1")); err != nil {
		t.Errorf("somebody elsewhere is locked out: %v", err)
	}
	b.clock.Add(10 * time.Minute)
	wantRefusal(t, look(e.session.Account, e.started.UserCode), controlapi.CodeTooMany) // the address, for an hour
}

func TestEnrolmentsPerAddress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ask := func(from string) error {
		_, err := b.Enrolment.Begin(t.Context(), controlapi.EnrolRequest{Machine: "m", Platform: "linux"}, netip.MustParseAddr(from))
		return err
	}
	for n := range 30 {
		programs.Must(t, ask(fmt.Sprintf("2001:db8::%d", n)))
	}
	err := ask("2001:db8::ffff")
	wantRefusal(t, err, controlapi.CodeTooMany)
	var e *controlapi.Error
	if !errors.As(err, &e) || e.RetryAfter <= 0 || e.RetryAfter > time.Hour {
		t.Errorf("got %+v", e)
	}
	if err := ask("2001:db8:0:1::1"); err != nil {
		t.Error(err)
	}
}

// Accounts that exist because somebody shared an app with them connect no
// computers, unless the operator says so.
func TestWhoMayEnrol(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		may    bool
	}{
		"as it comes":  {func(*Config) {}, false},
		"members may":  {func(c *Config) { c.MembersEnrol = true }, true},
		"open sign-up": {func(c *Config) { c.OpenSignUp = true }, true},
	} {
		b := newBench(t, c.change)
		owner := b.owner()
		b.member(owner.Computer.ID, "bob@example.com")
		bob := ok[Account](t)(b.Accounts.ByEmail(t.Context(), "bob@example.com"))
		if err := b.Enrolment.MayEnrol(bob); (err == nil) != c.may || err != nil && !IsRefusal(err, controlapi.CodeForbidden) {
			t.Errorf("%s: a member gets %v", name, err)
		}
		maya := ok[Account](t)(b.Accounts.ByEmail(t.Context(), "maya@example.com"))
		if err := b.Enrolment.MayEnrol(maya); err != nil {
			t.Errorf("%s: an owner gets %v", name, err)
		}
		// The operator adds a member.
		if err := b.Enrolment.MayEnrol(ok[Account](t)(b.Accounts.Ensure(t.Context(), "bob@example.com"))); err != nil {
			t.Errorf("%s: an account added gets %v", name, err)
		}
	}
}

func TestComputersPerAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n := range maxComputers {
		ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "olga@example.com", fmt.Sprint("c", n)))
	}
	e := b.enrolling()
	_, err := e.confirm("one-more", false)
	wantRefusal(t, err, controlapi.CodeInvalid)
	if got := ok[Confirmed](t)(e.confirm("c0", false)); !got.Replaces {
		t.Errorf("got %+v", got)
	}
}

// A confirmation replaces what its owner was told it would and nothing else.
func TestEnrolmentReplacesWhatWasShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.enrolling(), b.enrolling()
	ok[Confirmed](t)(first.confirm("study", false))
	ok[Confirmed](t)(second.confirm("study", false)) // nobody has arrived yet
	ok[controlapi.Enrolled](t)(first.poll())
	_, err := second.poll()
	wantRefusal(t, err, controlapi.CodeAccessDenied)

	third := b.enrolling()
	if got := ok[Confirmed](t)(third.confirm("study", false)); !got.Replaces {
		t.Fatalf("got %+v", got)
	}
	ok[Confirmed](t)(third.confirm("study", true))
	programs.Must(t, b.Computers.Remove(t.Context(), third.session.Account.ID, "study"))
	_, err = third.poll()
	wantRefusal(t, err, controlapi.CodeAccessDenied)
}

// Two nodes on one store: what one ends, the other hears of once, and nobody
// hears twice.
func TestEndedCredentialsReachOtherNodes(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 16)
	b := newBench(t, func(c *Config) {
		c.SharedStore = true
		c.OnCredentialEnded = func(id string) { heard <- "here " + id }
	})
	there := b.node(func(c *Config) { c.OnCredentialEnded = func(id string) { heard <- "there " + id } })
	e := b.owner()
	programs.Must(t, b.Agents.EndCredential(t.Context(), e.Credential))
	seenHere, seenThere := map[string]bool{}, map[string]bool{}
	for range 3 {
		programs.Must(t, b.Agents.tellEnded(t.Context(), seenHere), there.Agents.tellEnded(t.Context(), seenThere))
	}
	got := []string{<-heard, <-heard}
	if want := []string{"here " + e.Computer.ID, "there " + e.Computer.ID}; !slices.Equal(got, want) || len(heard) != 0 {
		t.Errorf("heard %v and %d more", got, len(heard))
	}
	b.clock.Add(endedMemory)
	if err := there.Agents.tellEnded(context.Background(), seenThere); err != nil || len(seenThere) != 0 {
		t.Errorf("%d are remembered, %v", len(seenThere), err)
	}
}

// Neither code is in the store as it is, nor a hash of the short one that could
// be tried out.
func TestEnrolmentCodesAreStoredHashed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.enrolling()
	ok[Confirmed](t)(e.confirm("study", false))
	got := ok[controlapi.Enrolled](t)(e.poll())
	again := b.enrolling()
	secrets := []string{
		again.started.DeviceCode, again.started.UserCode, strings.ReplaceAll(again.started.UserCode, "-", ""),
		hashOf(purposeUserCode, again.started.UserCode), got.Credential, e.started.DeviceCode,
	}
	for key, value := range b.stored() {
		for _, secret := range secrets {
			if strings.Contains(key+" "+value, secret) {
				t.Errorf("%s holds %s", key, secret)
			}
		}
	}
}

func FuzzParseUserCode(f *testing.F) {
	for _, s := range []string{"BCDF-GHJK", "bcdf ghjk", "", "BCDFGHJKL", "ABCD-EFGH", "BCDF–GHJK", "b-c-d-f-g-h-j-k", "ＢＣＤＦ-ＧＨＪＫ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		code, err := ParseUserCode(typed)
		if err != nil {
			wantRefusal(t, err, controlapi.CodeNotFound)
			return
		}
		again, err := ParseUserCode(code)
		if err != nil || again != code || len(code) != 9 {
			t.Errorf("%q is %q, and that is %q, %v", typed, code, again, err)
		}
	})
}

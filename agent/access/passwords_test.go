package access_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Passwords of the tests.
var (
	bobs1   = "plp_" + strings.Repeat("a", 32)
	bobs2   = "plp_" + strings.Repeat("b", 32) // for photos
	mayas   = "plp_" + strings.Repeat("c", 32)
	unknown = "plp_" + strings.Repeat("d", 32)
)

func row(id, account, app, password string) controlapi.AppPassword {
	hash := sha256.Sum256([]byte(password))
	return controlapi.AppPassword{ID: id, AccountID: account, AppID: app, Hash: base64.RawURLEncoding.EncodeToString(hash[:])}
}

// withPasswords is a snapshot with passwords of bob and the owner.
func withPasswords(change func([]controlapi.Person)) controlapi.Snapshot {
	s := snapshot(change)
	s.Passwords = []controlapi.AppPassword{
		row("p1", bob, notes, bobs1), row("p2", bob, "id-photos", bobs2), row("p3", owner, notes, mayas),
		{ID: "p4", AccountID: bob, AppID: notes, Hash: "no hash"}, {ID: "p5", AccountID: bob, AppID: notes},
		row("p6", "acc-nobody", notes, unknown),
	}
	return s
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestPassword(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	if _, present, err := a.Password([]string{basic("bob@example.com", bobs1)}, notes); !present || err == nil {
		t.Errorf("without a snapshot: %v, %v", present, err)
	}
	if a.HasPasswords(notes) {
		t.Error("there are passwords without a snapshot")
	}
	a.SetSnapshot(withPasswords(func(p []controlapi.Person) {
		p[0].Email = "maya@xn--bcher-kva.example"
		p[1].Apps = []string{notes, "id-photos"}
	}))
	for app, want := range map[string]bool{notes: true, "id-photos": true, "id-wiki": false, "": false} {
		if a.HasPasswords(app) != want {
			t.Errorf("%q has passwords: %v", app, !want)
		}
	}
	good := basic("bob@example.com", bobs1)
	for what, values := range map[string][]string{
		"as it is": {good}, "in upper case": {basic("BOB@Example.COM", bobs1)}, "with spaces": {basic(" bob@example.com ", bobs1)},
		"scheme in lower case": {"basic" + good[5:]}, "two spaces": {"Basic  " + good[6:]},
		"beside an app's own": {basic("bob@example.com", "secret"), good}, "beside a token": {"Bearer x", good},
	} {
		id, present, err := a.Password(values, notes)
		if want := (access.Identity{AccountID: bob, Email: "bob@example.com", Role: controlapi.RoleMember, PasswordID: "p1"}); err != nil || !present || id != want {
			t.Errorf("%s: %+v, %v, %v", what, id, present, err)
		}
		if d := a.Decide(id, notes); !d.Allowed || d.Email != "bob@example.com" || d.Role != controlapi.RoleMember {
			t.Errorf("%s: %+v", what, d)
		}
		for _, other := range []string{"id-photos", ""} {
			if d := a.Decide(id, other); d.Allowed || d.Reason != access.ReasonPassword {
				t.Errorf("%s, at %q: %+v", what, other, d)
			}
		}
		if !id.ByBrowser() || id.BySession() {
			t.Errorf("%s: it is by a session, or cannot be a browser's", what)
		}
	}
	if id, _, err := a.Password([]string{basic("MAYA@Bücher.example", mayas)}, notes); err != nil || id.AccountID != owner || id.Role != controlapi.RoleOwner {
		t.Errorf("the owner, by the other form of her domain: %+v, %v", id, err)
	}

	unpadded := "Basic " + base64.RawStdEncoding.EncodeToString([]byte("bob@example.com:"+bobs1))
	if strings.HasSuffix(good, "=") == strings.HasSuffix(unpadded, "=") {
		t.Fatal("nothing is padded")
	}
	for what, values := range map[string][]string{
		"another app's": {basic("bob@example.com", bobs2)}, "another person's": {basic("bob@example.com", mayas)},
		"under another name": {basic("maya@xn--bcher-kva.example", bobs1)}, "without a name": {basic("", bobs1)},
		"half a name": {basic("bob", bobs1)}, "unknown": {basic("bob@example.com", strings.Repeat("plp_", 9))},
		"nobody's here": {basic("@", unknown)}, "too short": {basic("bob@example.com", "plp_")},
		"in upper case": {basic("bob@example.com", "plp_"+strings.ToUpper(bobs1[4:]))}, "with a space": {basic("bob@example.com", bobs1+" ")},
		"twice": {good, good}, "right and wrong": {good, basic("bob@example.com", mayas)}, "wrong and right": {basic("bob@example.com", mayas), good},
		"in the wrong place": {basic(bobs1, "")}, "alone": {"Basic " + base64.StdEncoding.EncodeToString([]byte(bobs1))},
		"unpadded": {unpadded}, "with a dot": {good[:10] + "." + good[10:]},
		"a long name": {basic(strings.Repeat("a", 60_000)+"@example.com", bobs1)}, "a long one": {basic("bob@example.com", bobs1+strings.Repeat("a", 60_000))},
		"no address": {basic("bob@example.com@", bobs1)}, "Kelvin's sign": {basic("bob@example.com\u212a", bobs1)},
	} {
		if id, present, err := a.Password(values, notes); !present || err == nil || id != (access.Identity{}) {
			t.Errorf("%s: %+v, %v, %v", what, id, present, err)
		}
	}
	for what, values := range map[string][]string{
		"an app's own": {basic("bob@example.com", "secret")}, "with a colon": {basic("bob", "a:"+bobs1)}, "without a colon": {"Basic " + base64.StdEncoding.EncodeToString([]byte("secret"))},
		"no base64": {"Basic %%%"}, "nothing": {"Basic"}, "only spaces": {"Basic   "}, "empty": {""}, "none": nil, "a token": {"Bearer " + bobs1}, "another scheme": {"Digest" + good[5:]},
		"in upper case": {basic("bob@example.com", strings.ToUpper(bobs1))},
	} {
		if id, present, err := a.Password(values, notes); present || err != nil || id != (access.Identity{}) {
			t.Errorf("%s is taken for ours: %+v, %v", what, id, err)
		}
	}
}

// TestPasswordDecides: whoever it is by, a password is decided about as everything
// else is, and does not end with the person's sessions.
func TestPasswordDecides(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func([]controlapi.Person)
		want   access.Reason
	}{
		"signed out everywhere": {func(p []controlapi.Person) { p[1].Epoch = 9 }, ""},
		"withdrawn":             {func(p []controlapi.Person) { p[1].Apps = nil }, access.ReasonNotGiven},
		"removed":               {func(p []controlapi.Person) { p[1].Status = controlapi.PersonRemoved }, access.ReasonNotActive},
		"invited again":         {func(p []controlapi.Person) { p[1].Status, p[1].Epoch = controlapi.PersonPending, 9 }, access.ReasonNotActive},
	} {
		a, _ := open(t, t.TempDir(), newClock())
		a.SetSnapshot(withPasswords(c.change))
		id, _, err := a.Password([]string{basic("bob@example.com", bobs1)}, notes)
		if d := a.Decide(id, notes); err != nil || d.Reason != c.want || d.Allowed != (c.want == "") {
			t.Errorf("%s: %+v, %v; want %q", what, d, err, c.want)
		}
		programs.Got(a.GoDark())(t)
		decides(t, a, id, notes, access.ReasonDark, fmt.Sprintf("%s, in the dark", what))
	}
	c := newClock()
	a, _ := open(t, t.TempDir(), c)
	a.SetSnapshot(withPasswords(nil))
	id, _, _ := a.Password([]string{basic("bob@example.com", bobs1)}, notes)
	c.advance(25 * 3600e9)
	decides(t, a, id, notes, access.ReasonStale, "after a long silence")
}

// TestRevokedPasswordCloses: a snapshot without a password, or a deny record of it,
// closes what it has open and nothing else, and the record stands against snapshots and
// restarts.
func TestRevokedPasswordCloses(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	a, db := open(t, dir, c)
	a.SetSnapshot(withPasswords(nil))
	var cut []string
	enter := func(what string, id access.Identity) {
		t.Helper()
		d, leave := a.Enter(id, notes, func() { cut = append(cut, what) })
		t.Cleanup(leave)
		if !d.Allowed {
			t.Fatalf("%s: %+v", what, d)
		}
	}
	by := func(user, password string) access.Identity {
		t.Helper()
		id, _, err := a.Password([]string{basic(user, password)}, notes)
		programs.Must(t, err)
		return id
	}
	bobsID, mayasID := by("bob@example.com", bobs1), by("maya@example.com", mayas)
	enter("bob's", bobsID)
	enter("maya's", mayasID)
	enter("a token of bob's", access.Identity{AccountID: bob, GrantID: "g1"})

	change := store.PendingChange{ID: 1, PasswordID: "p1", Computer: "c"}
	if closed, err := a.TakeAway(change); err != nil || closed != 1 || len(cut) != 1 || cut[0] != "bob's" {
		t.Fatalf("closed %d, %v, %v", closed, cut, err)
	}
	for _, when := range []string{"at once", "after a snapshot", "after a restart"} {
		if _, present, err := a.Password([]string{basic("bob@example.com", bobs1)}, notes); !present || err == nil {
			t.Errorf("%s: it is taken", when)
		}
		decides(t, a, bobsID, notes, access.ReasonDenied, when)
		decides(t, a, mayasID, notes, "", fmt.Sprintf("%s, another one", when))
		if when == "at once" {
			a.SetSnapshot(withPasswords(nil))
			continue
		}
		db.Close()
		a, db = open(t, dir, c)
	}
	if pending, err := db.Pending(); err != nil || len(pending) != 1 || pending[0].PasswordID != "p1" {
		t.Errorf("still to be told: %+v, %v", pending, err)
	}
	if err := a.GiveBack(change); err != nil || !a.Decide(by("bob@example.com", bobs1), notes).Allowed {
		t.Errorf("not taken back: %v", err)
	}

	for _, taken := range []store.PendingChange{{ID: 2, AccountID: bob}, {ID: 3, AccountID: bob, AppID: notes}} {
		programs.Got(a.TakeAway(taken))(t)
		if _, present, err := a.Password([]string{basic("bob@example.com", bobs1)}, notes); !present || err == nil {
			t.Errorf("it is taken without %+v", taken)
		}
		programs.Must(t, a.GiveBack(taken))
	}

	enter("bob's again", bobsID)
	without := withPasswords(nil)
	without.Passwords = without.Passwords[1:]
	if closed := a.SetSnapshot(without); closed != 1 || cut[len(cut)-1] != "bob's again" {
		t.Errorf("by a snapshot: closed %d, %v", closed, cut)
	}
	decides(t, a, bobsID, notes, access.ReasonPassword, "by a snapshot without it")
	// The same id for somebody else, or for another app, is another password.
	without.Passwords = []controlapi.AppPassword{row("p1", owner, notes, bobs1)}
	a.SetSnapshot(without)
	decides(t, a, bobsID, notes, access.ReasonPassword, "the same id for another")
}

// FuzzOwnPassword: whatever a visitor sends is ours or the app's, and nothing between.
func FuzzOwnPassword(f *testing.F) {
	for _, seed := range []string{basic("bob@example.com", bobs1), "Basic " + bobs1, "basic\tcGxwXw", "Basic =-_/+", "Basic OnBscF8=", "Bearer x", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		read, ours := access.OwnPassword(value)
		if ours != (strings.HasPrefix(read.Password, "plp_") || strings.HasPrefix(read.User, "plp_")) {
			t.Fatalf("%q is read as %+v, ours: %v", value, read, ours)
		}
		r := authorized(value)
		if user, password, ok := r.BasicAuth(); ok && strings.HasPrefix(password, "plp_") && !ours {
			t.Fatalf("an app reads %q of %s in %q", password, user, value)
		}
		if ours && !access.HoldsPassword(value) {
			t.Fatalf("%q reaches an app", value)
		}
		for _, held := range []string{value + " " + bobs1, value + " " + base64.StdEncoding.EncodeToString([]byte(value+bobs1))} {
			if !access.HoldsPassword(held) {
				t.Fatalf("%q reaches an app", held)
			}
		}
	})
}

// BenchmarkPassword: what a right and a wrong one cost.
func BenchmarkPassword(b *testing.B) {
	a, _ := open(b, b.TempDir(), newClock())
	s := withPasswords(nil)
	for len(s.Passwords) < controlapi.MaxPasswordsComputer {
		s.Passwords = append(s.Passwords, row("x"+string(rune(len(s.Passwords))), owner, notes, string(rune(len(s.Passwords)))))
	}
	a.SetSnapshot(s)
	for what, value := range map[string]string{"right": basic("bob@example.com", bobs1), "wrong": basic("bob@example.com", unknown+"x"), "an app's own": basic("bob", "x")} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.Password([]string{value}, notes)
			}
		})
	}
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a.Password(nil, notes)
		}
	})
}

// TestConnectionThatRests: one that a password was let in on is cut with the password,
// also when that ended just before, counts as nothing that is open, and is forgotten
// when it is gone.
func TestConnectionThatRests(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	a.SetSnapshot(withPasswords(nil))
	id, _, err := a.Password([]string{basic("bob@example.com", bobs1)}, notes)
	programs.Must(t, err)
	cut := 0
	rest := func() (leave func()) { return a.Rest(id, notes, func() { cut++ }) }
	defer rest()()
	gone := rest()
	gone()
	if a.AnyOpen() || len(a.Connections()) != 0 || len(a.Visitors()) != 0 {
		t.Errorf("it counts as open: %v, %v", a.Connections(), a.Visitors())
	}
	if closed := a.SetSnapshot(snapshot(nil)); closed != 0 || cut != 1 {
		t.Errorf("closed %d, cut %d", closed, cut)
	}
	defer rest()()
	if cut != 2 {
		t.Errorf("after the password ended: cut %d", cut)
	}
}

// Requests without a password, nearly all, pay nothing for there being some.
func TestNoPasswordCostsNothing(t *testing.T) {
	a, _ := open(t, t.TempDir(), newClock())
	a.SetSnapshot(withPasswords(nil))
	if n := testing.AllocsPerRun(100, func() { a.Password(nil, notes) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

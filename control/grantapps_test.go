package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// mostApps is how many a grant may name.
const mostApps = maxGrantApps

// someApps is a computer of maya's with apps, of which bob may open Notes and Photos.
type someApps struct {
	registered
	computer string
	bob      Account
}

var threeApps = []controlapi.App{
	{ID: "n1", Name: "notes", Label: "Notes", Live: true},
	{ID: "p1", Name: "photos", Label: "Photos", Live: true},
	{ID: "d1", Name: "diary", Label: "Diary", Live: true},
}

func (b *bench) someApps() someApps {
	b.t.Helper()
	s := someApps{registered: b.registered(), computer: b.owner().Computer.ID}
	programs.Must(b.t, b.Agents.NoteAppGrants(b.t.Context(), s.computer, true))
	s.report(threeApps...)
	s.bob = b.joined(s.computer, "bob@example.com", "n1", "p1")
	return s
}

func (s someApps) report(apps ...controlapi.App) {
	s.t.Helper()
	programs.Must(s.t, s.Agents.PutApps(s.t.Context(), s.computer, controlapi.Apps{Apps: apps}))
}

func (s someApps) codeFor(apps ...string) (string, error) {
	return s.Grants.Authorize(s.t.Context(), Authorization{ClientID: s.ID, RedirectURI: s.redirect, Challenge: challengeOf(proof), Apps: apps}, s.bob, "maya")
}

func (s someApps) grantedFor(apps ...string) Tokens {
	s.t.Helper()
	return ok[Tokens](s.t)(s.exchange(ok[string](s.t)(s.codeFor(apps...))))
}

func (s someApps) snapshot() controlapi.Snapshot {
	s.t.Helper()
	return ok[controlapi.Snapshot](s.t)(s.Agents.Snapshot(s.t.Context(), s.computer))
}

// A grant for some apps is told with them, by an id that says so, through every refresh;
// one for all is told as before.
func TestGrantForSomeApps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	all := s.granted(s.bob, "maya")
	if snap := s.snapshot(); snap.GrantApps != nil || controlapi.IsLimitedGrant(grantID(all.Refresh)) {
		t.Errorf("of a grant for all it says %v", snap.GrantApps)
	}
	tokens := s.grantedFor("p1", "n1", "p1")
	for range 2 {
		id := grantID(tokens.Refresh)
		if !controlapi.IsLimitedGrant(id) || !idPattern.MatchString(id) {
			t.Errorf("its id is %s", id)
		}
		if snap := s.snapshot(); len(snap.GrantApps) != 1 || !slices.Equal(snap.GrantApps[id], []string{"n1", "p1"}) {
			t.Errorf("the snapshot says %v", snap.GrantApps)
		}
		tokens = ok[Tokens](t)(s.use(tokens.Refresh))
	}
	for _, g := range ok[[]controlapi.Grant](t)(b.Grants.OfComputer(t.Context(), s.computer)) {
		if want := map[bool]int{true: 2}[controlapi.IsLimitedGrant(g.ID)]; len(g.Apps) != want {
			t.Errorf("it lists %+v", g)
		}
	}
	mine := ok[[]AccountGrant](t)(b.Grants.OfAccount(t.Context(), s.bob.ID))
	if len(mine) != 1 || mine[0].Apps != nil || mine[0].Labels != nil {
		t.Errorf("one for all beside it: %+v", mine)
	}
	_, err := s.exchange("1" + strings.Repeat("x", tokenLen-1))
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
}

// An app that its owner revokes is taken out of grants, and approved anew it is another
// one. A grant left without any ends.
func TestRevokedAppLeavesGrants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	notes, both, all := s.grantedFor("n1"), s.grantedFor("n1", "p1"), s.granted(s.bob, "maya")
	before := s.snapshot()
	s.report(threeApps[2], threeApps[0], threeApps[1])
	off := slices.Clone(threeApps)
	off[0].Live, off[0].Label = false, "Jottings"
	s.report(off...)
	if snap := s.snapshot(); snap.Grants != before.Grants || len(snap.GrantApps) != 2 {
		t.Errorf("an app that is off for now: %v", snap.GrantApps)
	}
	b.clock.Add(24 * time.Hour)
	s.report(threeApps[1:]...)
	snap := s.snapshot()
	if len(snap.GrantApps) != 1 || !slices.Equal(snap.GrantApps[grantID(both.Refresh)], []string{"p1"}) || snap.Grants == before.Grants {
		t.Errorf("without Notes the snapshot says %v", snap.GrantApps)
	}
	if len(snap.RevokedGrants) != 1 || snap.RevokedGrants[0].ID != grantID(notes.Refresh) || snap.RevokedGrants[0].ClientName != "Pocket Notes" {
		t.Errorf("it tells %+v", snap.RevokedGrants)
	}
	s.report(append([]controlapi.App{{ID: "n2", Name: "notes", Label: "Notes", Live: true}}, threeApps[1:]...)...)
	_, err := s.use(notes.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
	ok[Tokens](t)(s.use(all.Refresh))
	for _, g := range ok[[]controlapi.Grant](t)(b.Grants.OfComputer(t.Context(), s.computer)) {
		if g.ID == grantID(both.Refresh) && !slices.Equal(g.Apps, []string{"p1"}) || !controlapi.IsLimitedGrant(g.ID) && g.Apps != nil {
			t.Errorf("%+v", g)
		}
	}
	// It lives as long as before: to be narrowed is no use of it.
	b.clock.Add(grantLife - 22*time.Hour) // the store ends what is far away by whole hours
	_, err = s.use(both.Refresh)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
}

// A grant whose time is over, and which the store has not forgotten yet, keeps no app from
// being revoked.
func TestRevokedAppOfAnOldGrant(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	b.clock.Add(10 * time.Minute) // it ends at the next whole hour
	id := grantID(s.grantedFor("n1", "p1").Refresh)
	b.clock.Add(grantLife + time.Minute)
	if got := s.snapshot().GrantApps[id]; len(got) != 2 {
		t.Fatalf("the store has forgotten it: %v", got)
	}
	s.report(threeApps[1:]...)
	if got := s.snapshot().GrantApps[id]; !slices.Equal(got, []string{"p1"}) {
		t.Errorf("the snapshot says %v", got)
	}
}

// A code gives what of its apps is still there, and nothing else in their place.
func TestCodeForRevokedApps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	one, two := ok[string](t)(s.codeFor("n1")), ok[string](t)(s.codeFor("n1", "p1"))
	s.report(threeApps[1:]...)
	for range 2 { // it is used up
		_, err := s.exchange(one)
		wantRefusal(t, err, controlapi.CodeInvalidGrant)
	}
	tokens := ok[Tokens](t)(s.exchange(two))
	if got := s.snapshot().GrantApps; len(got) != 1 || !slices.Equal(got[grantID(tokens.Refresh)], []string{"p1"}) {
		t.Errorf("%v", got)
	}
	if b.rows(keyComputerGrants(s.computer)) != 1 {
		t.Error("the first code gave something")
	}
}

// A row that a program of before wrote, which drops the apps, gives no token for all.
func TestGrantThatLostItsApps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	tokens := s.grantedFor("n1")
	edit(b, keyGrant(grantID(tokens.Refresh)), func(g *grant) { g.Apps = nil })
	_, err := s.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
	if apps, listed := s.snapshot().GrantApps[grantID(tokens.Refresh)]; !listed || len(apps) != 0 {
		t.Errorf("the agent is told %v", apps)
	}
}

// A form that was tampered with lets a client into nothing that its person cannot open.
func TestAllowOnlyWhatOneMayOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	other := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "zoe@example.com", "zoe"))
	programs.Must(t, b.Agents.PutApps(t.Context(), other.Computer.ID, controlapi.Apps{Apps: []controlapi.App{{ID: "z1", Name: "notes", Label: "Notes", Live: true}}}))
	for _, apps := range [][]string{{"d1"}, {"n1", "d1"}, {"z1"}, {"none"}, {""}, {"n1", ""}, {"*"}, {"N1"}, {"n1/"}} {
		_, err := s.codeFor(apps...)
		wantRefusal(t, err, controlapi.CodeForbidden)
	}
	ends := b.clock.Now().Add(time.Hour)
	b.changePerson(s.computer, s.bob.ID, func(p *person) { p.Until = map[string]time.Time{"p1": ends} })
	ok[string](t)(s.codeFor("n1", "p1"))
	b.clock.Add(time.Hour)
	_, err := s.codeFor("n1", "p1")
	wantRefusal(t, err, controlapi.CodeForbidden)
	off := slices.Clone(threeApps)
	off[0].Live = false
	s.report(off...)
	_, err = s.codeFor("n1")
	wantRefusal(t, err, controlapi.CodeForbidden)
	if b.rows(keyAuthorization("")) != 0 { // the good one is too old
		t.Error("a refused one left a code")
	}
}

// Weakness: the apps of grants are in every snapshot, and people may make as many grants
// as they like. Checked: one is for few apps, those of a computer for a bounded number,
// and what was revoked makes room.
func TestGrantedAppsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	many := make([]controlapi.App, mostApps+1)
	ids := make([]string, len(many))
	for n := range many {
		ids[n] = fmt.Sprintf("%064d", n)
		many[n] = controlapi.App{ID: ids[n], Name: fmt.Sprint("a", n), Label: "A", Live: true}
	}
	s.report(many...)
	b.changePerson(s.computer, s.bob.ID, func(p *person) { p.Apps = ids })
	_, err := s.codeFor(ids...)
	wantRefusal(t, err, controlapi.CodeForbidden)
	ok[string](t)(s.codeFor(ids[:mostApps]...))
	full := maxGrantedApps/(mostApps+1) - 1
	var last string
	var others []grant
	for range full {
		last = "1" + anID()
		others = append(others, grant{ID: last, AccountID: anID(), ClientID: anID(), ComputerID: s.computer, Apps: ids[:mostApps]})
	}
	b.keepGrants(others...)
	ok[Tokens](t)(s.exchange(ok[string](t)(s.codeFor(ids[:mostApps]...))))
	_, err = s.codeFor(ids[:mostApps]...)
	wantRefusal(t, err, controlapi.CodeForbidden)
	if size := len(ok[[]byte](t)(json.Marshal(s.snapshot()))); size > controlapi.MaxAnswer/8 {
		t.Errorf("the snapshot has %d bytes", size)
	}
	ok[string](t)(s.code(s.bob, "maya"))
	b.change(func(tx *txn) { tx.revokeGrant(last) })
	ok[string](t)(s.codeFor(ids[:mostApps]...))
}

// Weakness: an agent of before takes a token of a grant for one app for one of all.
// Checked: without the word of the agent that was here last, nothing is given for some
// apps: no code, no token for one from before, no refresh, which all hold again with it.
func TestOldAgentGetsNoGrantForSomeApps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	knows := func(is bool) { programs.Must(t, b.Agents.NoteAppGrants(t.Context(), s.computer, is)) }
	tokens, all, code := s.grantedFor("n1"), s.granted(s.bob, "maya"), ok[string](t)(s.codeFor("n1"))
	knows(false)
	_, err := s.codeFor("n1")
	if !IsRefusal(err, controlapi.CodeForbidden) || !strings.Contains(err.Error(), "too old") {
		t.Errorf("consent: %v", err)
	}
	for range 2 {
		_, err = s.exchange(code)
		wantRefusal(t, err, controlapi.CodeInvalidGrant)
		_, err = s.use(tokens.Refresh)
		wantRefusal(t, err, controlapi.CodeInvalidGrant)
	}
	all = ok[Tokens](t)(s.use(all.Refresh))
	ok[Tokens](t)(s.exchange(ok[string](t)(s.code(s.bob, "maya"))))
	knows(true)
	tokens = ok[Tokens](t)(s.use(tokens.Refresh))
	if len(s.snapshot().GrantApps) != 1 {
		t.Errorf("%v", s.snapshot().GrantApps)
	}
	// Another machine in its place has said nothing yet.
	ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", "maya"))
	_, err = s.use(tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
	ok[Tokens](t)(s.use(all.Refresh))
	knows(true)
	ok[Tokens](t)(s.use(tokens.Refresh))
	programs.Must(t, b.Agents.NoteAppGrants(t.Context(), anID(), true)) // one that was removed meanwhile
}

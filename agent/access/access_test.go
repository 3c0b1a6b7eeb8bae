package access_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	owner = "acc-owner"
	bob   = "acc-bob"
	notes = "id-notes"
)

// clock is a time that moves only when a test says so.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.at.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func people() []controlapi.Person {
	return []controlapi.Person{
		{AccountID: owner, Email: "maya@example.com", Role: controlapi.RoleOwner, Status: controlapi.PersonActive, Epoch: 1},
		{AccountID: bob, Email: "bob@example.com", Role: controlapi.RoleMember, Status: controlapi.PersonActive, Apps: []string{notes}, Epoch: 1},
	}
}

func snapshot(change func([]controlapi.Person)) controlapi.Snapshot {
	all := people()
	if change != nil {
		change(all)
	}
	return controlapi.Snapshot{Version: "v", Computer: controlapi.Computer{ID: "c"}, People: all}
}

// decides wants a decision to be for that reason; empty: it allows. when says what is decided.
func decides(t *testing.T, a *access.Access, id access.Identity, appID string, why access.Reason, when string) {
	t.Helper()
	if d := a.Decide(id, appID); d.Reason != why || d.Allowed != (why == "") {
		t.Errorf("%s: %+v, want %q", when, d, why)
	}
}

// open is who may come in by the store of a data directory.
func open(t testing.TB, dir string, c *clock) (*access.Access, *store.Store) {
	t.Helper()
	db := openStore(t, dir)
	return newAccess(t, access.Config{Store: db, Now: c.now}), db
}

func openStore(t testing.TB, dir string, opts ...store.Option) *store.Store {
	t.Helper()
	db := programs.Got(store.Open(dir, opts...))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func newAccess(t testing.TB, cfg access.Config) *access.Access {
	t.Helper()
	return programs.Got(access.New(cfg))(t)
}

func TestDecide(t *testing.T) {
	t.Parallel()
	identity := access.Identity{AccountID: bob, Epoch: 1}
	token := access.Identity{AccountID: bob, GrantID: "g1"}
	for what, c := range map[string]struct {
		change func([]controlapi.Person)
		id     access.Identity
		app    string
		want   access.Reason
	}{
		"granted":                 {nil, identity, notes, ""},
		"the launcher":            {nil, identity, "", ""},
		"another app":             {nil, identity, "id-photos", access.ReasonNotGiven},
		"the owner":               {nil, access.Identity{AccountID: owner, Epoch: 1}, "id-photos", ""},
		"nobody":                  {nil, access.Identity{Epoch: 1}, notes, access.ReasonUnknown},
		"a stranger":              {nil, access.Identity{AccountID: "acc-eve", Epoch: 1}, notes, access.ReasonUnknown},
		"a claimed role":          {nil, access.Identity{AccountID: bob, Epoch: 1, Role: controlapi.RoleOwner}, "id-photos", access.ReasonNotGiven},
		"invited":                 {func(p []controlapi.Person) { p[1].Status = controlapi.PersonPending }, identity, notes, access.ReasonNotActive},
		"revoked":                 {func(p []controlapi.Person) { p[1].Status = controlapi.PersonRemoved }, identity, notes, access.ReasonNotActive},
		"a revoked owner":         {func(p []controlapi.Person) { p[0].Status = controlapi.PersonRemoved }, access.Identity{AccountID: owner, Epoch: 1}, notes, access.ReasonNotActive},
		"a status never heard of": {func(p []controlapi.Person) { p[1].Status = "" }, identity, notes, access.ReasonNotActive},
		"signed out everywhere":   {func(p []controlapi.Person) { p[1].Epoch = 2 }, identity, notes, access.ReasonSessionOver},
		"a snapshot behind":       {nil, access.Identity{AccountID: bob, Epoch: 2}, notes, access.ReasonBehind},
		"withdrawn":               {func(p []controlapi.Person) { p[1].Apps = nil }, identity, notes, access.ReasonNotGiven},
		"a token":                 {nil, token, notes, ""},
		"a token, newer epoch":    {func(p []controlapi.Person) { p[1].Epoch = 9 }, token, notes, ""},
		"a token, other app":      {nil, token, "id-photos", access.ReasonNotGiven},
		"a revoked grant":         {nil, access.Identity{AccountID: bob, GrantID: "gone"}, notes, access.ReasonGrant},
	} {
		a, _ := open(t, t.TempDir(), newClock())
		if d := a.Decide(c.id, c.app); d.Allowed || d.Reason != access.ReasonNoSnapshot {
			t.Errorf("%s, without a snapshot: %+v", what, d)
		}
		s := snapshot(c.change)
		s.RevokedGrants = []controlapi.RevokedGrant{{ID: "gone"}}
		a.SetSnapshot(s)
		if d := a.Decide(c.id, c.app); d.Reason != c.want || d.Allowed != (c.want == "") {
			t.Errorf("%s: %+v, want %q", what, d, c.want)
		}
	}
}

// Fail static: known people keep the access of the last snapshot for 24 hours
// after the last contact, across restarts, and not a minute longer.
func TestFailStatic(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	id := access.Identity{AccountID: bob, Epoch: 1}
	a, db := open(t, dir, c)
	a.SetSnapshot(snapshot(nil))
	c.advance(10 * time.Hour)
	a.SetSnapshot(controlapi.Snapshot{Version: "v", Unchanged: true})
	if a.Snapshot().Version != "v" || len(a.Snapshot().People) != 2 {
		t.Errorf("an unchanged answer changed the snapshot: %+v", a.Snapshot())
	}
	db.Close()
	a, db = open(t, dir, c)
	c.advance(24 * time.Hour)
	if d := a.Decide(id, notes); !d.Allowed || d.Email != "bob@example.com" {
		t.Errorf("24 h after the last contact: %+v", d)
	}
	c.advance(time.Second)
	decides(t, a, id, notes, access.ReasonStale, "later")
	db.Close()
	a, _ = open(t, dir, c)
	decides(t, a, id, notes, access.ReasonStale, "a restart gave access back")
	a.Touch()
	decides(t, a, id, notes, "", "in touch again")
}

// Only the digest of a cookie is kept: whoever copies the data directory cannot
// sign in with it.
func TestSessionsAreStoredHashed(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	a, db := open(t, dir, c)
	a.SetSnapshot(snapshot(nil))
	cookie := programs.Got(a.NewSession(notes, bob, 1, controlapi.ProofPasskey))(t)
	db.Close()
	raw := programs.Got(os.ReadFile(filepath.Join(dir, store.FileName)))(t)
	token, _ := base64.RawURLEncoding.DecodeString(cookie)
	for _, form := range [][]byte{token, []byte(cookie), []byte(hex.EncodeToString(token))} {
		if bytes.Contains(raw, form) {
			t.Error("the cookie is on disk")
		}
	}
	if sum := sha256.Sum256(token); !bytes.Contains(raw, sum[:]) {
		t.Error("the digest is not: this test looks at the wrong bytes")
	}
	a, _ = open(t, dir, c)
	id, _, ok := a.Session(cookie, notes)
	if !ok || id.AccountID != bob || id.Email != "bob@example.com" || id.Proof != controlapi.ProofPasskey || !a.Decide(id, notes).Allowed {
		t.Errorf("the session did not survive a restart: %+v %v", id, ok)
	}
}

// Sessions are bound to a host, bounded in number, slide, and end.
func TestSessions(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	a, db := open(t, dir, c)
	a.SetSnapshot(snapshot(nil))
	var cookies []string
	for range 20 {
		c.advance(time.Second)
		cookie := programs.Got(a.NewSession(notes, bob, 1, controlapi.ProofMail))(t)
		cookies = append(cookies, cookie)
	}
	alive := 0
	for i, cookie := range cookies {
		_, _, ok := a.Session(cookie, notes)
		if ok {
			alive++
		}
		if ok != (i >= 4) {
			t.Errorf("session %d of 20: %v", i, ok)
		}
		if _, _, ok := a.Session(cookie, "id-photos"); ok {
			t.Error("a session of one host holds at another")
		}
	}
	if alive != 16 {
		t.Errorf("%d sessions of one person on one host", alive)
	}
	last := cookies[19]
	for _, bad := range []string{"", "x", last[:42], last + "A", last[:42] + "!", "A" + last[1:], last[:40] + "===", string(make([]byte, 43))} {
		if bad == last {
			continue
		}
		if _, _, ok := a.Session(bad, notes); ok {
			t.Errorf("%q is a session", bad)
		}
	}

	c.advance(29 * 24 * time.Hour)
	if _, renewed, ok := a.Session(last, notes); !ok || !renewed {
		t.Fatalf("after 29 days: %v %v", renewed, ok)
	}
	if _, renewed, _ := a.Session(last, notes); renewed {
		t.Error("renewed twice within an hour")
	}
	// Run sweeps at its start and writes back at its end.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	programs.Must(t, a.Run(ctx))
	db.Close()
	a, db = open(t, dir, c)
	c.advance(29 * 24 * time.Hour)
	if _, _, ok := a.Session(last, notes); !ok {
		t.Error("the session did not slide on disk")
	}
	if _, _, ok := a.Session(cookies[18], notes); ok {
		t.Error("a session unseen for 58 days holds")
	}

	id, _, _ := a.Session(last, notes)
	cut := 0
	_, leave := a.Enter(id, notes, func() { cut++ })
	defer leave()
	if closed, err := a.SignOut(id.SessionKey); closed != 1 || cut != 1 || err != nil {
		t.Errorf("sign out closed %d, cut %d, %v", closed, cut, err)
	}
	if _, _, ok := a.Session(last, notes); ok {
		t.Error("signed out, and still a session")
	}
	if _, ok, _ := db.Session(id.SessionKey); ok {
		t.Error("signed out, and still stored")
	}
}

// Another computer id means another account: what the old one's sessions named
// means nothing any more.
func TestSessionsEndWithTheComputer(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	a.SetSnapshot(snapshot(nil))
	cookie, _ := a.NewSession(notes, bob, 1, controlapi.ProofMail)
	if _, _, ok := a.Session(cookie, notes); !ok {
		t.Fatal("no session")
	}
	other := snapshot(nil)
	other.Computer.ID = "another"
	a.SetSnapshot(other)
	if _, _, ok := a.Session(cookie, notes); ok {
		t.Error("a session outlived the account it was made under")
	}
}

// Weakness: access ends between the decision and the moment the connection is
// known, which then stays open for ever.
// Attack: sign out and take access away while requests arrive.
// Checked: once the closing call has returned, whatever entered allowed has
// been cancelled.
func TestNothingSlipsBetweenDecisionAndRegister(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	for round := range 60 {
		a.SetSnapshot(snapshot(nil))
		cookie := programs.Got(a.NewSession(notes, bob, 1, controlapi.ProofMail))(t)
		id, _, _ := a.Session(cookie, notes)
		type seen struct{ allowed, cancelled atomic.Bool }
		var entered [16]seen
		var workers, start sync.WaitGroup
		start.Add(1)
		leaves := make(chan func(), len(entered))
		for i := range entered {
			workers.Go(func() {
				start.Wait()
				id, _, ok := a.Session(cookie, notes)
				if !ok {
					return
				}
				d, leave := a.Enter(id, notes, func() { entered[i].cancelled.Store(true) })
				leaves <- leave
				entered[i].allowed.Store(d.Allowed)
			})
		}
		workers.Go(func() {
			start.Wait()
			if round%2 == 0 {
				if _, err := a.SignOut(id.SessionKey); err != nil {
					t.Error(err)
				}
			} else {
				a.SetSnapshot(snapshot(func(p []controlapi.Person) { p[1].Apps = nil }))
			}
		})
		start.Done()
		workers.Wait()
		close(leaves)
		for i := range entered {
			if entered[i].allowed.Load() && !entered[i].cancelled.Load() {
				t.Fatalf("round %d: a connection stays open", round)
			}
		}
		for leave := range leaves {
			leave()
			leave() // twice is once
		}
		if n := a.Connections(); len(n) != 0 {
			t.Fatalf("round %d: %v", round, n)
		}
	}
}

// Closing counts what it closes, once.
func TestClosing(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	a.SetSnapshot(snapshot(func(p []controlapi.Person) { p[1].Apps = []string{notes, "id-photos"} }))
	enter := func(id access.Identity, app string) {
		d, leave := a.Enter(id, app, func() {})
		if !d.Allowed {
			t.Fatalf("%+v", d)
		}
		t.Cleanup(leave)
	}
	enter(access.Identity{AccountID: owner, Epoch: 1}, notes)
	enter(access.Identity{AccountID: bob, Epoch: 1}, notes)
	enter(access.Identity{AccountID: bob, Epoch: 1}, "id-photos")
	enter(access.Identity{AccountID: bob, GrantID: "g1"}, "id-photos")
	enter(access.Identity{AccountID: owner, Epoch: 1}, "id-wiki")
	if n := a.Connections(); n[notes] != 2 || n["id-photos"] != 2 || n["id-wiki"] != 1 {
		t.Errorf("%v", n)
	}
	if n := a.CloseApp(notes); n != 2 {
		t.Errorf("app: %d", n)
	}
	if n := a.CloseApp(notes); n != 0 {
		t.Errorf("app, again: %d", n)
	}
	if n := a.CloseAll(); n != 3 {
		t.Errorf("all: %d", n)
	}
	if n := a.SetSnapshot(snapshot(func(p []controlapi.Person) { p[0].Status = controlapi.PersonRemoved })); n != 0 {
		t.Errorf("closed again: %d", n)
	}
}

func BenchmarkSessionAndDecide(b *testing.B) {
	a, _ := open(b, b.TempDir(), newClock())
	a.SetSnapshot(snapshot(nil))
	cookie := programs.Got(a.NewSession(notes, bob, 1, controlapi.ProofMail))(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var entry access.Open
		cancel := func() {}
		for pb.Next() {
			id, _, _ := a.Session(cookie, notes)
			d := a.EnterAs(&entry, id, notes, access.Cancel(cancel))
			if entry.Leave(); !d.Allowed {
				b.Error(d)
				return
			}
		}
	})
}

// A withdrawal while 4,000 connections of others are open.
func BenchmarkTakeAwayAmongMany(b *testing.B) {
	a, _ := open(b, b.TempDir(), newClock())
	a.SetSnapshot(snapshot(nil))
	cookie := programs.Got(a.NewSession(notes, owner, 1, controlapi.ProofMail))(b)
	id, _, _ := a.Session(cookie, notes)
	for range 4000 {
		if d, _ := a.Enter(id, notes, func() { b.Error("closed") }); !d.Allowed {
			b.Fatal(d)
		}
	}
	change := store.PendingChange{ID: 1, AccountID: bob, AppID: notes, At: time.Now()}
	for b.Loop() {
		programs.Got(a.TakeAway(change))(b)
		programs.Must(b, a.GiveBack(change))
	}
}

package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

func reopen(t *testing.T, dir string, old *store.Store) *store.Store {
	t.Helper()
	if old != nil {
		programs.Must(t, old.Close())
	}
	s := programs.Got(store.Open(dir))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSessionRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	key := func(n byte) (k store.SessionKey) { k[0] = n; return k }
	add := func(n byte, app, account string, seen time.Time) []store.SessionKey {
		t.Helper()
		dropped, err := s.AddSession(key(n), store.Session{AppID: app, AccountID: account, Epoch: 3, CreatedAt: at, SeenAt: seen}, 2)
		programs.Must(t, err)
		return dropped
	}
	add(1, "a", "bob", at.Add(2*time.Hour))
	add(2, "a", "bob", at.Add(time.Hour))
	add(3, "b", "bob", at)
	add(4, "a", "eve", at)
	// The third of one person on one host drops the longest unseen of those.
	if d := add(5, "a", "bob", at.Add(3*time.Hour)); len(d) != 1 || d[0] != key(2) {
		t.Errorf("dropped %v", d)
	}
	// Whatever letters an account has, its sessions are found again.
	for n, account := range []string{"<&>\"\\\u2028é", "bo", ""} {
		for i := range byte(3) {
			d := add(byte(10*(n+2))+i, "c", account, at.Add(time.Duration(i)*time.Hour))
			if (len(d) == 1 && d[0] == key(byte(10*(n+2)))) != (i == 2) {
				t.Errorf("session %d of %q dropped %v", i, account, d)
			}
		}
	}
	programs.Must(t, s.TouchSessions(map[store.SessionKey]time.Time{key(1): at.Add(9 * time.Hour), key(2): at}))
	s = reopen(t, dir, s)
	if got, ok, err := s.Session(key(1)); !ok || err != nil || !got.SeenAt.Equal(at.Add(9*time.Hour)) || got.Epoch != 3 || got.AccountID != "bob" || got.AppID != "a" {
		t.Errorf("%+v %v %v", got, ok, err)
	}
	if _, ok, _ := s.Session(key(2)); ok {
		t.Error("touching made a dropped session again")
	}
	programs.Must(t, s.DeleteSession(key(1)))
	deleted, err := s.DeleteSessions(func(x store.Session) bool { return x.AccountID == "bob" })
	if err != nil || len(deleted) != 2 {
		t.Errorf("%v %v", deleted, err)
	}
	for n, want := range map[byte]bool{1: false, 3: false, 4: true, 5: false} {
		if _, ok, _ := s.Session(key(n)); ok != want {
			t.Errorf("session %d: %v", n, ok)
		}
	}
}

func TestSnapshotRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	if _, _, ok, err := s.Snapshot(); ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	programs.Must(t, s.SaveSnapshot(controlapi.Snapshot{Version: "7", People: []controlapi.Person{{AccountID: "bob", Apps: []string{"a"}}}}, at))
	programs.Must(t, s.SaveContact(at.Add(time.Hour)))
	s = reopen(t, dir, s)
	snap, contact, ok, err := s.Snapshot()
	if !ok || err != nil || snap.Version != "7" || len(snap.People) != 1 || snap.People[0].Apps[0] != "a" || !contact.Equal(at.Add(time.Hour)) {
		t.Errorf("%+v %v %v %v", snap, contact, ok, err)
	}
}

func TestDenyRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, d := range []store.DenyRecord{{AccountID: "bob", At: at}, {AccountID: "bob", AppID: "a", At: at}, {GrantID: "bob", At: at}, {AccountID: "bob", At: at.Add(time.Hour)}} {
		programs.Must(t, s.AddDenyRecord(d))
	}
	programs.Must(t, s.GiveBack(store.PendingChange{AccountID: "bob", AppID: "a"}))
	s = reopen(t, dir, s)
	all, err := s.DenyRecords()
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v %v", all, err)
	}
	for _, d := range all {
		if !d.At.Equal(at) || d.AppID != "" {
			t.Errorf("%+v", d)
		}
	}
}

func TestInstance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	first, err := s.Instance()
	if err != nil || len(first.ID) != 8 || len(first.Key) != 32 {
		t.Fatalf("%+v %v", first, err)
	}
	s = reopen(t, dir, s)
	again, err := s.Instance()
	if err != nil || again.ID != first.ID || string(again.Key) != string(first.Key) {
		t.Errorf("%+v became %+v (%v)", first, again, err)
	}
	other, err := reopen(t, t.TempDir(), nil).Instance()
	if err != nil || other.ID == first.ID || string(other.Key) == string(first.Key) {
		t.Errorf("two data directories are %+v (%v)", other, err)
	}
}

// TestBecomeComputer: people and sessions belong to one computer at one control
// plane; what the owner decided does not.
func TestBecomeComputer(t *testing.T) {
	t.Parallel()
	for id, stays := range map[string]bool{"c1": true, "c2": false, "": false} {
		s := reopen(t, t.TempDir(), nil)
		key := store.SessionKey{1}
		snap := controlapi.Snapshot{Version: "v", Computer: controlapi.Computer{ID: "c1"}}
		programs.Must(t, s.SaveSnapshot(snap, time.Now()))
		programs.Got(s.AddSession(key, store.Session{AccountID: "a"}, 1))(t)
		programs.Must(t, s.AddDenyRecord(store.DenyRecord{AccountID: "a"}))
		clients := store.Clients{Computer: "c1", Grants: []controlapi.Grant{{AccountID: "a", Email: "a@example.com"}}}
		programs.Must(t, s.SaveClients(clients), s.SaveSilence(store.Silence{Spent: time.Hour}))
		programs.Must(t, s.BecomeComputer(id))
		_, _, haveSnapshot, err := s.Snapshot()
		if err != nil || haveSnapshot != stays {
			t.Errorf("as %q the snapshot is there: %v, %v", id, haveSnapshot, err)
		}
		if _, ok, err := s.Session(key); err != nil || ok != stays {
			t.Errorf("as %q the session is there: %v, %v", id, ok, err)
		}
		if kept, err := s.Clients(); err != nil || (len(kept.Grants) == 1) != stays {
			t.Errorf("as %q the remote clients are %v, %v", id, kept, err)
		}
		if _, ok, err := s.Silence(); err != nil || ok != stays {
			t.Errorf("as %q the silence is there: %v, %v", id, ok, err)
		}
		if records, err := s.DenyRecords(); err != nil || len(records) != 1 {
			t.Errorf("as %q the denials are %v, %v", id, records, err)
		}
	}
}

// Weakness: a key that signs who visitors are, made before the first snapshot, went on at
// another computer. Checked: it goes, and with the snapshot of this computer it stays.
func TestBecomeComputerForgetsItsKey(t *testing.T) {
	t.Parallel()
	for _, synced := range []bool{true, false} {
		s := reopen(t, t.TempDir(), nil)
		if synced {
			programs.Must(t, s.SaveSnapshot(controlapi.Snapshot{Version: "v", Computer: controlapi.Computer{ID: "c1"}}, time.Now()))
		}
		programs.Must(t, s.SaveIdentityKeys([]store.IdentityKey{{Seed: make([]byte, 32)}}), s.BecomeComputer("c1"))
		if keys, err := s.IdentityKeys(); err != nil || (len(keys) == 1) != synced {
			t.Errorf("with a snapshot: %t; the keys are %v, %v", synced, keys, err)
		}
	}
}

// Weakness: an earlier version, which knows no own domains, takes a session that was made at
// one for one of the app's own host, too. Checked: to it that is a session of no app and of no
// launcher; to this version it is as it was made.
func TestASessionOfAnOwnDomainIsWorthNothingElsewhere(t *testing.T) {
	t.Parallel()
	made := store.Session{AppID: "a", Own: "notes.maya.test", AccountID: "bob", Epoch: 3}
	raw := programs.Got(json.Marshal(made))(t)
	var before struct{ App, Account string }
	programs.Must(t, json.Unmarshal(raw, &before))
	if before.App == "a" || before.App == "" || before.Account != "bob" {
		t.Errorf("an earlier version reads %+v", before)
	}
	s := reopen(t, t.TempDir(), nil)
	programs.Got(s.AddSession(store.SessionKey{1}, made, 2))(t)
	programs.Must(t, s.TouchSessions(map[store.SessionKey]time.Time{{1}: time.Now()}))
	if got, ok, err := s.Session(store.SessionKey{1}); err != nil || !ok || got.AppID != "a" || got.Own != made.Own {
		t.Errorf("it is read as %+v, %v, %v", got, ok, err)
	}
	deleted := programs.Got(s.DeleteSessions(func(sess store.Session) bool { return sess.AppID == "a" }))(t)
	if len(deleted) != 1 {
		t.Error("it does not end with its app")
	}
}

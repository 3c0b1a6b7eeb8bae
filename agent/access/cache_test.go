package access

import (
	"testing"
	"time"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// cached is an Access with one session, and a clock that moves when it is told to.
func cached(t *testing.T) (a *Access, cookie string, key store.SessionKey, advance func(time.Duration)) {
	t.Helper()
	db := programs.Got(store.Open(t.TempDir()))(t)
	t.Cleanup(func() { db.Close() })
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	a = programs.Got(New(Config{Store: db, Now: func() time.Time { return now }}))(t)
	cookie = programs.Got(a.NewSession("id-notes", "acc-bob", 1, controlapi.ProofMail))(t)
	id, _, ok := a.Session(cookie, "id-notes")
	if !ok {
		t.Fatal("no session")
	}
	return a, cookie, id.SessionKey, func(d time.Duration) { now = now.Add(d) }
}

func (a *Access) evict(key store.SessionKey) {
	a.sessions.mu.Lock()
	defer a.sessions.mu.Unlock()
	delete(a.sessions.cache, key)
}

// Weakness: a request reads a session from the store, the person signs out, and the
// request puts what it read into the cache, where it lives on.
// Checked: what was read before a session ended is not cached.
func TestEndedSessionIsNotCached(t *testing.T) {
	t.Parallel()
	a, cookie, key, _ := cached(t)
	a.evict(key)
	ended := a.sessions.ended.Load()
	read, ok, err := a.store.Session(key)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	programs.Got(a.SignOut(key))(t)
	if sess, kept := a.remember(key, read, ended); kept || sess != nil {
		t.Errorf("an ended session was cached: %+v", sess)
	}
	if _, _, ok := a.Session(cookie, "id-notes"); ok {
		t.Error("signed out, and still a session")
	}
}

// When a session was last used is not lost with its place in the cache, before it
// is written to the store.
func TestLastUseOutlivesTheCache(t *testing.T) {
	t.Parallel()
	a, cookie, key, advance := cached(t)
	for range 3 {
		advance(29 * 24 * time.Hour)
		a.evict(key)
		if _, renewed, ok := a.Session(cookie, "id-notes"); !ok || !renewed {
			t.Fatalf("used 29 days before: %v, renewed %v", ok, renewed)
		}
	}
}

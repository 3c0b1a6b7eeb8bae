package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

const (
	// SessionLife is how long a session lasts after it was last seen.
	SessionLife = 30 * 24 * time.Hour

	slideEvery     = time.Hour // how often a session's last use is written back
	keepPerHost    = 16        // sessions of one person on one host; the longest unseen goes
	maxCached      = 8192      // sessions in memory
	maxUnsaved     = 4096      // last uses waiting for the next flush
	sessionEncoded = 43        // characters of a cookie value
)

// sessions caches what the store holds. A session that is not cached is looked
// for in the store, so the cache may forget any.
type sessions struct {
	mu      sync.RWMutex
	cache   map[store.SessionKey]*session  // guarded by mu
	unsaved map[store.SessionKey]time.Time // guarded by mu: last uses not yet in the store

	// ended counts how often sessions were taken away; it grows under mu. A
	// request that looked its session up before such a moment looks again once
	// it is registered.
	ended atomic.Uint64
}

type session struct {
	store.Session              // SeenAt is not read: see seen
	seen          atomic.Int64 // unix nanoseconds, to slideEvery
}

// unended is true when no session was taken away since ended was read.
func (s *sessions) unended(ended uint64) bool { return s.ended.Load() == ended }

// NewSession signs a person in on the host of one app (empty: the launcher) and
// returns the cookie's value: 256 random bits of which only the digest is kept. Proof is
// how they showed who they are.
func (a *Access) NewSession(appID, accountID string, epoch int64, proof controlapi.Proof) (cookie string, err error) {
	return a.NewSessionAt("", appID, accountID, epoch, proof)
}

// NewSessionAt is NewSession at an own domain of the app.
func (a *Access) NewSessionAt(own, appID, accountID string, epoch int64, proof controlapi.Proof) (cookie string, err error) {
	var token [32]byte
	rand.Read(token[:])
	key := store.SessionKey(sha256.Sum256(token[:]))
	now := a.now().UTC()
	sess := store.Session{AppID: appID, Own: own, AccountID: accountID, Epoch: epoch, Proof: proof, CreatedAt: now, SeenAt: now}
	dropped, err := a.store.AddSession(key, sess, keepPerHost)
	if err != nil {
		return "", fmt.Errorf("keep the session: %w", err)
	}
	a.forget(dropped...)
	return base64.RawURLEncoding.EncodeToString(token[:]), nil
}

// Session looks a cookie's value up. ok is false unless it is a session of this
// host that is not over. renewed is true about once an hour: the cookie should
// be set again, so that the browser's copy slides too.
func (a *Access) Session(cookie, appID string) (id Identity, renewed, ok bool) {
	return a.SessionAt("", cookie, appID)
}

// SessionAt is Session at an own domain of the app.
func (a *Access) SessionAt(own, cookie, appID string) (id Identity, renewed, ok bool) {
	key, ok := sessionKey(cookie)
	if !ok {
		return Identity{}, false, false
	}
	// Read before the session is: one that ends in between is looked up again.
	ended := a.sessions.ended.Load()
	sess := a.lookup(key)
	if sess == nil || sess.AppID != appID || sess.Own != own {
		return Identity{}, false, false
	}
	now := a.now()
	seen := sess.seen.Load()
	idle := now.Sub(time.Unix(0, seen))
	if idle > SessionLife {
		return Identity{}, false, false
	}
	if idle >= slideEvery && sess.seen.CompareAndSwap(seen, now.UnixNano()) {
		a.sessions.mu.Lock()
		if len(a.sessions.unsaved) < maxUnsaved {
			a.sessions.unsaved[key] = now.UTC()
		}
		a.sessions.mu.Unlock()
		renewed = true
	}
	id = Identity{AccountID: sess.AccountID, SessionKey: key, Epoch: sess.Epoch, Proof: sess.Proof, ended: ended}
	if p := a.state.Load().people[sess.AccountID]; p != nil {
		id.Email, id.Role = p.Email, p.Role
	}
	return id, renewed, true
}

// SessionApp is the app of the session that a cookie's value is of; ok is false for
// one that is over. It is not a use of the session, which Session answers for.
func (a *Access) SessionApp(cookie string) (appID string, ok bool) {
	key, ok := sessionKey(cookie)
	if !ok {
		return "", false
	}
	sess := a.lookup(key)
	if sess == nil || a.now().Sub(time.Unix(0, sess.seen.Load())) > SessionLife {
		return "", false
	}
	return sess.AppID, true
}

// SessionBegan is when a session was made.
func (a *Access) SessionBegan(key store.SessionKey) (at time.Time, ok bool) {
	if sess := a.lookup(key); sess != nil {
		return sess.CreatedAt, true
	}
	return time.Time{}, false
}

// strictURL and strictBasic take one form of each value only.
var (
	strictURL   = base64.RawURLEncoding.Strict()
	strictBasic = base64.StdEncoding.Strict()
)

func sessionKey(cookie string) (key store.SessionKey, ok bool) {
	if len(cookie) != sessionEncoded {
		return key, false
	}
	var encoded [sessionEncoded]byte // not on the heap, as a conversion would be
	copy(encoded[:], cookie)
	var token [32]byte
	if n, err := strictURL.Decode(token[:], encoded[:]); err != nil || n != len(token) {
		return key, false
	}
	return sha256.Sum256(token[:]), true
}

// SignOut ends one session and closes what it has open.
func (a *Access) SignOut(key store.SessionKey) (closed int, err error) {
	err = a.store.DeleteSession(key)
	a.forget(key)
	closed = a.closeSession(key)
	if err != nil {
		return closed, fmt.Errorf("sign out: %w", err)
	}
	return closed, nil
}

// lookup returns a session, or nil.
func (a *Access) lookup(key store.SessionKey) *session {
	a.sessions.mu.RLock()
	sess := a.sessions.cache[key]
	a.sessions.mu.RUnlock()
	if sess != nil {
		return sess
	}
	ended := a.sessions.ended.Load()
	stored, ok, err := a.store.Session(key)
	if err != nil {
		a.log.Error("a session could not be read", "err", err)
		return nil
	}
	if !ok {
		return nil
	}
	if sess, cached := a.remember(key, stored, ended); cached {
		return sess
	}
	// Something ended between reading and caching, perhaps this session.
	if stored, ok, err = a.store.Session(key); err != nil || !ok {
		return nil
	}
	return newSession(stored)
}

func (a *Access) sessionExists(key store.SessionKey) bool { return a.lookup(key) != nil }

// remember caches a session, unless any ended since ended was read. The one
// cached already wins.
func (a *Access) remember(key store.SessionKey, stored store.Session, ended uint64) (sess *session, cached bool) {
	s := &a.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unended(ended) {
		return nil, false
	}
	if sess := s.cache[key]; sess != nil {
		return sess, true
	}
	for old := range s.cache {
		if len(s.cache) < maxCached {
			break
		}
		delete(s.cache, old)
	}
	if later, ok := s.unsaved[key]; ok {
		stored.SeenAt = later
	}
	sess = newSession(stored)
	s.cache[key] = sess
	return sess, true
}

func newSession(stored store.Session) *session {
	sess := &session{Session: stored}
	sess.seen.Store(stored.SeenAt.UnixNano())
	return sess
}

// forget drops ended sessions from memory. They are gone from the store.
func (a *Access) forget(keys ...store.SessionKey) {
	if len(keys) == 0 {
		return
	}
	a.sessions.mu.Lock()
	for _, k := range keys {
		delete(a.sessions.cache, k)
		delete(a.sessions.unsaved, k)
	}
	a.sessions.ended.Add(1)
	a.sessions.mu.Unlock()
}

// endSessions removes the sessions for which ends is true, from the store and from
// memory, and closes what they have open.
func (a *Access) endSessions(ends func(store.Session) bool) (closed int) {
	keys, err := a.store.DeleteSessions(ends)
	if err != nil {
		a.log.Error("ended sessions could not be removed", "err", err)
	}
	a.forget(keys...)
	for _, k := range keys {
		closed += a.closeSession(k)
	}
	return closed
}

// flushSessions writes back when sessions were last seen.
func (a *Access) flushSessions() {
	a.sessions.mu.Lock()
	unsaved := a.sessions.unsaved
	a.sessions.unsaved = map[store.SessionKey]time.Time{}
	a.sessions.mu.Unlock()
	if len(unsaved) == 0 {
		return
	}
	if err := a.store.TouchSessions(unsaved); err != nil {
		a.log.Error("when sessions were last used could not be kept", "err", err)
	}
}

// sweepSessions removes the sessions nobody can use again.
func (a *Access) sweepSessions() {
	a.flushSessions()
	st, now := a.state.Load(), a.now()
	a.endSessions(func(s store.Session) bool {
		if now.Sub(s.SeenAt) > SessionLife {
			return true
		}
		if s.Own != "" && st.received && !st.holds(s.Own, s.AppID) {
			return true
		}
		p := st.people[s.AccountID]
		return p != nil && (s.Epoch < p.Epoch || p.Status == controlapi.PersonRemoved)
	})
}

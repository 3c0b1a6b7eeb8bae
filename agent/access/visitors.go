package access

import (
	"errors"
	"fmt"

	"porchlight/agent/store"
)

// Visitor is somebody with something open now: a person, by their browsers and app
// passwords, or, where GrantID is set, a remote client of theirs.
type Visitor struct {
	AccountID string
	Email     string
	GrantID   string
	ClientID  string         // of GrantID
	Apps      map[string]int // open connections, by app id
}

// is says whether a connection is one of this visitor's.
func (v Visitor) is(c *Open) bool {
	return c.app != "" && c.id.AccountID == v.AccountID && c.id.GrantID == v.GrantID
}

// Visitors lists everybody with something open to an app now, in no order. The
// launcher is no app.
func (a *Access) Visitors() []Visitor {
	type key struct{ account, grant string }
	st := a.state.Load()
	found := map[key]*Visitor{}
	a.live.mu.Lock()
	for c := range a.live.all {
		if c.closed || c.rests || c.app == "" {
			continue
		}
		k := key{c.id.AccountID, c.id.GrantID}
		v := found[k]
		if v == nil {
			v = &Visitor{AccountID: k.account, GrantID: k.grant, ClientID: c.id.ClientID, Email: c.id.Email, Apps: map[string]int{}}
			found[k] = v
		}
		v.Apps[c.app]++
	}
	a.live.mu.Unlock()
	all := make([]Visitor, 0, len(found))
	for _, v := range found {
		if p := st.people[v.AccountID]; p != nil {
			v.Email = p.Email
		}
		all = append(all, *v)
	}
	return all
}

// Disconnect closes what one visitor has open and ends the sessions it was
// opened with, so that a stream that reconnects by itself does not get back in:
// coming back takes signing in, which a browser that is signed in at the control
// plane does by loading the page. The token of a remote client stays what it was, and
// so does an app password, which is a person's own.
// Nothing else of the person is closed.
func (a *Access) Disconnect(accountID, grantID string) (closed int, err error) {
	v := Visitor{AccountID: accountID, GrantID: grantID}
	keys := map[store.SessionKey]bool{}
	a.live.mu.Lock()
	for c := range a.live.all {
		if v.is(c) && c.id.BySession() {
			keys[c.id.SessionKey] = true
		}
	}
	a.live.mu.Unlock()
	// The sessions first, so that a visitor who comes back in between finds none.
	for k := range keys {
		if e := a.store.DeleteSession(k); e != nil {
			err = errors.Join(err, fmt.Errorf("end a session: %w", e))
		}
		a.forget(k)
	}
	return a.live.close(v.is), err
}

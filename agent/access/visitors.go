package access

import (
	"cmp"
	"errors"
	"fmt"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Party is who a visitor is: a person, by their browsers and app passwords, or, where
// GrantID is set, a remote client of theirs. The owner's browsers are no visitors, and
// each app password of theirs is one, and each device with a certificate.
type Party struct {
	AccountID  string
	GrantID    string
	PasswordID string // of an app password or a certificate in the owner's name
}

// partyOf is whose an identity is.
func partyOf(id Identity) Party {
	p := Party{AccountID: id.AccountID, GrantID: id.GrantID}
	if id.Role == controlapi.RoleOwner {
		p.PasswordID = cmp.Or(id.PasswordID, id.DeviceID)
	}
	return p
}

// Visitor is a Party with something open now.
type Visitor struct {
	Party
	Email    string
	Owner    bool           // it is in the owner's name
	ClientID string         // of GrantID
	Sender   string         // what the owner called it; empty for a person
	Apps     map[string]int // open connections, by app id
}

// Visitors lists everybody with something open to an app now, in no order. The
// launcher is no app.
func (a *Access) Visitors() []Visitor {
	st := a.state.Load()
	found := map[Party]*Visitor{}
	a.live.mu.Lock()
	for c := range a.live.all {
		if c.closed || !c.counts() || c.app == "" {
			continue
		}
		p := partyOf(c.id)
		v := found[p]
		if v == nil {
			v = &Visitor{Party: p, ClientID: c.id.ClientID, Email: c.id.Email, Sender: c.id.Name, Apps: map[string]int{}}
			found[p] = v
		}
		v.Apps[c.app]++
	}
	a.live.mu.Unlock()
	all := make([]Visitor, 0, len(found))
	for _, v := range found {
		if p := st.people[v.AccountID]; p != nil {
			v.Email, v.Owner = p.Email, p.Role == controlapi.RoleOwner
		}
		all = append(all, *v)
	}
	return all
}

// Disconnect closes what one visitor has open and ends the sessions it was
// opened with, so that a stream that reconnects by itself does not get back in:
// coming back takes signing in, which a browser that is signed in at the control
// plane does by loading the page. The token of a remote client stays what it was, and
// so do an app password and a certificate, which are a person's own.
// Nothing else of the person is closed.
func (a *Access) Disconnect(p Party) (closed int, err error) {
	theirs := func(c *Open) bool { return c.app != "" && partyOf(c.id) == p }
	keys := map[store.SessionKey]bool{}
	a.live.mu.Lock()
	for c := range a.live.all {
		if theirs(c) && c.id.BySession() {
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
	return a.live.close(theirs), err
}

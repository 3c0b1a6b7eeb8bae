package access

import (
	"net"
	"slices"
	"time"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Senders are programs of others that the owner named for an app. Package senders finds out
// by a signature that something is theirs; what they may open is decided here, as for people.

// senders are those named, as indexes that are never changed.
type senders struct {
	byID     map[string]*store.Sender
	byTarget map[senderTarget]*store.Sender
}

// senderTarget is what alone a sender may ask for.
type senderTarget struct{ appID, target string }

func sendersOf(all []store.Sender) senders {
	s := senders{byID: make(map[string]*store.Sender, len(all)), byTarget: make(map[senderTarget]*store.Sender, len(all))}
	for i := range all {
		one := &all[i]
		s.byID[one.ID] = one
		s.byTarget[senderTarget{one.AppID, one.Target}] = one
	}
	return s
}

// SetSenders makes these decide from now on, and closes what those have open that are none
// of them. They must not be changed.
func (a *Access) SetSenders(all []store.Sender) (closed int) {
	closed = a.swap(func(next *state) (changed bool) {
		next.senders = sendersOf(all)
		next.ends = next.ends || slices.ContainsFunc(all, func(s store.Sender) bool { return !s.Until.IsZero() })
		return true
	})
	a.endsWake.Raise()
	a.changes.Raise()
	return closed
}

// EndSender has one come in no more, and closes what it has open, whatever waits for the
// disk. SetSenders without it has to follow.
func (a *Access) EndSender(id string) (closed int) {
	return a.swap(func(next *state) (changed bool) {
		var kept []store.Sender
		for _, one := range next.senders.byID {
			if one.ID != id {
				kept = append(kept, *one)
			}
		}
		changed = len(kept) < len(next.senders.byID)
		next.senders = sendersOf(kept)
		return changed
	})
}

// SenderAt is whom the owner named for a target of an app: path and query as they are sent.
func (a *Access) SenderAt(appID, target string) (s store.Sender, ok bool) {
	if one := a.state.Load().senders.byTarget[senderTarget{appID, target}]; one != nil {
		return *one, true
	}
	return store.Sender{}, false
}

// SenderIdentity is who a sender is to an app: nobody has its mail address.
func (a *Access) SenderIdentity(s store.Sender) Identity {
	return Identity{AccountID: s.ID, Email: a.state.Load().senderMail(s.ID), Role: controlapi.RoleMember, SenderID: s.ID, Name: s.Name}
}

func (st *state) senderMail(id string) string {
	host := st.snapshot.Computer.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return id + "@" + controlapi.SendersLabel + "." + host
}

// decideSender is Decide for a sender.
func (st *state) decideSender(id Identity, appID string, clock func() (now, least time.Time)) Decision {
	s := st.senders.byID[id.SenderID]
	if s == nil || s.AppID != appID {
		return Decision{Reason: ReasonSender}
	}
	if !s.Until.IsZero() {
		if now, _ := clock(); !now.Before(s.Until) {
			return Decision{Reason: ReasonSender}
		}
	}
	return Decision{Allowed: true, Email: st.senderMail(s.ID), Role: controlapi.RoleMember}
}

// ends are the moments at which senders come in no more.
func (s *senders) ends() (ends []time.Time) {
	for _, one := range s.byID {
		if !one.Until.IsZero() {
			ends = append(ends, one.Until)
		}
	}
	return ends
}

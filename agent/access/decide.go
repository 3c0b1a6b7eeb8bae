package access

import (
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Identity is who a request says it comes from, verified by a session cookie
// or a bearer token, but not yet allowed anything.
type Identity struct {
	AccountID string
	Email     string
	Role      controlapi.Role
	// GrantID is the grant of a bearer token; empty for a session.
	GrantID string
	// SessionKey is that of a browser session; zero for a bearer token.
	SessionKey store.SessionKey
	// ClientID is the OAuth client of a bearer token; empty for a session.
	ClientID string
	// Epoch the session was made under. Not looked at for a bearer token, which
	// ends by its grant and its own expiry.
	Epoch int64

	ended uint64 // sessions.ended when the session was looked up
}

// BySession says whether it is known by the cookie of a browser, which a page of
// another site can have sent along; otherwise it is by a bearer token.
func (id Identity) BySession() bool { return id.SessionKey != (store.SessionKey{}) }

// Reason says why a Decision refuses.
type Reason string

// Reasons, in the order they are looked for.
const (
	ReasonDark        Reason = "dark"         // the owner has closed everything
	ReasonNoSnapshot  Reason = "no-snapshot"  // this computer has never been told who may open what
	ReasonStale       Reason = "stale"        // the control plane has been away for too long
	ReasonDenied      Reason = "denied"       // the owner said no on this computer
	ReasonUnknown     Reason = "unknown"      // nobody of this computer
	ReasonNotActive   Reason = "not-active"   // invited but not accepted, or removed
	ReasonGrant       Reason = "grant"        // the grant was revoked
	ReasonSessionOver Reason = "session-over" // signed out, here or everywhere: sign in again
	ReasonBehind      Reason = "behind"       // signed in under an epoch the snapshot does not know yet
	ReasonNotGiven    Reason = "not-granted"  // a person of this computer, but not for this app
)

// Decision answers whether an identity may open an app. When it is allowed,
// Email and Role are those of the snapshot, which are newer than the session's.
type Decision struct {
	Allowed bool
	Reason  Reason // empty when allowed
	Email   string
	Role    controlapi.Role
}

// Decide says whether id may open the app with appID now; the empty appID is
// the launcher, which every active person of this computer may open. Whatever
// is not given is refused.
func (a *Access) Decide(id Identity, appID string) Decision {
	st := a.state.Load()
	if st.dark != nil {
		return Decision{Reason: ReasonDark}
	}
	if !st.received {
		return Decision{Reason: ReasonNoSnapshot}
	}
	if a.silentFor(a.now()) > a.failStatic() {
		return Decision{Reason: ReasonStale}
	}
	if id.AccountID == "" {
		return Decision{Reason: ReasonUnknown}
	}
	if len(st.denied) > 0 && st.denies(id, appID) {
		return Decision{Reason: ReasonDenied}
	}
	p := st.people[id.AccountID]
	if p == nil {
		return Decision{Reason: ReasonUnknown}
	}
	if p.Status != controlapi.PersonActive {
		if p.Status == controlapi.PersonPending && id.GrantID == "" && id.Epoch < p.Epoch {
			// Removed and invited again since this session: signing in again
			// asks the control plane whether they have accepted meanwhile.
			return Decision{Reason: ReasonSessionOver}
		}
		return Decision{Reason: ReasonNotActive}
	}
	if id.GrantID != "" {
		if st.grants[id.GrantID] {
			return Decision{Reason: ReasonGrant}
		}
	} else if id.Epoch < p.Epoch {
		return Decision{Reason: ReasonSessionOver}
	} else if id.Epoch > p.Epoch {
		return Decision{Reason: ReasonBehind}
	}
	if appID != "" && p.Role != controlapi.RoleOwner && !p.opens[appID] {
		return Decision{Reason: ReasonNotGiven}
	}
	return Decision{Allowed: true, Email: p.Email, Role: p.Role}
}

func (st *state) denies(id Identity, appID string) bool {
	return st.denied[store.DenyRecord{AccountID: id.AccountID}] ||
		st.denied[store.DenyRecord{AccountID: id.AccountID, AppID: appID}] ||
		id.GrantID != "" && st.denied[store.DenyRecord{GrantID: id.GrantID}]
}

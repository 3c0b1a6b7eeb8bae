package access

import (
	"cmp"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Identity is who a request says it comes from, verified by a session cookie, a
// bearer token, an app password, a device's certificate or what a sender signed, but not yet
// allowed anything.
type Identity struct {
	AccountID string
	Email     string
	Role      controlapi.Role
	// GrantID is the grant of a bearer token; empty for all others.
	GrantID string
	// PasswordID is that of an app password; empty for all others.
	PasswordID string
	// ByKey is true of an app password in a field of its own, beside which Authorization
	// is the app's.
	ByKey bool
	// SenderID is that of a named sender, which is AccountID, too, and Name what the owner
	// called it; both empty for all others.
	SenderID, Name string
	// DeviceID is that of a device's certificate; empty for all others.
	DeviceID string
	// SessionKey is that of a browser session; zero for all others.
	SessionKey store.SessionKey
	// ClientID is the OAuth client of a bearer token; empty for all others.
	ClientID string
	// Epoch the session was made under. Not looked at for a bearer token, which
	// ends by its grant and its own expiry, nor for an app password or a certificate.
	Epoch int64
	// Proof is how the person of a browser session showed who they are; empty: by mail.
	Proof controlapi.Proof
	// Own is the own domain that they are at; empty at the app's own host.
	Own string

	ended uint64 // sessions.ended when the session was looked up
}

// ProofLocal is of a session that the owner's link of this computer made.
const ProofLocal controlapi.Proof = "local"

// Taken says whether an app of these options takes the way in which id is known. A sender
// was named for that app, and can do nothing else.
func (id Identity) Taken(o *agentapi.AppOptions) bool {
	switch {
	case id.SenderID != "":
		return true
	case id.GrantID != "":
		return o.LetsInBesides(agentapi.BesidesTokens)
	case id.PasswordID != "" || id.DeviceID != "":
		return o.LetsInBesides(agentapi.BesidesPasswords)
	}
	return ProofTaken(id.Proof, o)
}

// ProofTaken says whether an app of these options takes a session that was proven so.
func ProofTaken(proof controlapi.Proof, o *agentapi.AppOptions) bool {
	switch proof {
	case ProofLocal, controlapi.ProofPasskey:
		return true
	case controlapi.ProofCode:
		return o.LetsInBesides(agentapi.BesidesCode)
	case controlapi.ProofProvider:
		return o.LetsInBesides(agentapi.BesidesProvider)
	}
	return !o.OnlyPasskey
}

// Called is what the owner knows them by.
func (id Identity) Called() string { return cmp.Or(id.Name, id.Email) }

// BySession says whether it is known by the cookie of a browser.
func (id Identity) BySession() bool { return id.SessionKey != (store.SessionKey{}) }

// Owns says whether it is a browser that the owner is signed in with. Those are nobody's
// visit: they are not listed as here, and what is counted as open or closed leaves them
// out. This is the one place that decides it. Remote clients and app passwords in the
// owner's name are visitors like others, for programs have them.
func (id Identity) Owns() bool { return id.BySession() && id.Role == controlapi.RoleOwner }

// ByBrowser says whether a browser may have said by itself who it is, so that a page
// of another site can have had the request sent: by a cookie, by the user name and
// password it was once given, or by a certificate. A bearer token only a page's own script
// sends.
func (id Identity) ByBrowser() bool {
	return id.BySession() || id.PasswordID != "" || id.DeviceID != ""
}

// hasEpoch says whether it ends with the person's sessions.
func (id Identity) hasEpoch() bool {
	return id.GrantID == "" && id.PasswordID == "" && id.DeviceID == ""
}

// Reason says why a Decision refuses.
type Reason string

// Reasons, in the order they are looked for.
const (
	ReasonDark        Reason = "dark"         // the owner has closed everything
	ReasonSuspended   Reason = "suspended"    // the server's operator has ended what goes to this computer
	ReasonNoSnapshot  Reason = "no-snapshot"  // this computer has never been told who may open what
	ReasonStale       Reason = "stale"        // the control plane has been away for too long
	ReasonDenied      Reason = "denied"       // the owner said no on this computer
	ReasonUnknown     Reason = "unknown"      // nobody of this computer
	ReasonNotActive   Reason = "not-active"   // invited but not accepted, or removed
	ReasonGrant       Reason = "grant"        // the grant was revoked, or is for other apps
	ReasonPassword    Reason = "password"     // the app password was revoked, or is for another app
	ReasonDevice      Reason = "device"       // the certificate was revoked, has ended, or is for other apps
	ReasonSessionOver Reason = "session-over" // signed out, here or everywhere: sign in again
	ReasonSender      Reason = "sender"       // revoked, ended, or named for another app
	ReasonBehind      Reason = "behind"       // signed in under an epoch the snapshot does not know yet
	ReasonNotGiven    Reason = "not-granted"  // a person of this computer, but not for this app, or not any more
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
	if st.snapshot.Suspended != nil {
		return Decision{Reason: ReasonSuspended}
	}
	if !st.received {
		return Decision{Reason: ReasonNoSnapshot}
	}
	if a.silentFor(a.now()) > a.failStatic() {
		return Decision{Reason: ReasonStale}
	}
	if id.SenderID != "" {
		return st.decideSender(id, appID, a.clock.time)
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
		if p.Status == controlapi.PersonPending && id.hasEpoch() && id.Epoch < p.Epoch {
			// Removed and invited again since this session: signing in again
			// asks the control plane whether they have accepted meanwhile.
			return Decision{Reason: ReasonSessionOver}
		}
		return Decision{Reason: ReasonNotActive}
	}
	if reason := st.lapsed(id, appID, p, a.now()); reason != "" {
		return Decision{Reason: reason}
	}
	if appID != "" && p.Role != controlapi.RoleOwner {
		if !p.mayOpen(appID, a.clock.time) {
			return Decision{Reason: ReasonNotGiven}
		}
	}
	return Decision{Allowed: true, Email: p.Email, Role: p.Role}
}

// mayOpen says whether an app was given to p, by themselves or by a group, and has not ended.
func (p *person) mayOpen(appID string, clock func() (now, least time.Time)) bool {
	if p.opens[appID] && (p.Until == nil || !p.hasEnded(appID, clock)) {
		return true
	}
	end, byGroup := p.byGroup[appID]
	if !byGroup || end.IsZero() {
		return byGroup
	}
	now, _ := clock()
	return now.Before(end)
}

// lapsed says why what p is known by opens nothing any more; empty when it does.
func (st *state) lapsed(id Identity, appID string, p *person, now time.Time) Reason {
	switch {
	case id.GrantID != "" && (st.grants[id.GrantID] || !st.grantOpens(id.GrantID, appID)):
		return ReasonGrant
	case id.PasswordID != "" && !st.passwords.stands(id, appID):
		return ReasonPassword
	case id.DeviceID != "" && !st.devices.stands(id, appID, p, now):
		return ReasonDevice
	case id.hasEpoch() && id.Epoch < p.Epoch:
		return ReasonSessionOver
	case id.hasEpoch() && id.Epoch > p.Epoch:
		return ReasonBehind
	}
	return ""
}

func (st *state) denies(id Identity, appID string) bool {
	return st.denied[store.DenyRecord{AccountID: id.AccountID}] ||
		st.denied[store.DenyRecord{AccountID: id.AccountID, AppID: appID}] ||
		id.GrantID != "" && st.denied[store.DenyRecord{GrantID: id.GrantID}] ||
		id.PasswordID != "" && st.denied[store.DenyRecord{PasswordID: id.PasswordID}]
}

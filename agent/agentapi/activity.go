package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Kinds of Activity that are visits.
const (
	ActivityOpened    = "opened"    // somebody opened an app in a browser
	ActivityDelivered = "delivered" // a named sender, in What, sent something to an app
	ActivityClient    = "client"    // a remote client opened an app for somebody, or an app password for the owner
)

// Kinds of Activity that are decisions about people.
const (
	ActivityInvited   = "invited"
	ActivityGiven     = "granted"   // an app; with Until where it ends
	ActivityWithdrawn = "withdrawn" // an app
	ActivityRemoved   = "removed"   // from the whole computer
	ActivityCut       = "cut"       // what they had open was closed, and they may come back
	ActivityRestored  = "restored"  // a withdrawal or removal was taken back while it was held
	ActivityAccepted  = "accepted"  // an invitation
	ActivityUntil     = "until"     // an app that they may open ends at another date, Until, or at none
	ActivityEnded     = "ended"     // an app's date came, for the person in Email or, without, of its approval; Until is that date
	ActivityLeft      = "left"      // a member gave the computer up
	ActivityBrowser   = "browser"   // the owner signed in with one that is new; What is its address, where that is known
	ActivityPasskey   = "passkey"   // one was added to the owner's account; What is its name; of a provider By, too
	// The server's operator was told that the owner's passkeys are lost, and removes them at Until.
	ActivityRecovering = "recovering"
	// What becomes of somebody who knocked. A yes is ActivityGiven or ActivityInvited.
	ActivityKnockRefused = "knock-refused"
	ActivityKnockMuted   = "knock-muted" // never ask again
)

// Kinds of Activity that are decisions about groups: What is the group's name, and Group its
// id.
const (
	ActivityGroupAdded     = "group-added" // also one that was removed, had back
	ActivityGroupRemoved   = "group-removed"
	ActivityGroupJoined    = "group-joined"  // by the person in Email; By is the provider's group that had them
	ActivityGroupLeft      = "group-left"    // likewise
	ActivityGroupGiven     = "group-granted" // an app; with Until where it ends
	ActivityGroupWithdrawn = "group-withdrawn"
	ActivityGroupFilled    = "group-filled" // by the provider's group in By, or by the owner alone
	ActivityGroupEnded     = "group-ended"  // an app's date came for all of the group; Until is that date
)

// Kinds of Activity that are decisions about apps.
const (
	ActivityApproved       = "approved" // with Port and Program
	ActivityDenied         = "denied"
	ActivityPaused         = "paused"
	ActivityResumed        = "resumed"
	ActivityStopped        = "stopped" // the app took itself off its address
	ActivityRevoked        = "revoked"
	ActivityOptions        = "options" // its options were changed
	ActivityRenamed        = "renamed" // What is its label before
	ActivityPortChanged    = "port-changed"
	ActivityProgramChanged = "program-changed"
)

// Kinds of Activity that are decisions about connected apps (What is the client's
// name), app passwords, named senders (What is what it is called) and the computer.
const (
	ActivityClientIn        = "client-in"  // let in by the person in Email
	ActivityClientOut       = "client-out" // its grant ended
	ActivityDomainAdded     = "domain-added"
	ActivityDomainRemoved   = "domain-removed"
	ActivityPasswordMade    = "password-made"
	ActivityPasswordRevoked = "password-revoked"
	ActivitySenderAdded     = "sender-added"
	ActivitySenderChanged   = "sender-changed" // its secret
	ActivitySenderRevoked   = "sender-revoked"
	ActivitySenderEnded     = "sender-ended" // Until came
	ActivityDeviceMade      = "device-made"  // its certificate, for the person in Email
	ActivityDeviceRevoked   = "device-revoked"
	ActivityDark            = "dark"
	ActivityLight           = "light"
	ActivityConnected       = "connected"    // What is the server's host
	ActivityDisconnected    = "disconnected" // likewise
	ActivitySettings        = "settings"
	ActivityUserAllowed     = "user-allowed" // another user of this computer, in What
	ActivityUserDenied      = "user-denied"
)

// Kinds of Activity that are trouble, and the end of it.
const (
	ActivityServerAway         = "server-away"         // What is the server's host
	ActivityServerBack         = "server-back"         // likewise
	ActivityCertificateTrouble = "certificate-trouble" // What is the address
	ActivityCertificateRenewed = "certificate-renewed" // likewise; Until is when the new one ends
	ActivityClockAhead         = "clock-ahead"         // the clock is ahead: shares with a date are closed
	ActivityConnectFailed      = "connect-failed"      // What is the server's host
)

// Kinds of Activity that strangers can cause. They are counted: one line an hour and
// kind, in which Count says how often, and Email and App stay where all were the same.
const (
	ActivityKnocked         = "knocked"          // asked to be let in
	ActivityTurnedAway      = "turned-away"      // signed in, and may not open the app
	ActivityPasswordRefused = "password-refused" // no app password of this computer
	ActivityDeliveryRefused = "delivery-refused" // not signed by the sender it says, or by one that may not any more
)

// Activity is one line of what happened, kept on this computer only, 90 days. A field
// that a kind has no use for is empty.
type Activity struct {
	// ID only grows, in the order things happened. The store gives it.
	ID    uint64    `json:"id,omitempty"`
	At    time.Time `json:"at"`
	Email string    `json:"email"` // whom it is about
	App   string    `json:"app"`   // label as it was then
	Kind  string    `json:"kind"`
	// By names the program, the remote client or the person that did it; empty for a
	// browser, for the owner, and for what happened by itself.
	By string `json:"by,omitempty"`
	// Owner is true of what the owner did, and You where Email is the owner's.
	Owner bool `json:"owner,omitempty"`
	You   bool `json:"you,omitempty"`

	AccountID string `json:"accountId,omitempty"` // of Email
	Name      string `json:"name,omitempty"`      // of App, in its address
	// What names what it is about, where that is neither a person nor an app.
	What  string `json:"what,omitempty"`
	Group string `json:"group,omitempty"` // of What, where that is a group
	// ByGroup says of an app that was withdrawn that groups had opened it: ByGroupOnly, or
	// ByGroupToo where it was given by itself as well.
	ByGroup string    `json:"byGroup,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	Port    int       `json:"port,omitempty"`
	Program string    `json:"program,omitempty"`
	Closed  int       `json:"closed,omitempty"` // connections that it closed
	Count   int       `json:"count,omitempty"`  // how often in its hour, where more than once
	Notice  uint64    `json:"notice,omitempty"` // that told the owner of it
	// Undo is true of a line of a page while Client.UndoActivity restores exactly what
	// was before it.
	Undo bool `json:"undo,omitempty"`
}

// What Activity.ByGroup says.
const (
	ByGroupOnly = "only"
	ByGroupToo  = "too"
)

// Groups of Kinds, as they are filtered.
const (
	GroupVisits    = "visits"
	GroupDecisions = "decisions"
	GroupTrouble   = "trouble"
)

// GroupOf a kind of Activity. One this version does not know is a decision, which is
// what is kept longest.
func GroupOf(kind string) string {
	switch kind {
	case ActivityOpened, ActivityClient, ActivityDelivered:
		return GroupVisits
	case ActivityServerAway, ActivityServerBack, ActivityCertificateTrouble, ActivityCertificateRenewed,
		ActivityClockAhead, ActivityConnectFailed, ActivityTurnedAway, ActivityPasswordRefused, ActivityDeliveryRefused:
		return GroupTrouble
	}
	return GroupDecisions
}

// Activity lists what happened, newest first, at most limit lines: GET
// /owner/activity?limit=N.
func (c *Client) Activity(ctx context.Context, limit int) ([]Activity, error) {
	return call[[]Activity](ctx, c, http.MethodGet, "/owner/activity?limit="+strconv.Itoa(limit), nil)
}

// ActivityQuery is what part of the activity is asked for. What is empty asks for all.
type ActivityQuery struct {
	Before uint64 // an ID: only what happened before it
	Limit  int    // lines, at most
	Group  string // GroupVisits, ...
	App    string // its label, as it was then
	Email  string // of the person it is about
	Search string // words that the line has to have, in any case
}

// ActivityPage is a part of the activity, newest first.
type ActivityPage struct {
	Lines []Activity `json:"lines"`
	// Next is what to ask for as Before to go on; 0 where there is nothing more. A
	// page may have few lines, or none, and still have a Next.
	Next uint64 `json:"next"`
}

// ActivityPage answers part of what happened: GET /owner/activity/page.
func (c *Client) ActivityPage(ctx context.Context, q ActivityQuery) (ActivityPage, error) {
	values := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	if q.Before > 0 {
		values.Set("before", formatID(q.Before))
	}
	for name, text := range map[string]string{"group": q.Group, "app": q.App, "email": q.Email, "search": q.Search} {
		if text != "" {
			values.Set(name, text)
		}
	}
	return call[ActivityPage](ctx, c, http.MethodGet, "/owner/activity/page?"+values.Encode(), nil)
}

// UndoActivity takes back what a line is about: POST /owner/activity/{id}/undo.
func (c *Client) UndoActivity(ctx context.Context, id uint64) error {
	return c.do(ctx, http.MethodPost, "/owner/activity/"+formatID(id)+"/undo", nil)
}

// ClearActivity forgets all of it: DELETE /owner/activity.
func (c *Client) ClearActivity(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/owner/activity", nil)
}

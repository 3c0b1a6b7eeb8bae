// Package agentapi is what the loopback API speaks: wire types, error
// sentences, and a Client. It imports nothing of the agent, so that the desktop
// app, the command line and any Go program on this computer can use it.
//
// Two listeners serve the API. The open and capability tiers are on
// 127.0.0.1:8765; the owner tier is on a unix socket in a directory only the
// owner may enter, and additionally wants the owner secret (HeaderOwnerSecret).
package agentapi

import (
	"time"

	"porchlight/internal/words"
)

const (
	// Protocol is the wire protocol this package speaks. A client attaches to a
	// running engine only when GET /engine/info reports the same number.
	Protocol = 1

	// DefaultAddress is where the loopback API listens unless told otherwise.
	DefaultAddress = "127.0.0.1:8765"

	// HeaderCapability carries the capability of POST /engine/register.
	HeaderCapability = "X-Engine-Capability"

	// HeaderOwnerSecret carries the owner secret on the owner tier's socket.
	HeaderOwnerSecret = "X-Owner-Secret"

	// MaxBody is the largest request body taken, in bytes.
	MaxBody = 64 << 10
)

// Status of a published app, as stored and as answered on the wire.
type Status string

const (
	StatusPending Status = "pending" // asked, waiting for the owner
	StatusLive    Status = "live"    // reachable at its address
	StatusStopped Status = "revoked" // taken off its address by the app itself, approval kept
)

// Mode says what kind of process runs the engine.
type Mode string

const (
	ModeDesktop  Mode = "desktop"  // the menu-bar app
	ModeHeadless Mode = "headless" // porchlight agent
	ModeBundled  Mode = "bundled"  // started by another app (--first-party)
)

// PublishRequest is the body of POST /publish.
type PublishRequest struct {
	Name      string `json:"name"`      // ^[a-z0-9-]{1,63}$, not reserved
	Label     string `json:"label"`     // 1 to 100 characters, shown to the owner
	LocalPort int    `json:"localPort"` // 1 to 65535
	// Assistant is what a coding agent calls itself that asks through porchlight mcp;
	// empty of everything else.
	Assistant string `json:"assistant,omitempty"`
}

// Publication answers POST, GET and DELETE /publish. Host and URL are present
// when live.
type Publication struct {
	Status Status `json:"status"`
	Host   string `json:"host,omitempty"`
	URL    string `json:"url,omitempty"`
}

// AppSummary is one entry of StatusSummary.Apps; an entry of `porchlight apps --json`
// begins with it.
type AppSummary struct {
	Name      string `json:"name"`
	Label     string `json:"label"`
	LocalPort int    `json:"localPort"`
	Status    Status `json:"status"`
	Host      string `json:"host,omitempty"`
	URL       string `json:"url,omitempty"`
	// Paused is true while the owner keeps everybody out; the app itself stays live.
	Paused bool `json:"paused"`
}

// StatusSummary answers GET /status.
type StatusSummary struct {
	Connected   bool         `json:"connected"`
	Host        string       `json:"host"` // root host, with the port unless it is 443
	Name        string       `json:"name"` // the customer's short name
	URL         string       `json:"url"`  // root address
	PendingApps int          `json:"pendingApps"`
	Dark        bool         `json:"dark"` // the owner keeps everybody out of all apps
	Apps        []AppSummary `json:"apps"` // live apps only: pending requests are the owner's business
}

// Billing is the standing GET /engine/info reports.
type Billing struct {
	Plan     string `json:"plan"`
	Standing string `json:"standing"`
}

// EngineInfo answers GET /engine/info.
type EngineInfo struct {
	EngineVersion string  `json:"engineVersion"`
	Protocol      int     `json:"protocol"`
	PID           int     `json:"pid"`
	Mode          Mode    `json:"mode"`
	Connected     bool    `json:"connected"`
	Host          string  `json:"host"`
	Name          string  `json:"name"`
	FirstPartyApp string  `json:"firstPartyApp"`
	Registrants   int     `json:"registrants"`
	Billing       Billing `json:"billing"`
}

// Account answers GET /owner/account and `porchlight account --json`.
type Account struct {
	Connected bool   `json:"connected"`
	Email     string `json:"email"`
	AccountID string `json:"accountId"`
	Name      string `json:"name"`
	Host      string `json:"host"`
	URL       string `json:"url"`
	AuthURL   string `json:"authUrl"`
	// Local is true when control plane and relay run inside this agent and
	// nobody but this computer can reach the addresses.
	Local bool `json:"local"`
}

// Listener is the process found listening on an app's port. Fields the
// operating system does not tell are empty.
type Listener struct {
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"` // base name of the executable
	User    string `json:"user,omitempty"`
	// UserID is the system's own id of User: a uid, or a SID on Windows. Empty
	// where the user cannot be learnt.
	UserID string `json:"userId,omitempty"`
}

// OwnerApp is an app as the owner sees it.
type OwnerApp struct {
	AppSummary
	AppHealth
	InNetwork
	// TCP says that programs reach it over TCP, by porchlight reach, and browsers do not.
	TCP bool `json:"tcp,omitempty"`
	// Listener is who listens on LocalPort, as last seen.
	Listener Listener `json:"listener"`
	// ListensOn is the address of this computer that Listener listens on: 127.0.0.1 or
	// ::1. It is of no account to an app reached at a unix socket.
	ListensOn string `json:"listensOn"`
	// NewKey is true of an app that waits because it shows another key over HTTPS than
	// the one that was kept.
	NewKey bool `json:"newKey,omitempty"`
	// ApprovedListener is who the app was approved for, of one that waits because
	// a program of another user listens now; nil otherwise. It has neither
	// User nor UserID when the one approved could not be seen.
	ApprovedListener *Listener `json:"approvedListener,omitempty"`
	// AskedBy names the user whose program asks, of a request of another user of
	// this computer; empty for the owner's own.
	AskedBy string `json:"askedBy,omitempty"`
	// Asks is what sent the request; nil where nothing is known of it.
	Asks *Asks `json:"asks,omitempty"`
	// Resembles is the label of an approved app that the label of a request could be
	// taken for, as one with a Cyrillic letter in it; empty for none.
	Resembles string `json:"resembles,omitempty"`
	// Lit is true while visitors can use the app.
	Lit bool `json:"lit"`
	// Quiet is true for a request that must not raise a notification: it was
	// denied less than ten minutes ago, or twice.
	Quiet bool `json:"quiet"`
	// Denials counts how often the owner denied this name since it was last
	// approved or unmuted. At two, requests stay quiet until unmuted.
	Denials     int        `json:"denials"`
	RequestedAt time.Time  `json:"requestedAt"`
	ApprovedAt  *time.Time `json:"approvedAt,omitempty"`
	// Until is when the approval ends: the app is then revoked. nil for without an end.
	Until *time.Time `json:"until,omitempty"`
	// Connections counts what visitors have open through the proxy to this app now, and
	// Here names them, at most MaxNamed: Visitor.Called.
	Connections int      `json:"connections"`
	Here        []string `json:"here"`
	// Visits counts how often people opened it, of the visits of late that activity has.
	// A list that shows some apps only shows those opened most.
	Visits  int        `json:"visits,omitempty"`
	Options AppOptions `json:"options"`
	// Shared is there while the app is shared from a terminal.
	Shared *Shared `json:"shared,omitempty"`
	// OpenTo names active and invited people who may open the app, the owner
	// aside, at most MaxNamed of them; OpenToCount counts all.
	OpenTo      []string `json:"openTo"`
	OpenToCount int      `json:"openToCount"`
	// Certificate of a live app's address, nil while nothing is known of it:
	// one that this computer makes itself is made for the first visitor.
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Certificate is how it stands with the TLS certificate of an app's address.
type Certificate struct {
	// NotAfter is when it ends, nil where there is none. It is renewed by itself
	// at about RenewsAfter, which is there when NotAfter is.
	NotAfter    *time.Time `json:"notAfter,omitempty"`
	RenewsAfter *time.Time `json:"renewsAfter,omitempty"`
	// Common says that it is one for all names of the computer, and so tells nobody this one.
	Common bool `json:"common,omitempty"`
	// Problem is a sentence about one that cannot be had or renewed, or empty.
	Problem string `json:"problem"`
	// Words is Problem with its arguments apart, to be said in another language.
	Words words.Text `json:"problemWords,omitempty"`
}

// MaxNamed is how many people a state names where it only has to give an idea;
// GET /owner/people lists all.
const MaxNamed = 15

// NoticeAccepted is the Kind of a Notice about an invitation that was accepted.
// The other kinds are those of Activity (what programs did through the
// capability), NoticeListener and renamed, port-changed and program-changed, about
// an app.
const NoticeAccepted = "accepted"

// NoticeListener is the Kind of a Notice about whose program listens for an app
// that was approved before that was kept.
const NoticeListener = "listener-noted"

// NoticeApproved is the Kind of a Notice about an app that was approved elsewhere than
// in the menu bar or its window.
const NoticeApproved = "approved"

// Notice is something the owner should be told once. IDs only grow, so a
// client that remembers the last one it showed never repeats itself.
type Notice struct {
	ID   uint64    `json:"id"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // renamed, port-changed, ...
	App  string    `json:"app,omitempty"`
	Text string    `json:"text"`
	// Words is Text with its arguments apart, to be said in another language; empty in one
	// of an earlier version.
	Words words.Text `json:"textWords,omitempty"`
	// User is whom a NoticeUser is about: LocalUser.ID.
	User string `json:"user,omitempty"`
	// By names the program that caused it, where the operating system tells.
	By string `json:"by,omitempty"`
	// Undo is true while POST /owner/notices/{id}/undo can take it back.
	Undo bool `json:"undo,omitempty"`
	// Ended is what a NoticeEnded is about; nil otherwise.
	Ended *EndedShare `json:"ended,omitempty"`
	// Visitor is whom a NoticeFirstVisit or a NoticeAccepted is about; nil otherwise, and in
	// a NoticeAccepted of an earlier version.
	Visitor *FirstVisit `json:"visitor,omitempty"`
}

// NoticeSenderFull is the Kind of a Notice about a named sender that delivered so much that
// no more can be told from repetitions.
const NoticeSenderFull = "sender-full"

// NoticeFirstVisit is the Kind of a Notice about a member who opened an app for the
// first time.
const NoticeFirstVisit = "first-visit"

// NoticeBrowser is the Kind of a Notice about a browser that signed in as the owner, for
// the first time. Undoing it signs that browser out.
const NoticeBrowser = "browser"

// NoticePasskey is the Kind of a Notice about a passkey that was added to the owner's account.
// Undoing it says that it was not them: it is removed, and they are signed out everywhere.
const NoticePasskey = "passkey"

// FirstVisit is who opened what for the first time.
type FirstVisit struct {
	AccountID string `json:"accountId"`
	Email     string `json:"email"`
	App       string `json:"app,omitempty"` // label; empty in a NoticeAccepted
}

// NoticeEnded is the Kind of a Notice about apps whose end came for somebody, or about an
// app whose approval ended, which has no EndedShare. NoticeClock is the Kind of one about
// this computer's clock, by which shares would end too early.
const (
	NoticeEnded = "ended"
	NoticeClock = "clock"
)

// EndedShare is what came to its end. Each of Apps can be given again by SetAccess.
type EndedShare struct {
	AccountID string    `json:"accountId"`
	Email     string    `json:"email"`
	Apps      []string  `json:"apps"` // labels, as they were then
	Until     time.Time `json:"until"`
	Closed    int       `json:"closed"` // open connections that were closed
	// Doubtful is true where it is only a clock that says so, which may be ahead: once
	// it is right, the apps open again.
	Doubtful bool `json:"doubtful,omitempty"`
}

// OwnerState is the one snapshot everything of the owner tier is drawn from:
// GET /owner/state, and each event of GET /owner/events.
type OwnerState struct {
	// Seq grows with every change; equal numbers are equal states.
	Seq           uint64 `json:"seq"`
	EngineVersion string `json:"engineVersion"`
	Mode          Mode   `json:"mode"`
	// API is the host:port the loopback API listens on, which need not be
	// DefaultAddress; for commands the owner is shown.
	API     string     `json:"api"`
	Account Account    `json:"account"`
	Apps    []OwnerApp `json:"apps"` // by label, numbers as numbers
	Notices []Notice   `json:"notices"`
	// NoticesSeen is the ID of the newest notice the owner has looked at: until
	// then none that can be undone is dropped, see Client.SeeNotices.
	NoticesSeen uint64 `json:"noticesSeen"`
	// Trouble is a sentence about what keeps visitors out, or empty.
	Trouble string `json:"trouble"`
	// TroubleWords is Trouble with its arguments apart, to be said in another language.
	TroubleWords words.Text `json:"troubleWords,omitempty"`
	// Reachable is true while the control plane answers and a relay sends visitors.
	Reachable bool `json:"reachable"`
	// Language is the owner's setting of that name.
	Language string `json:"language,omitempty"`
	// Update is what the address of the update notice said; nil while none is named.
	Update *Update `json:"update,omitempty"`
	// OutboxSize counts the mails kept in the local outbox.
	OutboxSize int `json:"outboxSize"`
	// HTTPBroken counts the connections of visitors that were lost by a fault of ours
	// since the start.
	HTTPBroken int `json:"httpBroken,omitempty"`
	// Containers is what keeps containers from addresses; nil for nothing.
	Containers *ContainersTrouble `json:"containers,omitempty"`
	// Crowded is when visitors last had all the connections or the memory they may have;
	// nil while they never had.
	Crowded *time.Time `json:"crowded,omitempty"`
	// DarkSince is when the owner closed everything; nil when they have not.
	DarkSince *time.Time `json:"darkSince,omitempty"`
	// Here counts the visitors, each a Visitor.
	Here int `json:"here"`
	// PeopleVersion changes whenever GET /owner/people may answer something
	// else; PeopleCount counts active and invited people, the owner aside.
	PeopleVersion string `json:"peopleVersion"`
	PeopleCount   int    `json:"peopleCount"`
	// Groups are the owner's, by name.
	Groups []Group `json:"groups,omitempty"`
	// Undelivered are addresses that an invitation did not reach in the last seven
	// days: the mail server refused the mail, or was away for too long.
	Undelivered []string `json:"undelivered"`
	// Grants are the grants for this computer, newest first.
	Grants []Grant `json:"grants"`
	// Knocks are people who ask to be let in, oldest first, at most 20.
	Knocks []Knock `json:"knocks"`
	// Registrants are the programs attached to this engine.
	Registrants []Registrant `json:"registrants"`
	// Users are other users of this computer that asked or were answered, by name.
	Users []LocalUser `json:"users"`
	// AccessUntil is when access ends for everybody unless the control plane
	// answers before; nil while it answers.
	AccessUntil *time.Time `json:"accessUntil,omitempty"`
	// Connecting is a connection to a control plane under way, or the last one
	// that failed; nil for none.
	Connecting *Connecting `json:"connecting,omitempty"`
	// ActivityVersion changes whenever GET /owner/activity/page may answer something else.
	ActivityVersion uint64 `json:"activityVersion"`
	// Locked is true while the agent has no owner secret, because the keychain is
	// locked: then only its own menu bar reads this, and it can take away and give
	// nothing.
	Locked bool `json:"locked"`
}

// Seen is a request as the owner looked at it. A program can change its request at
// any moment, and another one can take its port; what is not what was seen any
// more is refused with CodeConflict.
type Seen struct {
	Label     string `json:"label"`
	LocalPort int    `json:"localPort"`
	// Program and User are those of the Listener that was shown, empty where it
	// had none. Nil is from clients that did not look at them.
	Program *string `json:"program,omitempty"`
	User    *string `json:"user,omitempty"`
	// TCP is true where one was shown that is reached by TCP, which older clients do not know.
	TCP bool `json:"tcp,omitempty"`
}

// SeenOf is what there is to see of an app that asks.
func SeenOf(a OwnerApp) Seen {
	return Seen{Label: a.Label, LocalPort: a.LocalPort, Program: &a.Listener.Program, User: &a.Listener.User, TCP: a.TCP}
}

// Approval is the optional body of POST /owner/apps/{name}/approve.
type Approval struct {
	*Seen // nil approves whatever is asked
	// Alone takes the app from everybody else who could open it before.
	Alone bool `json:"alone,omitempty"`
	// Until is when the approval ends, as CheckedUntil takes it. Empty keeps the end that it
	// has, which a first one has not.
	Until string `json:"until,omitempty"`
	// Terminal and PID are the agent's own finding: the approval came from another
	// process than the menu bar's.
	Terminal bool `json:"-"`
	PID      int  `json:"-"`
}

// Closed answers whatever ends access: how many open connections it closed.
type Closed struct {
	OK           bool `json:"ok"`
	Closed       int  `json:"closed"`
	Milliseconds int  `json:"milliseconds"`
	// Uncertain says that with the control plane away nobody knows whether there is what
	// was to end. If there is, it has ended here.
	Uncertain bool `json:"uncertain,omitempty"`
}

// OpenLink answers POST /owner/open, /owner/apps/{name}/open and /owner/account/recover.
type OpenLink struct {
	URL       string    `json:"url"` // one use
	ExpiresAt time.Time `json:"expiresAt"`
}

// Mail is one entry of the local outbox, newest first on the wire.
type Mail struct {
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	Links   []string  `json:"links"`
	At      time.Time `json:"at"`
}

// Running is what an agent writes to DATA/agent.json (0600) once it listens.
type Running struct {
	API         string `json:"api"`         // host:port of the loopback API
	PID         int    `json:"pid"`         // of the agent
	Protocol    int    `json:"protocol"`    // see Protocol
	OwnerSocket string `json:"ownerSocket"` // path of the owner tier's unix socket, or name of its pipe
	StartedAt   string `json:"startedAt"`   // RFC 3339
}

// Package controlapi is what agents say to the control plane, under /v1/ of the
// auth host: wire types and a Client. Of this module it imports the words of sentences
// alone (internal/words).
//
// An agent authenticates with its device credential (Authorization: Bearer).
// Errors are {"error": code, "message": sentence}.
package controlapi

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"porchlight/internal/words"
)

// Paths under the auth URL.
const (
	PathSyncBefore  = "/v1/sync"         // GET: what agents of before version 0.1.0 ask
	PathApps        = "/v1/apps"         // PUT Apps: what this computer has approved
	PathVisits      = "/v1/visits"       // POST Redeem: Visitor
	PathBrowsersEnd = "/v1/browsers/end" // POST EndBrowser
	PathPasskeysEnd = "/v1/passkeys/end" // POST EndPasskey
	PathOwnersLink  = "/v1/signin/link"  // POST LinkForOwner: OwnersLink
	PathPublicKey   = "/auth/pubkey"     // GET, no authentication: PublicKey
	PathKeySet      = "/auth/jwks.json"  // GET, no authentication: KeySet
	PathVisit       = "/visit"           // where a browser without a session is sent
	TunnelALPN      = "porchlight-tunnel/3"
)

// What agents of before version 0.1.0 speak, which are told to update: TunnelsBefore, and
// HTTP without Protocol in the header HeaderProtocol.
const (
	HeaderProtocol = "Porchlight-Protocol"
	Protocol       = "1"
)

var TunnelsBefore = []string{"porchlight-tunnel/2", "porchlight-tunnel/1"}

// Query parameters of PathVisit, which follow RFC 6749 and RFC 7636: the agent
// sends a visitor's browser there with a code challenge (S256) and a state, and
// gets it back at redirect_uri with code and state.
const (
	ParamComputer            = "computer"     // short name
	ParamApp                 = "app"          // app id; empty for the launcher
	ParamRedirectURI         = "redirect_uri" // https://<app host>/.porchlight/callback
	ParamState               = "state"
	ParamCodeChallenge       = "code_challenge"
	ParamCodeChallengeMethod = "code_challenge_method"
	ParamCode                = "code"
	// ParamProof are the ways of having signed in that will do, Proofs with a comma between;
	// without it all will. A server that does not know it lets everybody on, so that the
	// agent has to look at Visitor.Proof.
	ParamProof = "proof"
)

// CallbackPath is where a visitor's browser returns on an app's host.
const CallbackPath = "/.porchlight/callback"

// Role of a person on one computer.
type Role string

const (
	RoleOwner  Role = "owner"
	RoleMember Role = "member"
)

// PersonStatus of a person on one computer.
type PersonStatus string

const (
	PersonPending PersonStatus = "pending"
	PersonActive  PersonStatus = "active"
	PersonRemoved PersonStatus = "revoked"
)

// Computer is what the control plane knows of the agent's computer.
type Computer struct {
	ID   string `json:"id"`
	Name string `json:"name"` // short name
	Host string `json:"host"` // root host, with the port unless it is 443
	URL  string `json:"url"`  // root address
	// Former says that another account's computer had this name before: browsers
	// may still hold what that account's apps left at the hosts below it. ID tells
	// this computer from that one.
	Former bool `json:"former,omitempty"`
	// Suspended is since when the operator has ended what goes there; zero while they have
	// not. Only the control plane's own parts are told.
	Suspended time.Time `json:"-"`
	// AppGrants says that its agent knows grants for some apps. Only the control plane's
	// own parts are told.
	AppGrants bool `json:"-"`
}

// HostName is a root host without its port.
func HostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// Person is one row of who may reach the computer. Apps holds app ids, not
// labels; the owner's is empty and means all.
type Person struct {
	AccountID string       `json:"accountId"`
	Email     string       `json:"email"`
	Role      Role         `json:"role"`
	Status    PersonStatus `json:"status"`
	Apps      []string     `json:"apps"`
	// Until says when some of Apps end, by id; the others do not. Ended says of apps
	// that have ended when they did, for 30 days unless they are given again before.
	Until map[string]time.Time `json:"until,omitempty"`
	Ended map[string]time.Time `json:"ended,omitempty"`
	// Since is when they were invited: who was removed and is invited again has another.
	// Zero of an owner, and where the control plane knows nothing of groups.
	Since time.Time `json:"since,omitzero"`
	// Filled are those of Apps.Fills that they are in, as the providers said when they last
	// signed in.
	Filled []string `json:"filled,omitempty"`
	// Epoch is raised whenever every session of this person on this computer
	// must end (signed out everywhere, revoked). A session made under a lower
	// epoch is over.
	Epoch int64 `json:"epoch"`
}

// RevokedGrant is a grant whose access tokens must be refused until the
// last of them has expired. What else it says is as Grant has it, and empty where an
// earlier version ended it: an agent learns so of one that it never read.
type RevokedGrant struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	ClientName string    `json:"clientName,omitempty"` // its host, where its name is only claimed
	AccountID  string    `json:"accountId,omitempty"`
	Email      string    `json:"email,omitempty"`
	CreatedAt  time.Time `json:"createdAt,omitzero"`
}

// Billing standing of the account.
type Billing struct {
	Plan     string `json:"plan"`
	Standing string `json:"standing"`
}

// Relay is one place to keep a tunnel to.
type Relay struct {
	Address    string `json:"address"`    // host:port to dial
	ServerName string `json:"serverName"` // name its certificate must hold
}

// Snapshot is what a sync tells: everything the agent needs to decide who may open what
// without asking again. With Unchanged set only Version is filled, the one the agent sent,
// which still holds.
type Snapshot struct {
	Version   string `json:"version"` // opaque
	Unchanged bool   `json:"unchanged,omitempty"`
	// Change counts the changes of this computer, within one Line: a snapshot with a lower
	// number than the last of the same line is an older one. A line ends where rows are
	// restored from a backup or an operator begins another. Line is empty and Change zero
	// where the control plane does not count.
	Line   string `json:"line,omitempty"`
	Change int64  `json:"change,omitempty"`
	// Left are the lines that the agent was told before this one and believes no more, the
	// last one first: it notes them itself, whatever the control plane says.
	Left          []string       `json:"left,omitempty"`
	Computer      Computer       `json:"computer"`
	People        []Person       `json:"people"`
	RevokedGrants []RevokedGrant `json:"revokedGrants"` // of the last 720 s
	PublicKeys    []string       `json:"publicKeys"`    // PEM, newest first
	Billing       Billing        `json:"billing"`
	Relays        []Relay        `json:"relays"` // to be connected to
	// SpareRelays are for when those do not answer, refuse, or are far, the likeliest
	// first.
	SpareRelays []Relay `json:"spareRelays,omitempty"`
	// Grants is another one whenever Grants of GET PathGrants names others, and once a day
	// that one of them is used; empty while there are none.
	Grants string `json:"grants,omitempty"`
	// GrantApps are the ids of the apps that each of the live grants opens that do not open
	// all, by the id of the grant.
	GrantApps map[string][]string `json:"grantApps,omitempty"`
	// Undelivered are addresses that an invitation to this computer did not reach
	// in the last seven days: the mail was given up.
	Undelivered []string `json:"undelivered,omitempty"`
	// Passwords are the app passwords that hold for this computer, in no order.
	Passwords []AppPassword `json:"passwords,omitempty"`
	// Knocks wait for the owner's answer, oldest first, at most MaxKnocks. Knocking
	// is from whom they are taken, as the agent last told it.
	Knocks   []Knock    `json:"knocks,omitempty"`
	Knocking KnocksFrom `json:"knocking,omitempty"`
	// Reported is the Digest of what the agent reported last: one whose own is the same
	// need not report it again. Empty where the control plane does not say.
	Reported string `json:"reported,omitempty"`
	// Passkeys were added to the owner's account in the last seven days.
	Passkeys []AddedPasskey `json:"passkeys,omitempty"`
	// Recovering is when the operator takes the owner's passkeys and recovery codes away, as
	// somebody told them that those are lost; zero while that is not so.
	Recovering time.Time `json:"recovering,omitzero"`
	// Providers are the names of the OpenID providers that people can sign in with.
	Providers []string `json:"providers,omitempty"`
	// Domains are the own domains of this computer, by name.
	Domains []Domain `json:"domains,omitempty"`
	// Challenges says that PathChallenges is there: one certificate for all of this computer's
	// names can be had.
	Challenges bool `json:"challenges,omitempty"`
	// UpdateNotice is where the operator says that a newer version is there; nil where they
	// say it nowhere.
	UpdateNotice *UpdateNotice `json:"updateNotice,omitempty"`
	// Suspended is there while the server's operator has ended what goes to this computer:
	// it opens nothing to anybody. What else there is then opens nothing to an agent that
	// does not know it: every session is over, every grant revoked, and no password holds.
	Suspended *Suspended `json:"suspended,omitempty"`
}

// Suspended is what the operator of a server has ended.
type Suspended struct {
	Since time.Time `json:"since"`
	Ask   string    `json:"ask"` // whom people ask: a mail address, an https:// address or a host
}

// Sentence is what everybody is told of it.
func (s Suspended) Sentence() words.Sentence {
	return words.Of("Ended by the server’s operator, ask %s.", s.Ask)
}

// MaxKnocks is how many knocks of one computer wait at most.
const MaxKnocks = 20

// Redeem is the body of POST PathVisits: a visitor's code with the proof that
// this agent began the visit (RFC 7636).
type Redeem struct {
	Code         string `json:"code"`
	CodeVerifier string `json:"codeVerifier"`
	RedirectURI  string `json:"redirectUri"`
}

// Visitor answers a redeemed code: who the visitor is.
type Visitor struct {
	AccountID string `json:"accountId"`
	Email     string `json:"email"`
	Role      Role   `json:"role"`
	AppID     string `json:"appId"` // the app the code was issued for
	Epoch     int64  `json:"epoch"` // see Person.Epoch
	Proof     Proof  `json:"proof,omitempty"`
	// Browser is the same for all visits of one signed-in browser, Client the address it
	// signed in from, and SignedIn when. They are told of the owner's browsers only; empty
	// where that is not known.
	Browser  string    `json:"browser,omitempty"`
	Client   string    `json:"client,omitempty"`
	SignedIn time.Time `json:"signedIn,omitzero"`
}

// Proof is how somebody showed who they are when they signed in. Absent, it is ProofMail.
type Proof string

// Proofs, each with what was shown.
const (
	ProofMail     Proof = "mail"     // the link or the code of a mail, or an invitation
	ProofPasskey  Proof = "passkey"  // a passkey
	ProofCode     Proof = "code"     // a recovery code
	ProofProvider Proof = "provider" // an account at an OpenID provider
)

// EndBrowser is the body of POST PathBrowsersEnd: it signs one browser of the owner's out,
// by its Visitor.Browser. One that is signed out already is no error. Since is its
// Visitor.SignedIn where it was not the owner's: then all that EndPasskey ends does, since
// then. Zero, that browser alone is meant.
type EndBrowser struct {
	ID    string    `json:"id"`
	Since time.Time `json:"since,omitzero"`
}

// AddedPasskey is a passkey, or a provider that signs them in, that was added to the account of a computer's owner in the last seven
// days. Name is the owner's own words, or the device's; Client the network address it was
// added from, empty where that is not known.
type AddedPasskey struct {
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Client string    `json:"client,omitempty"`
	At     time.Time `json:"at"`
	// Provider says that it is one, called Name.
	Provider bool `json:"provider,omitempty"`
}

// EndPasskey is the body of POST PathPasskeysEnd: an AddedPasskey was not the owner's. It
// is removed with what was made for their account since, or in the ten minutes before, and they
// are signed out everywhere. One that is gone is no error.
type EndPasskey struct {
	ID string `json:"id"`
}

// LinkForOwner is the body of POST PathOwnersLink: a link that signs the owner of the
// computer in, once, for a browser on it.
type LinkForOwner struct {
	// Language is the tag of the mail's that tells of it; English where it is empty or not
	// spoken.
	Language string `json:"language,omitempty"`
}

// OwnersLink answers it.
type OwnersLink struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until"`
}

// PublicKey answers GET PathPublicKey.
type PublicKey struct {
	PublicKey string `json:"publicKey"` // PEM (PKIX, Ed25519)
}

// KeySet answers GET PathKeySet (RFC 7517, section 5): all keys that verify access
// tokens now, newest first.
type KeySet struct {
	Keys []JWK `json:"keys"`
}

// JWK is an Ed25519 key (RFC 8037, section 2). ID is its thumbprint (RFC 7638), which
// access tokens have in their header.
type JWK struct {
	Type      string `json:"kty"` // OKP
	Curve     string `json:"crv"` // Ed25519
	X         string `json:"x"`   // base64url
	ID        string `json:"kid"`
	Use       string `json:"use"` // sig
	Algorithm string `json:"alg"` // EdDSA
}

// NewJWK describes a key.
func NewJWK(public ed25519.PublicKey) JWK {
	x := base64.RawURLEncoding.EncodeToString(public)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return JWK{"OKP", "Ed25519", x, base64.RawURLEncoding.EncodeToString(sum[:]), "sig", "EdDSA"}
}

// Codes of Error.
const (
	CodeUnauthorized = "unauthorized"  // 401: the device credential is not known
	CodeInvalid      = "invalid"       // 400
	CodeInvalidGrant = "invalid_grant" // 400: code unknown, used, expired or not for this verifier
	CodeForbidden    = "forbidden"     // 403
	CodeNotFound     = "not_found"     // 404
	CodeSuspended    = "suspended"     // 403: ended by the operator, until they resume it
	CodeTooMany      = "too_many"      // 429, with Retry-After
	CodeUnavailable  = "unavailable"   // 503
	CodeInternal     = "internal"      // 500
)

// Error is a refusal of the control plane.
type Error struct {
	Code    string `json:"error"`
	Message string `json:"message"` // for a person, in English
	// Words is Message with its arguments apart, to be said in another language; zero
	// where Message has none.
	Words      words.Sentence `json:"words,omitzero"`
	HTTPStatus int            `json:"-"`
	RetryAfter time.Duration  `json:"-"`

	cause error // why there was no answer, for Unwrap
}

func (e *Error) Error() string { return e.Message }

// Sentence is the message, for whoever says it in another language.
func (e *Error) Sentence() words.Sentence {
	if !e.Words.IsZero() {
		return e.Words
	}
	return words.Plain(e.Message)
}

// WriteJSON answers a request. No cache keeps it, unless its header says something else already.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that nobody reads it any more
}

// Refuse is a refusal whose sentence has arguments.
func Refuse(code string, sentence words.Sentence) *Error {
	return &Error{Code: code, Message: sentence.String(), Words: sentence}
}

// Outdated is what an agent of before version 0.1.0 is told. Under this code those pass the
// sentence on to their owner, keep what they have not told yet, and leave a control plane
// alone for as long as it asks.
func Outdated() *Error {
	return &Error{Code: CodeTooMany, Message: SayOutdated, RetryAfter: mostObeyed}
}

// SayOutdated is its sentence.
const SayOutdated = "This server needs Porchlight 0.1.0 or later. Update Porchlight on this computer; everything on it stays."

// Unwrap returns what kept a Client from getting an answer, or nil.
func (e *Error) Unwrap() error { return e.cause }

// mostObeyed bounds how long a control plane can send an agent away.
const mostObeyed = 5 * time.Minute

// Who asks again after a failure waits half of leastPause and a random time below a bound,
// which is twice leastPause at first and doubles up to mostPause: a restarted control
// plane is not stormed.
const (
	leastPause = 200 * time.Millisecond
	mostPause  = 30 * time.Second
)

// Deferred says of a failed connection that a node takes in nobody at the moment: TLS's
// internal_error before the handshake, which costs both next to nothing.
func Deferred(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "remote error" && alert.Err.Error() == "tls: internal error"
}

// Backoff is how long to wait after so many failures in a row, the first of which is 1.
func Backoff(failures int) time.Duration {
	return leastPause/2 + rand.N(min(mostPause, leastPause<<min(failures, 8)))
}

// Obey is wait, or as long as the control plane that answered with err wants to be
// left alone, and up to half of that more, so that those who were sent away together do
// not come back together. told says that it is the control plane's wish.
func Obey(err error, wait time.Duration) (_ time.Duration, asked bool) {
	refusal, ok := errors.AsType[*Error](err)
	if !ok || refusal.RetryAfter <= 0 {
		return wait, false
	}
	least := min(refusal.RetryAfter, mostObeyed)
	return max(wait, least+rand.N(least/2+1)), true
}

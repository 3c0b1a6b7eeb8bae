// Package verbs has the words for what the owner does in the menu or on a notification: a
// verb with its object, which the program carries out as one call of the owner tier.
package verbs

import "porchlight/agent/agentapi"

// Verb is what a line of the menu, or a button of a notification, does.
type Verb string

const (
	Nothing      Verb = ""
	Copy         Verb = "copy"
	Approve      Verb = "approve"
	ApproveAlone Verb = "approve-alone" // and take it from everybody else
	Deny         Verb = "deny"
	Open         Verb = "open"
	Pause        Verb = "pause"
	Resume       Verb = "resume"
	Revoke       Verb = "revoke"
	AllowUser    Verb = "allow-user" // of this computer
	DenyUser     Verb = "deny-user"
	RevokeGrant  Verb = "revoke-client"
	Undo         Verb = "undo"       // what a notice is about
	Answer       Verb = "answer"     // somebody who knocks
	Disconnect   Verb = "disconnect" // what somebody has open
	Remove       Verb = "remove"     // a person, from everything
	Take         Verb = "take"       // an app from a person
	Give         Verb = "give"       // an app to a person
	TakeGroup    Verb = "take-group" // an app from a group
	GiveGroup    Verb = "give-group" // an app to a group
	Prolong      Verb = "prolong"    // apps of a person that have ended, by a week
	GiveBack     Verb = "give-back"  // what Remove or Take took, while it is held
	TakeBack     Verb = "take-back"  // what Give or Answer gave
	Dark         Verb = "dark"
	Light        Verb = "light"
	Unlock       Verb = "unlock"      // have the keychain ask for its password
	SecretFile   Verb = "secret-file" // keep the owner secret in one
	Login        Verb = "login"       // start at login
	Show         Verb = "show"        // the window
	Quit         Verb = "quit"
)

// Action is a verb with its object.
type Action struct {
	Verb  Verb
	Name  string // the app's, or the id of a grant, an app password, a user or a group
	Label string // what the owner calls it
	// Seen is what the owner was looking at when approving: a request that
	// changed since is not what they meant.
	Seen   Seen
	Text   string // what Copy copies; the answer of Answer
	Until  string // of Approve and GiveGroup: when it ends, as agentapi.Approval has it
	Person string // account id of whom it is about; label is their address
	App    string // label of the app it is about; of several, one a line
	Grant  string // of Disconnect: the connected app, not the browsers
	View   string // where Show opens the window, name being what of it; empty: where it was
	Notice uint64 // of Undo
	On     bool   // of Login
}

// Seen is the part of a request an approval depends on. The agent compares it with
// what is there when the approval arrives.
type Seen struct {
	label   string
	port    int
	program string
	user    string
	tcp     bool
}

// SeenOf is what is seen of a request.
func SeenOf(a agentapi.OwnerApp) Seen {
	return Seen{label: a.Label, port: a.LocalPort, program: a.Listener.Program, user: a.Listener.User, tcp: a.TCP}
}

// Wire is what the agent is sent of it.
func (s Seen) Wire() agentapi.Seen {
	return agentapi.Seen{Label: s.label, LocalPort: s.port, Program: &s.program, User: &s.user, TCP: s.tcp}
}

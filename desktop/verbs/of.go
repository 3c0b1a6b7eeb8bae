package verbs

import (
	"slices"
	"strings"

	"porchlight/agent/agentapi"
)

// Views of the window, by the page's own names.
const (
	ViewApps     = "apps"
	ViewAdd      = "add"
	ViewPeople   = "people"
	ViewInvite   = "invite"
	ViewClients  = "clients"
	ViewActivity = "activity"
	ViewSettings = "settings"
	ViewHealth   = "health"
	ViewTrust    = "trust" // before an app is opened
	ViewFind     = "find"  // the palette, over the view that shows
)

// ApproveOf is a yes to an app as it is seen.
func ApproveOf(a agentapi.OwnerApp) Action {
	return Action{Verb: Approve, Name: a.Name, Label: a.Label, Seen: SeenOf(a)}
}

// TodayOf is ApproveOf until the end of the day.
func TodayOf(a agentapi.OwnerApp) Action {
	act := ApproveOf(a)
	act.Until = agentapi.UntilToday
	return act
}

// AloneOf is approveOf that takes the app from everybody else.
func AloneOf(a agentapi.OwnerApp) Action {
	return Action{Verb: ApproveAlone, Name: a.Name, Label: a.Label, Seen: SeenOf(a)}
}

// AllowOf lets another user of the computer in.
func AllowOf(u agentapi.LocalUser) Action {
	return Action{Verb: AllowUser, Name: u.ID, Label: u.Name}
}

// DenyOf does not.
func DenyOf(u agentapi.LocalUser) Action {
	return Action{Verb: DenyUser, Name: u.ID, Label: u.Name}
}

// AnswerOf answers a knock, by one of agentapi.KnockToday and the like.
func AnswerOf(k agentapi.Knock, answer string) Action {
	return Action{Verb: Answer, Name: k.ID, Person: k.AccountID, Label: k.Email, App: k.App, Text: answer}
}

// DisconnectOf ends what a visitor has open.
func DisconnectOf(v agentapi.Visitor) Action {
	return Action{Verb: Disconnect, Person: v.AccountID, Label: v.Called(), Grant: v.GrantID, Name: v.PasswordID, App: strings.Join(v.Apps, "\n")}
}

// RemoveOf takes everything from a person.
func RemoveOf(account, email string) Action {
	return Action{Verb: Remove, Person: account, Label: email}
}

// TakeOf takes one app from a person.
func TakeOf(account, email, app string) Action {
	return Action{Verb: Take, Person: account, Label: email, App: app}
}

// GiveOf gives one app to a person.
func GiveOf(account, email, app string) Action {
	return Action{Verb: Give, Person: account, Label: email, App: app}
}

// OfGroup gives one app to a group, or takes it from one that has it.
func OfGroup(g agentapi.Group, app string) Action {
	act := Action{Verb: GiveGroup, Name: g.ID, Label: g.Name, App: app}
	if slices.Contains(g.Apps, app) {
		act.Verb = TakeGroup
	}
	return act
}

// CopyOf copies the link of an app that is at host.
func CopyOf(a agentapi.OwnerApp, host string) Action {
	return Action{Verb: Copy, Name: a.Name, Text: "https://" + host}
}

package desktop

import (
	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
)

// kind of a notification, as the owner's settings switch them off one by one
// (agentapi.Settings.Quiet); "" cannot be switched off.
type kind string

const (
	kindRequest    kind = agentapi.KindRequest    // an app asks for an address
	kindInvitation kind = agentapi.KindInvitation // somebody accepted an invitation
	kindCapability kind = agentapi.KindCapability // an app changed who may come in
	kindClient     kind = agentapi.KindClient     // a remote client was let in
	kindAccess     kind = agentapi.KindAccess     // what the owner ended, and what that closed
	kindConnection kind = agentapi.KindConnection // something keeps visitors out for a minute
	kindChanged    kind = agentapi.KindChanged    // an app changed its name, port or program
	kindApproved   kind = agentapi.KindApproved   // an app was approved at a terminal
	kindEnded      kind = agentapi.KindEnded      // what was shared until a date has ended
	kindKnock      kind = agentapi.KindKnock      // somebody asks to be let in
	kindVisit      kind = agentapi.KindVisit      // a member's first visit of an app
)

// kindOf is the one place where the agent's kinds of notices become the owner's.
// One this version does not know is about an app, and loud.
func kindOf(n agentapi.Notice) kind {
	switch n.Kind {
	case agentapi.NoticeAccepted:
		return kindInvitation
	case agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityWithdrawn, agentapi.ActivityRemoved:
		return kindCapability
	case agentapi.NoticeUser:
		return kindRequest
	case agentapi.NoticeApproved:
		return kindApproved
	case agentapi.NoticeEnded:
		return kindEnded
	case agentapi.NoticeClock:
		return kindConnection
	case agentapi.NoticeFirstVisit:
		return kindVisit
	}
	return kindChanged
}

// titleOf is what the notification of a notice is headed by, the app's label
// where it is about an app.
func titleOf(n agentapi.Notice, apps []agentapi.OwnerApp) string {
	switch n.Kind {
	case agentapi.NoticeAccepted:
		return language.Say("An invitation was accepted")
	case agentapi.ActivityInvited:
		return language.Say("An app invited someone")
	case agentapi.ActivityGiven:
		return language.Say("An app let someone in")
	case agentapi.ActivityWithdrawn:
		return language.Say("An app took access away")
	case agentapi.ActivityRemoved:
		return language.Say("An app removed someone")
	case agentapi.NoticeUser:
		return language.Say("Another user of this computer asks")
	}
	for _, app := range apps {
		if app.Name == n.App {
			return language.Named(app.Label)
		}
	}
	return "Porchlight"
}

// quiet are the kinds that raise no notification.
type quiet map[kind]bool

func quietOf(s agentapi.Settings) quiet {
	q := quiet{}
	for _, k := range s.Quiet {
		q[kind(k)] = true
	}
	return q
}

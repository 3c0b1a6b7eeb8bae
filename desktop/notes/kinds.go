package notes

import (
	"cmp"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
)

// kindOf is the one place where the agent's kinds of notices become the owner's.
// One this version does not know is about an app, and loud.
func kindOf(n agentapi.Notice) string { return cmp.Or(kinds[n.Kind], agentapi.KindChanged) }

var kinds = map[string]string{
	agentapi.NoticeAccepted:    agentapi.KindInvitation,
	agentapi.ActivityInvited:   agentapi.KindCapability,
	agentapi.ActivityGiven:     agentapi.KindCapability,
	agentapi.ActivityWithdrawn: agentapi.KindCapability,
	agentapi.ActivityRemoved:   agentapi.KindCapability,
	agentapi.NoticeUser:        agentapi.KindRequest,
	agentapi.NoticeApproved:    agentapi.KindApproved,
	agentapi.NoticeEnded:       agentapi.KindEnded,
	agentapi.NoticeClock:       agentapi.KindConnection,
	agentapi.NoticeFirstVisit:  agentapi.KindVisit,
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

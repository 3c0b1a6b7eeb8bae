package notes

import (
	"cmp"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/internal/words"
)

// kinds is the one place where the agent's kinds of notices become the owner's, and have a
// title of their own where they are about no app.
var kinds = map[string]struct {
	kind  string
	title words.Sentence
}{
	agentapi.NoticeAccepted:    {agentapi.KindInvitation, words.Of("An invitation was accepted")},
	agentapi.ActivityInvited:   {agentapi.KindCapability, words.Of("An app invited someone")},
	agentapi.ActivityGiven:     {agentapi.KindCapability, words.Of("An app let someone in")},
	agentapi.ActivityWithdrawn: {agentapi.KindCapability, words.Of("An app took access away")},
	agentapi.ActivityRemoved:   {agentapi.KindCapability, words.Of("An app removed someone")},
	agentapi.NoticeUser:        {agentapi.KindRequest, words.Of("Another user of this computer asks")},
	agentapi.NoticeApproved:    {agentapi.KindApproved, words.Of("An app was approved at a terminal")},
	agentapi.NoticeEnded:       {agentapi.KindEnded, words.Of("An approval has ended")}, // or a share: see aboutSomebody
	agentapi.NoticeClock:       {kind: agentapi.KindConnection},
	agentapi.NoticeBrowser:     {kind: agentapi.KindClient},
	agentapi.NoticePasskey:     {kind: agentapi.KindClient},
	agentapi.NoticeFirstVisit:  {kind: agentapi.KindVisit},
	agentapi.NoticeSenderFull:  {agentapi.KindConnection, words.Of("A sender is kept out")},

	agentapi.ActivitySenderEnded: {kind: agentapi.KindEnded},
}

// kindOf is the owner's kind of a notice. One this version does not know is about an app,
// and loud.
func kindOf(n agentapi.Notice) string { return cmp.Or(kinds[n.Kind].kind, agentapi.KindChanged) }

// titleOf is what the notification of a notice is headed by, the app's label
// where it is about an app.
func titleOf(n agentapi.Notice, apps []agentapi.OwnerApp) string {
	if title := kinds[n.Kind].title; !title.IsZero() {
		return language.Spoken().Tell(title)
	}
	for _, app := range apps {
		if app.Name == n.App {
			return language.Named(app.Label)
		}
	}
	return "Porchlight"
}

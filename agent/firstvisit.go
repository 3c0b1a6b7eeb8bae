package agent

import (
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/internal/words"
)

// tellFirstVisit has the owner told that somebody opened an app for the first time.
func (a *Agent) tellFirstVisit(v store.Visited) {
	text := words.Of("%[1]s opened %[2]s for the first time.", v.Email, v.Label)
	notice := agentapi.Notice{
		At: time.Now().UTC(), Kind: agentapi.NoticeFirstVisit,
		Text:    text.String(),
		Words:   words.Text{text},
		Visitor: &agentapi.FirstVisit{AccountID: v.AccountID, Email: v.Email, App: v.Label},
	}
	if _, err := a.apps.Tell(notice, nil); err != nil {
		a.log.Error("the owner could not be told of a first visit", "err", err)
	}
}

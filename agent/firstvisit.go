package agent

import (
	"fmt"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
)

// tellFirstVisit has the owner told that somebody opened an app for the first time.
func (a *Agent) tellFirstVisit(v store.Visited) {
	notice := agentapi.Notice{
		At: time.Now().UTC(), Kind: agentapi.NoticeFirstVisit,
		Text:    fmt.Sprintf("%s opened %s for the first time.", v.Email, v.Label),
		Visitor: &agentapi.FirstVisit{AccountID: v.AccountID, Email: v.Email, App: v.Label},
	}
	if _, err := a.apps.Tell(notice, nil); err != nil {
		a.log.Error("the owner could not be told of a first visit", "err", err)
	}
}

package agent

import (
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// tellAccepted has the owner told of the people who accepted an invitation
// between two snapshots.
func (a *Agent) tellAccepted(before, now controlapi.Snapshot) {
	for _, text := range accepted(before, now, a.labels()) {
		notice := agentapi.Notice{At: time.Now().UTC(), Kind: agentapi.NoticeAccepted, Text: text.String(), Words: words.Text{text}}
		if _, err := a.apps.Tell(notice, nil); err != nil {
			a.log.Error("the owner could not be told of an accepted invitation", "err", err)
		}
	}
}

// maxAcceptedApps is how many apps a notice of an accepted invitation names.
const maxAcceptedApps = 3

// accepted returns a sentence for each person who has become active; labels are
// the apps', by id. Somebody who is quick is never seen as invited: nothing but an
// invitation makes a person active.
func accepted(before, now controlapi.Snapshot, labels map[string]string) (texts []words.Sentence) {
	if before.Computer.ID != now.Computer.ID {
		return nil // other people, of another account
	}
	active := map[string]bool{}
	for _, p := range before.People {
		active[p.AccountID] = p.Status == controlapi.PersonActive
	}
	for _, p := range now.People {
		if active[p.AccountID] || p.Status != controlapi.PersonActive || p.Role == controlapi.RoleOwner {
			continue
		}
		var open []string
		for _, id := range p.Apps {
			if label, ok := labels[id]; ok {
				open = append(open, label)
			}
		}
		slices.Sort(open)
		text := words.Of("%s accepted your invitation.", p.Email)
		if len(open) > 0 {
			named := words.Names{Names: open[:min(len(open), maxAcceptedApps)], More: max(0, len(open)-maxAcceptedApps)}
			text = words.Of("%[1]s accepted your invitation and can open %[2]s.", p.Email, named)
		}
		texts = append(texts, text)
	}
	return texts
}

package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
)

// tellAccepted has the owner told of the people who accepted an invitation
// between two snapshots.
func (a *Agent) tellAccepted(before, now controlapi.Snapshot) {
	labels := map[string]string{}
	for _, app := range a.apps.Approved() {
		labels[app.ID] = app.Label
	}
	for _, text := range accepted(before, now, labels) {
		notice := agentapi.Notice{At: time.Now().UTC(), Kind: agentapi.NoticeAccepted, Text: text}
		if err := a.apps.Tell(notice, nil); err != nil {
			a.log.Error("the owner could not be told of an accepted invitation", "err", err)
		}
	}
}

// maxAcceptedApps is how many apps a notice of an accepted invitation names.
const maxAcceptedApps = 3

// accepted returns a sentence for each person who has become active; labels are
// the apps', by id. Whoever is quick is never seen as invited: nothing but an
// invitation makes anybody active.
func accepted(before, now controlapi.Snapshot, labels map[string]string) (texts []string) {
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
		text := p.Email + " accepted your invitation"
		switch rest := len(open) - maxAcceptedApps; {
		case len(open) == 0:
			text += "."
		case rest > 0:
			text += fmt.Sprintf(" and can open %s and %d more.", strings.Join(open[:maxAcceptedApps], ", "), rest)
		case len(open) == 1:
			text += " and can open " + open[0] + "."
		default:
			text += " and can open " + strings.Join(open[:len(open)-1], ", ") + " and " + open[len(open)-1] + "."
		}
		texts = append(texts, text)
	}
	return texts
}

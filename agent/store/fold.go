package store

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"porchlight/agent/agentapi"
)

// maxFoldBack is how many of the newest lines are looked at for one that a new line
// can be counted in.
const maxFoldBack = 200

// counted are the kinds that strangers can cause, so that there is one line of each
// kind an hour.
var counted = []string{agentapi.ActivityKnocked, agentapi.ActivityTurnedAway, agentapi.ActivityPasswordRefused, agentapi.ActivityDeliveryRefused}

// Counted says whether strangers can cause lines of this kind.
func Counted(kind string) bool { return slices.Contains(counted, kind) }

// fold counts a line in with one that is kept, if it may be.
func (s *share) fold(line agentapi.Activity) (folded bool, err error) {
	if line.Owner {
		return false, nil
	}
	c := s.lines.Cursor()
	k, raw := c.Last()
	for i := 0; k != nil && i < maxFoldBack; i++ {
		var kept agentapi.Activity
		if json.Unmarshal(raw, &kept) == nil {
			if kept.At.Before(hourOf(line)) || ownerBetween(kept, line) {
				return false, nil
			}
			if FoldActivity(&kept, line) {
				kept.ID = number(k)
				return true, s.put(kept)
			}
		}
		k, raw = c.Prev()
	}
	return false, nil
}

// ownerBetween says whether kept is the owner's own decision about what line is about:
// what came before it is told apart from what came after.
func ownerBetween(kept, line agentapi.Activity) bool {
	if !kept.Owner || Counted(line.Kind) || kept.Email != line.Email {
		return false
	}
	return appOf(kept) == "" || appOf(line) == "" || appOf(kept) == appOf(line)
}

// FoldActivity counts line in with kept, if both happened in the same hour and may be
// told together: attempts of strangers where they are of one kind, and else what
// was not done by the owner, where it is about the same person and app, or client. What is not
// the same in both is left out of kept.
func FoldActivity(kept *agentapi.Activity, line agentapi.Activity) bool {
	switch {
	case kept.Kind != line.Kind || agentapi.GroupOf(line.Kind) == agentapi.GroupVisits || kept.Owner || line.Owner:
		return false
	case !hourOf(*kept).Equal(hourOf(line)):
		return false
	case !Counted(line.Kind) && (kept.Email != line.Email || kept.By != line.By || appOf(*kept) != appOf(line)):
		return false
	case slices.Contains([]string{agentapi.ActivityClientIn, agentapi.ActivityClientOut, agentapi.ActivityBrowser, agentapi.ActivityPasskey}, line.Kind) && kept.What != line.What:
		return false
	}
	kept.Count = max(kept.Count, 1) + max(line.Count, 1)
	kept.Closed += line.Closed
	kept.Until, kept.Port, kept.Program, kept.Notice = line.Until, line.Port, line.Program, line.Notice
	if kept.Email != line.Email {
		kept.Email, kept.AccountID = "", ""
	}
	if appOf(*kept) != appOf(line) {
		kept.App, kept.Name = "", ""
	} else {
		kept.App = line.App // it may have been renamed
	}
	if kept.What != line.What {
		kept.What = ""
	}
	return true
}

func hourOf(line agentapi.Activity) time.Time { return line.At.UTC().Truncate(time.Hour) }

// appOf tells the app of a line from another: a name stays when a label changes.
func appOf(line agentapi.Activity) string { return cmp.Or(line.Name, line.App) }

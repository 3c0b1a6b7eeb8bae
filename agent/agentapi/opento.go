package agentapi

import "fmt"

// AsksAgain says whether an app that was approved before waits for another yes.
func (a OwnerApp) AsksAgain() bool { return a.Status == StatusPending && a.ApprovedAt != nil }

// AgainOpen says, of an app that asks again, who can open it once more when it is
// approved, the owner aside: "ben@example.com and 2 others can open it again.";
// empty where nobody else can. show makes a name fit for where it is read.
func (a OwnerApp) AgainOpen(show func(string) string) string {
	if who := a.OthersWhoOpen(show); who != "" {
		return who + " can open it again."
	}
	return ""
}

// OthersWhoOpen names who may open an app, the owner aside; empty for nobody.
func (a OwnerApp) OthersWhoOpen(show func(string) string) string {
	if a.OpenToCount == 0 || len(a.OpenTo) == 0 {
		return ""
	}
	first := show(a.OpenTo[0])
	switch {
	case a.OpenToCount == 1:
		return first
	case a.OpenToCount == 2 && len(a.OpenTo) == 2:
		return first + " and " + show(a.OpenTo[1])
	case a.OpenToCount == 2:
		return first + " and 1 other"
	}
	return fmt.Sprintf("%s and %d others", first, a.OpenToCount-1)
}

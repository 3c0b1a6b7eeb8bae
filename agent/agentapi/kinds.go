package agentapi

import "slices"

// Kinds of notifications, which the owner switches off one by one; see
// Settings.Quiet. Kinds tells what each is about.
const (
	KindRequest    = "request"
	KindInvitation = "invitation"
	KindCapability = "capability"
	KindClient     = "client"
	KindAccess     = "access"
	KindConnection = "connection"
	KindChanged    = "changed"
	KindApproved   = "approved"
	KindEnded      = "ended"
	KindKnock      = "knock"
	KindVisit      = "visit"
)

// Levels are how much the owner is told, in one word: what a list of quiet kinds means.
// A list that is of none of them is the owner's own choice.
const (
	NotifyEverything = "everything"
	NotifyWaiting    = "waiting" // what waits for the owner: who asks, and trouble
	NotifyNothing    = "nothing" // but what is told at every level
)

// Levels lists them, the loudest first: each tells less than the one before.
func Levels() []string { return []string{NotifyEverything, NotifyWaiting, NotifyNothing} }

// Kind of notifications.
type Kind struct {
	Name  string // one of the constants
	About string // for the owner: what happened
	// Down to this level it is told. Who asks to get in, who got in by a client, and what
	// ends access for everybody is told at each.
	level string
}

// Kinds lists them all, in the order the owner is shown them.
func Kinds() []Kind {
	return []Kind{
		{KindRequest, "an app asks for an address", NotifyNothing},
		{KindInvitation, "somebody accepted an invitation", NotifyEverything},
		{KindCapability, "an app changed who may come in", NotifyEverything},
		{KindClient, "a remote client was let in", NotifyNothing},
		{KindAccess, "what you ended, and what that closed", NotifyNothing},
		{KindConnection, "something keeps visitors out", NotifyWaiting},
		{KindChanged, "an app changed its label, port or program", NotifyEverything},
		{KindApproved, "an app was approved at a terminal", NotifyEverything},
		{KindEnded, "something you shared until a date has ended", NotifyEverything},
		{KindKnock, "somebody asks to be let in", NotifyNothing},
		{KindVisit, "somebody opened an app for the first time", NotifyEverything},
	}
}

// QuietAt lists the kinds that are quiet at a level, sorted; false for a level there is not.
func QuietAt(level string) (quiet []string, ok bool) {
	rank := slices.Index(Levels(), level)
	quiet = []string{}
	for _, kind := range Kinds() {
		if slices.Index(Levels(), kind.level) < rank {
			quiet = append(quiet, kind.Name)
		}
	}
	slices.Sort(quiet)
	return quiet, rank >= 0
}

// LevelOf names the level that a sorted list of quiet kinds is, empty for none.
func LevelOf(quiet []string) string {
	for _, level := range Levels() {
		if list, _ := QuietAt(level); slices.Equal(list, quiet) {
			return level
		}
	}
	return ""
}

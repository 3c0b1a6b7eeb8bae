package agentapi

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

// Kind of notifications.
type Kind struct {
	Name  string // one of the constants
	About string // for the owner: what happened
}

// Kinds lists them all, in the order the owner is shown them.
func Kinds() []Kind {
	return []Kind{
		{KindRequest, "an app asks for an address"},
		{KindInvitation, "somebody accepted an invitation"},
		{KindCapability, "an app changed who may come in"},
		{KindClient, "a remote client was let in"},
		{KindAccess, "what you ended, and what that closed"},
		{KindConnection, "something keeps visitors out"},
		{KindChanged, "an app changed its label, port or program"},
		{KindApproved, "an app was approved at a terminal"},
		{KindEnded, "something you shared until a date has ended"},
		{KindKnock, "somebody asks to be let in"},
		{KindVisit, "somebody opened an app for the first time"},
	}
}

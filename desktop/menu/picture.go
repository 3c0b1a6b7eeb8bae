package menu

import (
	"time"

	"porchlight/agent/agentapi"
)

// Picture is all that a menu is drawn from.
type Picture struct {
	agentapi.OwnerState
	// People of the computer, the owner and removed ones too; nil while not known.
	People   []agentapi.Person
	Visitors []agentapi.Visitor // who has something open
	Share    Offer              // what could be shared; its port is 0 for nothing
	Secret   error              // why the owner secret is not there: ownersecret.ErrLocked or ErrUnavailable; nil where it is
	AtLogin  bool               // whether Porchlight starts when the owner logs in
	Keys     string             // that open the palette from anywhere; empty for none
	Now      time.Time
}

// Offer is a program of the owner's that listens, and that nobody has an address for.
type Offer struct {
	Port    int
	Program string
	Since   time.Time
}

func isLive(a agentapi.OwnerApp) bool { return a.Status == agentapi.StatusLive }

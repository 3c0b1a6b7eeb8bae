package language

import (
	"strconv"

	"porchlight/agent/agentapi"
)

// Wants is the title of a request, in the menu and in a notification. One that was
// approved before has an address; what it wants is another yes.
func Wants(a agentapi.OwnerApp) string {
	if a.AsksAgain() {
		return Say("%s has changed", Named(a.Label))
	}
	return Say("%s wants an address", Named(a.Label))
}

// WhoListens tells who would be reached: "port 8010: python3, run by maya".
func WhoListens(a agentapi.OwnerApp) string {
	port := strconv.Itoa(a.LocalPort)
	switch l := a.Listener; {
	case l.Program == "" && l.User == "":
		return Say("port %s: no program seen there", port)
	case l.Program == "": // another user's, whose name the system hides
		return Say("port %[1]s: run by %[2]s", port, Named(l.User))
	case l.User == "":
		return Say("port %[1]s: %[2]s", port, Named(l.Program))
	default:
		return Say("port %[1]s: %[2]s, run by %[3]s", port, Named(l.Program), Named(l.User))
	}
}

// HostOf is the address an app has, or would have.
func HostOf(a agentapi.OwnerApp, rootHost string) string {
	if a.Host != "" {
		return a.Host
	}
	if rootHost == "" {
		return a.Name
	}
	return a.Name + "." + rootHost
}

// ClosedWords tells what an end of access closed: "3 connections closed, 0.4 s."
func ClosedWords(c agentapi.Closed) string {
	if c.Closed == 0 {
		return Say("Nothing was open.")
	}
	if c.Milliseconds < 100 {
		return Count(c.Closed, "%d connection closed.", "%d connections closed.")
	}
	return Count(c.Closed, "%[1]d connection closed in %[2]s s.", "%[1]d connections closed in %[2]s s.", Spoken().Tenths(float64(c.Milliseconds)/1000))
}

// KnockTitle is what somebody who knocks would like.
func KnockTitle(k agentapi.Knock) string {
	email := Named(k.Email)
	if k.App == "" {
		return Say("%s would like to open something", email)
	}
	return Say("%[1]s would like %[2]s", email, Beside(k.App))
}

package agentapi

import (
	"fmt"
	"strings"
)

// ListenerChange says, of an app that waits because a program of another user than
// the owner approved listens on its port, whose it was and whose it is, and of one
// that shows another key, that it does; empty for any other. show makes a name fit for where the sentence is read.
func (a OwnerApp) ListenerChange(show func(string) string) string {
	switch {
	case a.ApprovedListener == nil && a.NewKey:
		return fmt.Sprintf("%s shows another key over HTTPS than the one that was kept. Unless you renewed it, another program may be in its place.", show(a.Label))
	case a.ApprovedListener == nil:
		return ""
	}
	was := "a program that could not be seen"
	if a.ApprovedListener.User != "" {
		was = show(a.ApprovedListener.User)
	}
	now := "a program that cannot be seen"
	switch l := a.Listener; {
	case l.Program != "" && l.User != "":
		now = show(l.Program) + ", run by " + show(l.User) + ","
	case l.User != "":
		now = "a program of " + show(l.User)
	case l.Program != "":
		now = show(l.Program)
	}
	if a.Options.Socket() != "" {
		return fmt.Sprintf("%s was approved for %s; now %s has its socket, %s.", show(a.Label), was, strings.TrimSuffix(now, ","), show(a.Options.Socket()))
	}
	return fmt.Sprintf("%s was approved for %s; now %s listens on port %d.", show(a.Label), was, now, a.LocalPort)
}

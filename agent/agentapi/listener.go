package agentapi

import (
	"strconv"
	"strings"

	"porchlight/internal/words"
)

// ListenerChange is Changed in English; empty for an app that has not changed so.
func (a OwnerApp) ListenerChange(show func(string) string) string { return a.Changed(show).String() }

// Changed says, of an app that waits because a program of another user than the owner
// approved listens on its port, whose it was and whose it is, and of one that shows
// another key, that it does; zero for any other. show makes a name fit for where the
// sentence is read.
func (a OwnerApp) Changed(show func(string) string) words.Sentence {
	label := show(a.Label)
	switch {
	case a.ApprovedListener == nil && a.NewKey:
		return words.Of("%s shows another key over HTTPS than the one that was kept. Unless you renewed it, another program may be in its place.", label)
	case a.ApprovedListener == nil:
		return words.Sentence{}
	}
	was := words.Of("a program that could not be seen")
	if program := a.ApprovedListener.Program; strings.HasPrefix(program, ContainerShown) {
		was = words.Of("%s", show(program))
	} else if user := a.ApprovedListener.User; user != "" {
		was = words.Of("%s", show(user))
	}
	if socket := a.Options.Socket(); socket != "" {
		return words.Of("%[1]s was approved for %[2]s; now %[3]s has its socket, %[4]s.", label, was, a.now(show, "%[1]s, run by %[2]s"), show(socket))
	}
	return words.Of("%[1]s was approved for %[2]s; now %[3]s listens on port %[4]s.", label, was, a.now(show, "%[1]s, run by %[2]s,"), strconv.Itoa(a.LocalPort))
}

// now is who listens, within a sentence; both is said where program and user are seen.
func (a OwnerApp) now(show func(string) string, both string) words.Sentence {
	switch l := a.Listener; {
	case l.Program != "" && l.User != "":
		return words.Sentence{Key: both, Args: []any{show(l.Program), show(l.User)}}
	case l.User != "":
		return words.Of("a program of %s", show(l.User))
	case l.Program != "":
		return words.Of("%s", show(l.Program))
	}
	return words.Of("a program that cannot be seen")
}

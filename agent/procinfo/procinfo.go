// Package procinfo tells which process listens on a TCP port of 127.0.0.1, so
// that the owner approves a program and not only a number, and so that a busy
// port can be explained; which process is at the other end of a connection; and
// when a process has ended. It reads what the operating system shows to the
// current user and never guesses: what is not told stays empty. The answers are
// for people to read; nothing is permitted because of them.
package procinfo

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/agentapi"
)

// Listening returns who accepts connections to 127.0.0.1:port. PID is 0 when
// nobody was found, or when the system hides the processes of other users;
// User is a login name, or the numeric id of a user without one.
func Listening(port int) agentapi.Listener {
	if port < 1 || port > 65535 {
		return agentapi.Listener{}
	}
	l := listening(port)
	l.Program = shown(l.Program)
	return l
}

// ListenerUser is Listening for the user alone: PID and Program stay empty. It
// is quick enough to be asked on the way of every request.
func ListenerUser(port int) agentapi.Listener {
	l := Listening(port)
	return agentapi.Listener{User: l.User, UserID: l.UserID}
}

// maxName is the longest name of a program that is told, in characters.
const maxName = 100

// shown is a program's name as it can be shown in a sentence, a menu or a
// terminal. Whoever runs a program chooses the name of its file: line breaks,
// control sequences and characters that turn the rest of a line around become
// question marks, and what is too long is cut.
func shown(program string) string {
	var b strings.Builder
	n := 0
	for _, c := range program {
		if n++; n > maxName {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(c) || c == utf8.RuneError || unicode.Is(unicode.Cf, c) {
			c = '?'
		}
		b.WriteRune(c)
	}
	return b.String()
}

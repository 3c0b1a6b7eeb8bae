// Package procinfo tells which process listens on a TCP port of 127.0.0.1, so
// that the owner approves a program and not only a number, and so that a busy
// port can be explained; which process is at the other end of a connection; and
// when a process has ended. It reads what the operating system shows to the
// current user and never guesses: what is not told stays empty. The answers are
// for people to read; nothing is permitted because of them.
package procinfo

import "porchlight/agent/agentapi"

// Listening returns who accepts connections to 127.0.0.1:port. PID is 0 when
// nobody was found, or when the system hides the processes of other users;
// User is a login name, or the numeric id of a user without one.
func Listening(port int) agentapi.Listener {
	if port < 1 || port > 65535 {
		return agentapi.Listener{}
	}
	return listening(port)
}

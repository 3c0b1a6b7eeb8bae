// Package procinfo tells whose program is at a TCP port or at the other end of a
// connection of this computer, which program that is, and when a process has
// ended.
//
// Two kinds of answers are kept apart. The user of a socket is written on the
// socket by the kernel when it is made, and no program can choose or change it:
// who may do what over the local API, and whether an app's port is still in the
// hands that the owner approved, is decided by it. Which process has a socket,
// and what its program is called, is for people to read: anybody can give a
// program's file any name, so nothing is permitted because of it.
//
// It reads what the operating system shows to the current user and never
// guesses: what it does not show stays empty, and counts as unknown.
package procinfo

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/agentapi"
)

// Listening returns who accepts connections to 127.0.0.1:port. PID is 0 when
// nobody was found, or when the system hides the processes of other users;
// User is a login name, or the numeric id of a user without one. It may look
// through many processes, which takes time: see Socket.Find.
func Listening(port int) agentapi.Listener {
	return agentapi.Listener(ListenerSocket(IPv4, port).Find())
}

// Holder names who listens at an address of this computer, host:port, for somebody who
// wants it too: "python3 (process 12)". Where the system does not tell, or the address is
// neither on 127.0.0.1 nor on [::1], it is "another program".
func Holder(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return "another program"
	}
	switch p := ListenerSocket(at.Addr(), int(at.Port())).Find(); {
	case strings.HasPrefix(p.Program, "porchlight"):
		return fmt.Sprintf("another Porchlight (%s, process %d)", p.Program, p.PID)
	case p.Program != "":
		return fmt.Sprintf("%s (process %d)", p.Program, p.PID)
	case p.User != "":
		return fmt.Sprintf("a program of the user %s", p.User)
	}
	return "another program"
}

// maxName is the longest name of a program that is told, in characters.
const maxName = 100

// shown is a program's name as it can be shown in a sentence, a menu or a
// terminal. Anybody can give a program's file any name: line breaks, control
// sequences and characters that turn the rest of a line around become
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

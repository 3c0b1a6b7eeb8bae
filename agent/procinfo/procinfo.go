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
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/agentapi"
	sockets "porchlight/internal/socket"
	"porchlight/internal/words"
)

// Listening returns who accepts connections to 127.0.0.1:port. PID is 0 when
// nobody was found, or when the system hides the processes of other users;
// User is a login name, or the numeric id of a user without one. It may look
// through many processes, which takes time: see Socket.Find.
func Listening(port int) agentapi.Listener {
	return agentapi.Listener(ListenerSocket(IPv4, port).Find())
}

// CannotListen is a sentence about err, for which address (host:port of this computer) is
// not to be had. It names who has it, and option, which chooses another port.
func CannotListen(err error, address, option string) error {
	if !sockets.InUse(err) {
		return words.Errorf("cannot listen on %s: %w", address, err)
	}
	holder, known := holderOf(address)
	if !known && sockets.MayBeNobodys(err) {
		return words.Errorf("%s is taken by another program, or Windows keeps it back. Stop that program, or choose another port with %s", address, option)
	}
	return words.Errorf("%s is taken by %s. Stop it, or choose another port with %s", address, holder, option)
}

// holderOf names who listens at an address: "python3 (process 12)". Where the system does
// not tell, or the address is neither on 127.0.0.1 nor on [::1], that is not known.
func holderOf(address string) (holder words.Sentence, known bool) {
	var p Process
	if addr, err := netip.ParseAddrPort(address); err == nil {
		p = ListenerSocket(addr.Addr(), int(addr.Port())).Find()
	}
	pid := strconv.Itoa(p.PID) // which no language groups by thousands
	switch {
	case strings.HasPrefix(p.Program, "porchlight"):
		return words.Of("another Porchlight (%s, process %s)", p.Program, pid), true
	case p.Program != "":
		return words.Of("%s (process %s)", p.Program, pid), true
	case p.User != "":
		return words.Of("a program of the user %s", p.User), true
	}
	return words.Of("another program"), false
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

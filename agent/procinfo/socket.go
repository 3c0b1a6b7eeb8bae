package procinfo

import (
	"cmp"
	"net/netip"
)

// Socket is one socket of this computer as far as the system tells; zero where
// there is none, or none that we are shown.
type Socket struct {
	User   string // login name, or the numeric id of a user without one
	UserID string // the system's own id of User: a uid, or a SID on Windows
	// Inode is the socket's number: the same number is the same socket. 0 where
	// the system gives none.
	Inode uint64

	holder Process // who has it, where the system tells that in the same breath
}

// ListenerSocket is the socket that takes connections to 127.0.0.1:port. It is
// quick enough to be asked for on the way of every request.
func ListenerSocket(port int) Socket {
	if port < 1 || port > 65535 {
		return Socket{}
	}
	return listenerSocket(port)
}

// CallerSocket is the socket at one end of a TCP connection between two addresses
// of this computer, which is as quick: from is its own end, to the server's.
func CallerSocket(from, to netip.AddrPort) Socket {
	if !from.IsValid() || !to.IsValid() {
		return Socket{}
	}
	return callerSocket(unmapped(from), unmapped(to))
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// held is the socket of a process, where the system names that.
func held(p Process) Socket {
	return Socket{User: cmp.Or(p.User, p.UserID), UserID: p.UserID, holder: p}
}

// Find is the process that has the socket: one of those given, which are looked
// at first and cost little, or any of the socket's user. PID is 0 where none is
// found.
func (s Socket) Find(pids ...int) Process {
	p := s.holder
	for _, pid := range pids {
		if p.PID == 0 && pid > 0 && s.Inode != 0 && holds(pid, s) {
			p.PID = pid
		}
	}
	if p.PID == 0 && s.Inode != 0 {
		p.PID = walk(s)
	}
	if p.PID != 0 && p.Program == "" {
		p.Program = program(p.PID)
	}
	p.Program, p.User, p.UserID = shown(p.Program), s.User, s.UserID
	return p
}

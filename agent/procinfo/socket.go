package procinfo

import "net/netip"

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

// The addresses of this computer that nobody else reaches.
var (
	IPv4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	IPv6 = netip.IPv6Loopback()
)

// ListenerSocket is the socket that takes connections to a port of one of the two
// addresses of this computer. It is quick enough to be asked for on the way of every
// request.
func ListenerSocket(address netip.Addr, port int) Socket {
	if port < 1 || port > 65535 || address != IPv4 && address != IPv6 {
		return Socket{}
	}
	return listenerSocket(netip.AddrPortFrom(address, uint16(port)))
}

// CallerSocket is the socket at one end of a TCP connection between two addresses
// of this computer, which is as quick: from is its own end, to the server's.
func CallerSocket(from, to netip.AddrPort) Socket {
	if !from.IsValid() || !to.IsValid() {
		return Socket{}
	}
	return callerSocket(unmapped(from), unmapped(to))
}

// Named is a process by its id, of a user by the system's own id.
func Named(pid int, userID string) Process {
	return Process{PID: pid, Program: shown(program(pid)), User: UserName(userID), UserID: userID}
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

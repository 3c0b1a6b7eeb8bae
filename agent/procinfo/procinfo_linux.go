package procinfo

import (
	"net/netip"
	"strconv"
)

func listenerSocket(at netip.AddrPort) Socket { return described(socketAt(at, netip.AddrPort{})) }

func callerSocket(from, to netip.AddrPort) Socket { return described(socketAt(from, to)) }

func described(s socket) Socket {
	if s == (socket{}) {
		return Socket{}
	}
	uid := strconv.FormatUint(uint64(s.uid), 10)
	return Socket{User: UserName(uid), UserID: uid, Inode: s.inode}
}

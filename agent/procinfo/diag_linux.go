package procinfo

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// One socket is asked for by its two ends (NETLINK_SOCK_DIAG, an exact request):
// one message there, one back, however many sockets the computer has. The kernel
// looks it up as it would for a packet that arrives, so what it names is what a
// connection really reaches: the exact address before a wildcard, 0.0.0.0 or a
// [::] that takes IPv4 too, and a socket bound to the loopback interface where
// there is one.
//
// Can two users' sockets both be meant by one address? No: listeners share a port
// by SO_REUSEPORT only, and only those of one user; SO_REUSEADDR lets two be
// bound, but not listen; and a wildcard keeps everybody else from the exact
// address and the other way round. Sockets bound to different interfaces may
// share a port, which is why the loopback interface is named in the request.
const (
	diagHeader  = unix.SizeofNlMsghdr
	diagRequest = diagHeader + 56 // struct inet_diag_req_v2
	diagReply   = diagHeader + 72 // struct inet_diag_msg

	loopbackInterface = 1 // the kernel gives it this number in every namespace

	tcpListen = 10 // TCP_LISTEN
	// The states of a connection that stood, which its process may be closing. One
	// that only begins, by the same two ends, is another's.
	tcpConnected = 1<<1 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11
)

// errOther is an answer about a socket that was not asked for.
var errOther = errors.New("the kernel answered about another socket")

// diagnoser keeps one netlink socket, so that users can be told apart also when
// this process has no file left to open.
type diagnoser struct {
	mu   sync.Mutex
	fd   int // valid while open
	open bool
	seq  uint32

	// Every new connection to an app asks three times, so what is read into is kept.
	reply [4 << 10]byte // guarded by mu
}

var diag diagnoser

// ask is the socket whose own end is local and whose other one is remote, the
// zero value for a listener. The error is ENOENT where there is none, or where
// this kernel was built without the answer: see answers.
func (d *diagnoser) ask(local, remote netip.AddrPort) (socket, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	reply, err := d.exchange(local, remote)
	if err != nil && !errors.Is(err, unix.ENOENT) && d.open {
		unix.Close(d.fd) // whatever is still in it belongs to nobody
		d.open = false
	}
	if err != nil {
		return socket{}, err
	}
	return parseDiag(reply, local, remote)
}

// exchange sends one request and returns the message that answers it, good while mu is
// held. The kernel has queued the answer when the sending returns, so nothing is waited
// for.
func (d *diagnoser) exchange(local, remote netip.AddrPort) ([]byte, error) {
	if !d.open {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		if err != nil {
			return nil, err
		}
		d.fd, d.open = fd, true
	}
	d.seq++
	if err := unix.Sendto(d.fd, diagFor(d.seq, local, remote), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	n, from, err := unix.Recvfrom(d.fd, d.reply[:], unix.MSG_DONTWAIT)
	if err != nil {
		return nil, err
	}
	// Root may send to a netlink socket too; the kernel alone has the number 0.
	if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 {
		return nil, errOther
	}
	return checkReply(d.reply[:n], d.seq)
}

// checkReply is the message in raw, where it answers the request seq.
func checkReply(raw []byte, seq uint32) ([]byte, error) {
	if len(raw) < diagHeader+4 || binary.NativeEndian.Uint32(raw[8:]) != seq {
		return nil, errOther
	}
	switch binary.NativeEndian.Uint16(raw[4:]) {
	case unix.SOCK_DIAG_BY_FAMILY:
		return raw, nil
	case unix.NLMSG_ERROR:
		if code := int32(binary.NativeEndian.Uint32(raw[diagHeader:])); code < 0 {
			return nil, unix.Errno(-code)
		}
	}
	return nil, errOther
}

// diagFor is the request for one socket. A socket for IPv6 that carries IPv4 is
// looked up by its IPv4 addresses, as the kernel itself does.
func diagFor(seq uint32, local, remote netip.AddrPort) []byte {
	m := make([]byte, diagRequest)
	binary.NativeEndian.PutUint32(m, diagRequest)
	binary.NativeEndian.PutUint16(m[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(m[8:], seq)
	req := m[diagHeader:]
	req[0], req[1] = unix.AF_INET, unix.IPPROTO_TCP
	if local.Addr().Is6() {
		req[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(req[4:], 1<<32-1) // every state
	id := req[8:]                                   // struct inet_diag_sockid
	binary.BigEndian.PutUint16(id, local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	copy(id[4:20], local.Addr().AsSlice())
	copy(id[20:36], remote.Addr().AsSlice())
	binary.NativeEndian.PutUint32(id[36:], loopbackInterface)
	binary.NativeEndian.PutUint64(id[40:], 1<<64-1) // INET_DIAG_NOCOOKIE: whichever it is
	return m
}

// parseDiag reads the answer and takes it only for the socket that was asked for.
// Where no connection has these ends the kernel answers with who listens there. A
// socket that no process has any more has no inode, and its user reads as root.
func parseDiag(raw []byte, local, remote netip.AddrPort) (socket, error) {
	if len(raw) < diagReply {
		return socket{}, errOther
	}
	family, state, id, s := diagMessage(raw[diagHeader:])
	own := diagAddress(family, id[4:20], id)
	other := diagAddress(family, id[20:36], id[2:])
	matches := own == local && other == remote && tcpConnected>>state&1 == 1
	if remote == (netip.AddrPort{}) {
		matches = state == tcpListen && own.Port() == local.Port() && (own.Addr() == local.Addr() || own.Addr().IsUnspecified()) &&
			other.Port() == 0 && other.Addr().IsUnspecified()
	}
	if !matches || s.inode == 0 {
		return socket{}, errOther
	}
	return s, nil
}

// diagMessage reads a struct inet_diag_msg, whose id is a struct inet_diag_sockid.
func diagMessage(msg []byte) (family, state byte, id []byte, s socket) {
	s = socket{uid: binary.NativeEndian.Uint32(msg[64:]), inode: uint64(binary.NativeEndian.Uint32(msg[68:]))}
	return msg[0], msg[1], msg[4:], s
}

func diagAddress(family byte, address, port []byte) netip.AddrPort {
	if family == unix.AF_INET {
		address = address[:4]
	}
	addr, _ := netip.AddrFromSlice(address)
	return netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(port))
}

// answers says whether the kernel answers about sockets at all: one without the
// module for TCP says of every socket that there is none.
var answers = sync.OnceValue(func() bool {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer ln.Close()
	_, err = diag.ask(ln.Addr().(*net.TCPAddr).AddrPort(), netip.AddrPort{})
	return err == nil
})

package procinfo

import (
	"encoding/binary"
	"net/netip"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	tcpTableOwnerPIDListener = 3        // TCP_TABLE_OWNER_PID_LISTENER
	rowSize                  = 24       // MIB_TCPROW_OWNER_PID
	rowSize6                 = 56       // MIB_TCP6ROW_OWNER_PID
	maxTable                 = 16 << 20 // bytes; far beyond any real table
)

var getExtendedTCPTable = windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetExtendedTcpTable")

// listenerSocket reads the table of the address's family. A listener on [::] that takes
// IPv4 too is in both; Wine has it in one, and there it is nobody's at 127.0.0.1.
func listenerSocket(at netip.AddrPort) Socket {
	family, size := uintptr(windows.AF_INET), rowSize
	if at.Addr().Is6() {
		family, size = windows.AF_INET6, rowSize6
	}
	var pid uint32
	best := 0
	for row := range rows(tcpTable(family, tcpTableOwnerPIDListener), size) {
		local := rowListens(row)
		if local.Port() != at.Port() {
			continue
		}
		r := 0
		switch {
		case local.Addr() == at.Addr():
			r = 2
		case local.Addr().IsUnspecified():
			r = 1
		}
		if r > best {
			best, pid = r, binary.LittleEndian.Uint32(row[size-4:])
		}
	}
	if pid == 0 {
		return Socket{}
	}
	return socketOf(processOf(pid))
}

// rowListens is a row's own address. MIB_TCPROW_OWNER_PID: state, local address, local
// port, remote address, remote port, pid. MIB_TCP6ROW_OWNER_PID: local address, scope,
// port, remote address, scope, port, state, pid. Ports are in network order.
func rowListens(row []byte) netip.AddrPort {
	if len(row) == rowSize6 {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(row[:16])), binary.BigEndian.Uint16(row[20:]))
	}
	return rowAddress(row[4:])
}

// tcpTable is a raw table of a family and class: a count, then rows.
func tcpTable(family, class uintptr) []byte {
	size := uint32(16 << 10)
	for size <= maxTable {
		buf := make([]byte, size)
		r, _, _ := getExtendedTCPTable.Call(uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)),
			0, family, class, 0)
		switch windows.Errno(r) {
		case 0:
			return buf
		case windows.ERROR_INSUFFICIENT_BUFFER:
			size += size / 4 // the table may have grown between the calls
		default:
			return nil
		}
	}
	return nil
}

func rows(table []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		if len(table) < 4 {
			return
		}
		n := int(binary.LittleEndian.Uint32(table))
		for rest := table[4:]; n > 0 && len(rest) >= size; n, rest = n-1, rest[size:] {
			if !yield(rest[:size]) {
				return
			}
		}
	}
}

func processOf(pid uint32) Process {
	p := Process{PID: int(pid)}
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return p
	}
	defer windows.CloseHandle(h)
	path := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(path))
	if windows.QueryFullProcessImageName(h, 0, &path[0], &n) == nil {
		base := filepath.Base(windows.UTF16ToString(path[:n]))
		p.Program = strings.TrimSuffix(base, filepath.Ext(base))
	}
	var token windows.Token
	if windows.OpenProcessToken(h, windows.TOKEN_QUERY, &token) != nil {
		return p
	}
	defer token.Close()
	if u, err := token.GetTokenUser(); err == nil {
		p.UserID = u.User.Sid.String()
		if name, _, _, err := u.User.Sid.LookupAccount(""); err == nil {
			p.User = name
		}
	}
	return p
}

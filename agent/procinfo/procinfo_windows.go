package procinfo

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	tcpTableOwnerPIDListener = 3 // TCP_TABLE_OWNER_PID_LISTENER
	rowSize                  = 24
	maxTable                 = 16 << 20 // bytes; far beyond any real table
)

var getExtendedTCPTable = windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetExtendedTcpTable")

func listenerSocket(port int) Socket {
	var pid uint32
	best := 0
	for row := range rows(ipv4Table(tcpTableOwnerPIDListener)) {
		// MIB_TCPROW_OWNER_PID: state, local address, local port, remote
		// address, remote port, pid; the port in network order.
		if int(binary.BigEndian.Uint16(row[8:])) != port {
			continue
		}
		r := 0
		switch [4]byte(row[4:8]) {
		case [4]byte{127, 0, 0, 1}:
			r = 2
		case [4]byte{}:
			r = 1
		}
		if r > best {
			best, pid = r, binary.LittleEndian.Uint32(row[20:])
		}
	}
	if pid == 0 {
		return Socket{}
	}
	return socketOf(processOf(pid))
}

// ipv4Table is a raw table of the given class: a count, then rows.
func ipv4Table(class uintptr) []byte {
	size := uint32(16 << 10)
	for size <= maxTable {
		buf := make([]byte, size)
		r, _, _ := getExtendedTCPTable.Call(uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)),
			0, windows.AF_INET, class, 0)
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

func rows(table []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		if len(table) < 4 {
			return
		}
		n := int(binary.LittleEndian.Uint32(table))
		for rest := table[4:]; n > 0 && len(rest) >= rowSize; n, rest = n-1, rest[rowSize:] {
			if !yield(rest[:rowSize]) {
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

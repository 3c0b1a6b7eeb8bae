package procinfo

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"golang.org/x/sys/windows"
)

const (
	maxPID = 1<<32 - 1

	tcpTableOwnerPIDConnections = 4 // TCP_TABLE_OWNER_PID_CONNECTIONS
)

func callerSocket(from, to netip.AddrPort) Socket {
	family, size := uintptr(windows.AF_INET), rowSize
	if from.Addr().Is6() {
		family, size = windows.AF_INET6, rowSize6
	}
	for row := range rows(tcpTable(family, tcpTableOwnerPIDConnections), size) {
		if rowListens(row) == from && rowRemote(row) == to {
			return socketOf(processOf(binary.LittleEndian.Uint32(row[size-4:])))
		}
	}
	return Socket{}
}

// rowRemote is the address at the other end, see rowListens.
func rowRemote(row []byte) netip.AddrPort {
	if len(row) == rowSize6 {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(row[24:40])), binary.BigEndian.Uint16(row[44:]))
	}
	return rowAddress(row[12:])
}

func rowAddress(b []byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[:4])), binary.BigEndian.Uint16(b[4:]))
}

// insideID: this system has no namespaces of processes.
func insideID(pid int) int { return pid }

// open takes a handle, which keeps the id from being given to another process.
func open(pid int) (Handle, error) {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	switch {
	case errors.Is(err, windows.ERROR_INVALID_PARAMETER):
		return nil, ErrGone
	case err != nil:
		return nil, err
	}
	return &processHandle{handle: h}, nil
}

type processHandle struct {
	mu     sync.Mutex
	handle windows.Handle
	closed bool
}

func (p *processHandle) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return true
	}
	event, err := windows.WaitForSingleObject(p.handle, 0)
	return err == nil && event == windows.WAIT_OBJECT_0
}

func (p *processHandle) Wait(ctx context.Context) error { return waitLooking(ctx, p.Ended) }

func (p *processHandle) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		windows.CloseHandle(p.handle)
	}
}

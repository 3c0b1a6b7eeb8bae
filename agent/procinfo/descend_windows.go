package procinfo

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
)

// parents gives each process that runs its parent.
func parents() map[int]int {
	found := map[int]int{}
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return found
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		found[int(entry.ProcessID)] = int(entry.ParentProcessID)
	}
	return found
}

func portsOf(pids []int) (ports []int) {
	for family, size := range map[uintptr]int{windows.AF_INET: rowSize, windows.AF_INET6: rowSize6} {
		for row := range rows(tcpTable(family, tcpTableOwnerPIDListener), size) {
			pid := int(binary.LittleEndian.Uint32(row[size-4:]))
			at := rowListens(row)
			if slices.Contains(pids, pid) && (at.Addr().IsLoopback() || at.Addr().IsUnspecified()) {
				ports = append(ports, int(at.Port()))
			}
		}
	}
	return ports
}

package procinfo

import (
	"encoding/binary"

	"golang.org/x/sys/windows"
)

func allBound() (all []Bound) {
	sockets := map[uint32]Socket{} // by process
	for family, size := range map[uintptr]int{windows.AF_INET: rowSize, windows.AF_INET6: rowSize6} {
		for row := range rows(tcpTable(family, tcpTableOwnerPIDListener), size) {
			pid := binary.LittleEndian.Uint32(row[size-4:])
			if _, ok := sockets[pid]; !ok {
				sockets[pid] = socketOf(processOf(pid))
			}
			all = append(all, Bound{unmapped(rowListens(row)), sockets[pid]})
		}
	}
	return all
}

package procinfo

import (
	"os"
	"path/filepath"
	"strconv"
)

// parents gives each process that runs its parent.
func parents() map[int]int {
	found := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return found
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue
		}
		fields, ok := fieldsOf(raw)
		if !ok {
			continue
		}
		if of, err := strconv.Atoi(fields[parent]); err == nil {
			found[pid] = of
		}
	}
	return found
}

func portsOf(pids []int) (ports []int) {
	listening := map[string]int{} // as the link of a file says it
	for _, b := range allBound() {
		if b.At.Addr().IsLoopback() || b.At.Addr().IsUnspecified() {
			listening["socket:["+strconv.FormatUint(b.Inode, 10)+"]"] = int(b.At.Port())
		}
	}
	for _, pid := range pids {
		dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
		files, err := os.ReadDir(dir)
		if err != nil {
			continue // gone, or not ours to see
		}
		for _, file := range files {
			target, err := os.Readlink(filepath.Join(dir, file.Name()))
			if port, ok := listening[target]; ok && err == nil {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

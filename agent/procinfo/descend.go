package procinfo

import "slices"

// Descendants are a process and all that it has started, directly or not, without
// those whose parent has ended. Only processes that run are among them.
func Descendants(pid int) []int {
	parents := parents()
	family := []int{pid}
	for i := 0; i < len(family); i++ {
		for child, parent := range parents {
			if parent == family[i] && !slices.Contains(family, child) {
				family = append(family, child)
			}
		}
	}
	if _, runs := parents[pid]; !runs {
		return family[1:]
	}
	return family
}

// PortsOf are the ports on which any of these processes takes connections of this
// computer, in order.
func PortsOf(pids []int) []int {
	ports := portsOf(pids)
	slices.Sort(ports)
	return slices.Compact(ports)
}

// Runs says whether there is a process of this number that has not ended.
func Runs(pid int) bool {
	_, runs := parents()[pid]
	return runs
}

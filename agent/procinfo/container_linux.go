package procinfo

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// aContainer is the id that engines put into the name of a container's group of processes.
var aContainer = regexp.MustCompile(`(?:docker|libpod|crio|cri-containerd)[-/]([0-9a-f]{64})`)

// ContainerOf is the id of the container that a process runs in; empty for none, and where
// the system does not tell.
func ContainerOf(pid int) string {
	if pid < 1 {
		return ""
	}
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return ""
	}
	defer file.Close()
	groups, _ := io.ReadAll(io.LimitReader(file, 8<<10))
	if found := aContainer.FindSubmatch(groups); found != nil {
		return string(found[1])
	}
	return ""
}

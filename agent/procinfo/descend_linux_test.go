package procinfo

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"

	"porchlight/test/programs"
)

// What a process has started is found however deep, and what listens on this computer's
// addresses is found by its port; what has ended is no process.
func TestDescendantsAndTheirPorts(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "sh -c 'echo ready; read x; exit 0'; exit 0")
	in := programs.Got(cmd.StdinPipe())(t)
	out := programs.Got(cmd.StdoutPipe())(t)
	programs.Must(t, cmd.Start())
	programs.Got(out.Read(make([]byte, 6)))(t)
	if found := Descendants(cmd.Process.Pid); len(found) != 2 || found[0] != cmd.Process.Pid {
		t.Errorf("of %d: %v", cmd.Process.Pid, found)
	}
	if found := Descendants(os.Getpid()); !slices.Contains(found, cmd.Process.Pid) || !Runs(cmd.Process.Pid) {
		t.Errorf("of ours: %v", found)
	}
	in.Close()
	programs.Must(t, cmd.Wait())
	if Runs(cmd.Process.Pid) || len(Descendants(cmd.Process.Pid)) != 0 {
		t.Error("it still runs")
	}
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"} {
		t.Run(at, func(t *testing.T) {
			port := listen(t, "tcp", at).Addr().(*net.TCPAddr).Port
			if ports := PortsOf([]int{os.Getpid()}); !slices.Contains(ports, port) {
				t.Errorf("port %d is not among %v", port, ports)
			}
			if ports := PortsOf([]int{1}); slices.Contains(ports, port) {
				t.Error("it is somebody else's as well")
			}
		})
	}
}

package pgtest

import (
	"os/exec"
	"syscall"
)

// confine has cmd run as a user of its own and end, at once, with us.
func confine(cmd *exec.Cmd, uid, gid int) {
	// A group of its own: the Ctrl-C of whoever runs the tests is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT, Setpgid: true}
	if uid >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

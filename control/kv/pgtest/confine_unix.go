//go:build unix && !linux

package pgtest

import (
	"os/exec"
	"syscall"
)

// confine has cmd run as a user of its own.
func confine(cmd *exec.Cmd, uid, gid int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

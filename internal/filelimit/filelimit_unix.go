//go:build unix

package filelimit

import "syscall"

// Limit is how many files this process may have open now. Go has raised it to
// the hard limit when the process started.
func Limit() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1024 // what systems commonly allow
	}
	return int(min(uint64(limit.Cur), most))
}

//go:build !windows

package upstream

import "syscall"

// refusals are what connecting to nobody fails with.
var refusals = []error{syscall.ECONNREFUSED, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.ENETUNREACH}

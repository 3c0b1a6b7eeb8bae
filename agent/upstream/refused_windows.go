package upstream

import "golang.org/x/sys/windows"

// refusals are what connecting to nobody fails with.
var refusals = []error{windows.WSAECONNREFUSED, windows.WSAEADDRNOTAVAIL, windows.WSAEAFNOSUPPORT, windows.WSAENETUNREACH}

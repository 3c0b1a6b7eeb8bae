//go:build !windows

package procinfo

import (
	"os"
	"strconv"
)

const almighty = "0" // root

// ownID is the effective user: the one that files and sockets are made as.
func ownID() string { return strconv.Itoa(os.Geteuid()) }

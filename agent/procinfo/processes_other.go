//go:build !linux

package procinfo

// These systems name the process of a socket with the socket, or not at all.
func holds(int, Socket) bool { return false }
func walk(Socket) int        { return 0 }
func program(int) string     { return "" }

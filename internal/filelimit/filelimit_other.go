//go:build !unix

package filelimit

// Limit is how many files this process may have open: Windows counts handles by
// memory.
func Limit() int { return most }

//go:build unix

package durable

import "golang.org/x/sys/unix"

// FreeSpace is how many bytes may still be written to the disk of a directory.
func FreeSpace(dir string) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil
}

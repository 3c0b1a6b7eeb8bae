package doctor

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// ownerOf is not looked into: a profile's own permissions keep others out.
func ownerOf(fs.FileInfo) (name string, ours bool) { return "", true }

// freeSpace is how many bytes may still be written to the disk of a directory.
func freeSpace(dir string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}

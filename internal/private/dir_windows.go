package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Dir makes a directory, and those above it, unless it is there. What is in it has the
// user who runs this as its only reader, whatever the directory above says.
func Dir(path string) error {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	attributes, err := forUser("OICI", "FA")
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	if err := windows.CreateDirectory(name, attributes); err != nil && !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return nil
}

// forUser is a descriptor of what belongs to the user who runs this, and gives them these
// rights, in the words of SDDL, and nobody else any.
func forUser(inherited, rights string) (*windows.SecurityAttributes, error) {
	me, err := ownSID()
	if err != nil {
		return nil, err
	}
	sd, err := windows.SecurityDescriptorFromString("O:" + me.String() + "D:P(A;" + inherited + ";" + rights + ";;;" + me.String() + ")")
	if err != nil {
		return nil, err
	}
	return &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd}, nil
}

func ownSID() (*windows.SID, error) {
	u, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	return u.User.Sid, nil
}

// OpenTo says whom, beside this user and the system, a directory is open to; empty for
// nobody.
func OpenTo(path string) (string, error) {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "", &fs.PathError{Op: "look who may open", Path: path, Err: err}
	}
	me, err := ownSID()
	if err != nil {
		return "", err
	}
	dacl, _, err := sd.DACL()
	if errors.Is(err, windows.ERROR_OBJECT_NOT_FOUND) || err == nil && dacl == nil {
		return "everybody", nil // without a list nobody is kept out
	}
	if err != nil {
		return "", err
	}
	for i := range uint32(dacl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(dacl, i, &ace); err != nil {
			return "", err
		}
		sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart))
		if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || ace.Mask == 0 || sid.Equals(me) || isSystems(sid) {
			continue
		}
		if name, _, _, err := sid.LookupAccount(""); err == nil {
			return name, nil
		}
		return sid.String(), nil
	}
	return "", nil
}

// isSystems says whether a SID is the system itself, its administrators, who may take any
// file, or whoever makes a file.
func isSystems(sid *windows.SID) bool {
	for _, known := range []windows.WELL_KNOWN_SID_TYPE{
		windows.WinLocalSystemSid, windows.WinBuiltinAdministratorsSid, windows.WinCreatorOwnerSid, windows.WinCreatorOwnerRightsSid,
	} {
		if sid.IsWellKnown(known) {
			return true
		}
	}
	return false
}

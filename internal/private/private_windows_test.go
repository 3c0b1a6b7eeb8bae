package private_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"porchlight/internal/private"
	"porchlight/test/programs"
)

// severalListen is Wine's reading of FILE_FLAG_FIRST_PIPE_INSTANCE, which it ignores.
var severalListen = windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil

// Both sides know which process is at the other end.
func TestPipeKnowsTheOtherEnd(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	for _, c := range []any{a, b} {
		if pid := c.(interface{ PID() int }).PID(); pid != os.Getpid() {
			t.Errorf("the other end is process %d, want %d", pid, os.Getpid())
		}
	}
}

// Weakness: a pipe that another program made first, or an address on another computer,
// would be told the owner secret. Checked: what is no pipe of this computer is not
// dialled, and no pipe is nobody. Another user's is not tried: Wine has one user.
func TestDialWantsAPipeOfThisComputer(t *testing.T) {
	t.Parallel()
	for _, at := range []string{`\\elsewhere\pipe\porchlight-0`, `C:\owner.sock`, "", "\\\\.\\pipe\\porchlight-\x00", `\\.\pipe\porchlight-nobody`} {
		c, err := private.Dial(t.Context(), at)
		if err == nil {
			c.Close()
			t.Errorf("%q is dialled", at)
		}
	}
}

// A directory that Dir makes is its user's alone, and one that others may enter is told.
func TestDirIsItsUsersAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "above", "own")
	programs.Must(t, private.Dir(dir), private.Dir(dir))
	if whom, err := private.OpenTo(dir); err != nil || whom != "" {
		t.Errorf("open to %q, %v", whom, err)
	}
	programs.Must(t, os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600))
	everybody := programs.Got(windows.CreateWellKnownSid(windows.WinWorldSid))(t)
	acl := programs.Got(windows.ACLFromEntries([]windows.EXPLICIT_ACCESS{{
		AccessPermissions: windows.GENERIC_READ | windows.GENERIC_EXECUTE, AccessMode: windows.GRANT_ACCESS,
		Trustee: windows.TRUSTEE{TrusteeForm: windows.TRUSTEE_IS_SID, TrusteeType: windows.TRUSTEE_IS_GROUP, TrusteeValue: windows.TrusteeValueFromSID(everybody)},
	}}, nil))(t)
	open := filepath.Join(t.TempDir(), "open")
	programs.Must(t, os.Mkdir(open, 0o700),
		windows.SetNamedSecurityInfo(open, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, acl, nil))
	if whom, err := private.OpenTo(open); err != nil || whom == "" {
		t.Errorf("open to %q, %v; want everybody", whom, err)
	}
	if _, err := private.OpenTo(filepath.Join(open, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
}

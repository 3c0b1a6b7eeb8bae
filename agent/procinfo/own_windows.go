package procinfo

import "golang.org/x/sys/windows"

const almighty = "S-1-5-18" // LocalSystem

func ownID() string {
	u, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return ""
	}
	return u.User.Sid.String()
}

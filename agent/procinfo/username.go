//go:build linux || darwin

package procinfo

import "os/user"

func userName(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}

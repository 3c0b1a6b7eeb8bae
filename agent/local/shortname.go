package local

import (
	"os/user"
	"strings"

	"porchlight/control"
)

// shortNameFallback is the computer's name where the login name gives none.
const shortNameFallback = "home"

// loginName is the name the owner logs in with, or empty.
func loginName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	// Windows puts the domain in front.
	return u.Username[strings.LastIndexByte(u.Username, '\\')+1:]
}

// shortName makes a computer's short name of a login name: what an app's name may
// be (P9, P10), and never the control plane's own label.
func shortName(login string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(login) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	if len(name) > 63 {
		name = name[:63]
	}
	name = strings.Trim(name, "-")
	if (control.Naming{Domain: domain, AuthHost: authHost}).ValidShortName(name) != nil {
		return shortNameFallback
	}
	return name
}

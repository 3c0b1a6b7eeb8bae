// Package samesite tells which hosts browsers take for one site: those below one
// name that somebody can register. They may set cookies for each other. Names
// below which strangers register are on the Public Suffix List; this program
// knows it as it was when it was built (golang.org/x/net/publicsuffix).
package samesite

import "golang.org/x/net/publicsuffix"

// same says whether browsers take two hosts, given without a port, for one site.
func same(a, b string) bool {
	siteA, errA := publicsuffix.EffectiveTLDPlusOne(a)
	siteB, errB := publicsuffix.EffectiveTLDPlusOne(b)
	return errA == nil && errB == nil && siteA == siteB // a suffix itself is nobody's site
}

// Risk is what computers of different people, NAME.DOMAIN, can do to each other
// and to the host people sign in at, by the cookies their pages set.
type Risk int

const (
	None      Risk = iota
	Computers      // pages of one computer can set cookies for the others
	SignIn         // and for the host people sign in at
)

// Of judges a domain and an auth host.
func Of(domain, authHost string) Risk {
	switch {
	case same("computer."+domain, authHost):
		return SignIn
	case same("computer."+domain, "other."+domain):
		return Computers
	}
	return None
}

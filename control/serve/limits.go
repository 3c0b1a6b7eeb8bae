package serve

import (
	"fmt"
	"net/netip"

	"porchlight/control/relay"
)

// limitSetting is one of the relay's limits that an operator may set.
type limitSetting struct {
	Name  string // of the flag
	About string // one line for the help, with the default
	// Field is where its value is; zero there means the default.
	Field func(*relay.Limits) *int
	// within is the setting it is a part of, if it is one.
	within string
}

// mostOf is the most any limit can be: more file descriptors than a process has.
const mostOf = 1 << 20

const (
	limitVisitors = "limit-visitors"
	limitComputer = "limit-computers"
	limitHalfOpen = "limit-handshakes"
	limitAuth     = "limit-auth-connections"
	limitAdmitted = "limit-admissions"
	perAddress    = "-per-address"
)

// LimitSettings are all of them, in the order of the help. An address is an IPv4
// address or an IPv6 /64 throughout.
var LimitSettings = []limitSetting{
	{limitVisitors, "visitors served at a time, two open files each (default 16384, or half of the files)",
		func(l *relay.Limits) *int { return &l.Visitors }, ""},
	{limitVisitors + "-per-computer", "of them at one computer (default a quarter of --limit-visitors)",
		func(l *relay.Limits) *int { return &l.VisitorsPerComputer }, limitVisitors},
	{limitVisitors + perAddress, "of them from one address (default an eighth of --limit-visitors)",
		func(l *relay.Limits) *int { return &l.VisitorsPerSource }, limitVisitors},
	{limitComputer, "computers connected at a time, one open file each while nobody visits, five then (default 16384, or half of the files)",
		func(l *relay.Limits) *int { return &l.Tunnels }, ""},
	{limitHalfOpen, "connections at a time that have not said yet what they want (default 4096, or an eighth of the files)",
		func(l *relay.Limits) *int { return &l.Handshakes }, ""},
	{limitHalfOpen + perAddress, "of them from one address (default 1024, but half of them at most)",
		func(l *relay.Limits) *int { return &l.HandshakesPerSource }, limitHalfOpen},
	{limitAuth, "connections to the auth host at a time (default 8192, or a quarter of the files)",
		func(l *relay.Limits) *int { return &l.AuthConnections }, ""},
	{limitAuth + perAddress, "of them from one address (default 1024, but half of them at most)",
		func(l *relay.Limits) *int { return &l.AuthConnectionsPerSource }, limitAuth},
	{limitAdmitted, "computers that may connect in a second, fewer in the first half minute (default 500)",
		func(l *relay.Limits) *int { return &l.AdmitPerSecond }, ""},
	{limitAdmitted + perAddress, "of them from one address (default a tenth of --limit-admissions)",
		func(l *relay.Limits) *int { return &l.AdmitPerSecondPerSource }, limitAdmitted},
}

// completeLimits checks what the operator has set of the relay's limits, and lowers
// what a process that may open so many files cannot have.
func (c *Config) completeLimits(files int) error {
	whole := c.Limits.For(16 * mostOf) // with files enough for anything
	in := map[string]int{}
	for _, s := range LimitSettings {
		given := *s.Field(&c.Limits)
		in[s.Name] = *s.Field(&whole)
		switch {
		case given < 0 || given > mostOf:
			return fmt.Errorf("--%s is from 1 to %d, or 0 for the default, not %d", s.Name, mostOf, given)
		case given > 0 && s.within != "" && given > in[s.within]:
			return fmt.Errorf("--%s %d is more than --%s, which is %d", s.Name, given, s.within, in[s.within])
		}
	}
	fitting := c.Limits.For(files)
	for _, s := range LimitSettings {
		given, fits := s.Field(&c.Limits), *s.Field(&fitting)
		if *given > fits {
			c.Log.Warn("a limit is more than this process has open files for and was lowered; allow it more of them (LimitNOFILE of the service, or ulimit -n)",
				"setting", "--"+s.Name, "given", *given, "now", fits, "files", files)
			*given = fits
		}
	}
	return nil
}

// completeProxies reads --trusted-proxies.
func (c *Config) completeProxies() error {
	c.proxies = nil
	for _, text := range c.TrustedProxies {
		prefix, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil && addr.Zone() == "" {
			prefix, err = addr.Prefix(addr.BitLen())
		}
		switch {
		case err != nil || prefix.Addr().Is4In6():
			return fmt.Errorf("%q is no network like 10.0.0.0/24, and no address (--trusted-proxies)", text)
		case prefix.Bits() == 0:
			return fmt.Errorf("%q is everybody, who could then say to come from anywhere; name your load balancers alone (--trusted-proxies)", text)
		}
		c.proxies = append(c.proxies, prefix.Masked())
	}
	return nil
}

package serve

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"porchlight/control/admin"
	"porchlight/control/relay"
)

func limited(l relay.Limits, proxies ...string) Config {
	return Config{DataDir: "d", Naming: admin.Naming{Domain: "porch.test"}, Listen: []string{":443"}, Limits: l, TrustedProxies: proxies}
}

// TestLimitsRefused: what cannot work is refused with the flag to change.
func TestLimitsRefused(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"--limit-visitors is from 1":                  limited(relay.Limits{Visitors: -1}),
		"--limit-handshakes is from 1":                limited(relay.Limits{Handshakes: 1<<20 + 1}),
		"--limit-visitors-per-address 65 is more":     limited(relay.Limits{Visitors: 64, VisitorsPerSource: 65}),
		"more than --limit-handshakes, which is 4096": limited(relay.Limits{HandshakesPerSource: 5000}),
		"more than --limit-admissions, which is 500":  limited(relay.Limits{AdmitPerSecondPerSource: 501}),
		"open files":                             limited(relay.Limits{Visitors: relay.MostVisitors() + 1}),
		"each computer holds a connection":       limited(relay.Limits{AuthConnections: 100}),
		"than --limit-computers, which is 30000": limited(relay.Limits{Tunnels: 30_000, AuthConnections: 20_000}),
		`"10.0.0.0/33" is no network`:            limited(relay.Limits{}, "10.0.0.0/33"),
		`"balancer" is no network`:               limited(relay.Limits{}, "10.0.0.1", "balancer"),
		`"::ffff:10.0.0.0/100" is no network`:    limited(relay.Limits{}, "::ffff:10.0.0.0/100"),
		`"0.0.0.0/0" is everybody`:               limited(relay.Limits{}, "0.0.0.0/0"),
		`"::/0" is everybody`:                    limited(relay.Limits{}, "::/0"),
		`"fe80::1%eth0" is no network`:           limited(relay.Limits{}, "fe80::1%eth0"),
	} {
		if err := c.Complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestLimitsTaken(t *testing.T) {
	t.Parallel()
	c := limited(relay.Limits{Visitors: 64, VisitorsPerSource: 64, Tunnels: 100, Handshakes: 1, HandshakesPerSource: 1},
		"10.1.2.3/24", "192.0.2.7", "2001:db8::1")
	for range 2 { // Complete may be called again
		if err := c.Complete(); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, p := range c.proxies {
		got = append(got, p.String())
	}
	if diff := cmp.Diff([]string{"10.1.2.0/24", "192.0.2.7/32", "2001:db8::1/128"}, got); diff != "" {
		t.Error(diff)
	}
	if !c.proxies[0].Contains(netip.MustParseAddr("10.1.2.200")) {
		t.Error("the network holds its addresses")
	}
}

// TestLimitSettings: each setting has a field of its own, which the relay gives a
// default.
func TestLimitSettings(t *testing.T) {
	t.Parallel()
	var l relay.Limits
	whole := l.WithDefaults()
	for i, s := range LimitSettings {
		if *s.Field(&l) != 0 {
			t.Errorf("--%s is another one's field", s.Name)
		}
		*s.Field(&l) = i + 1
		if *s.Field(&whole) <= 0 {
			t.Errorf("--%s has no default", s.Name)
		}
	}
}

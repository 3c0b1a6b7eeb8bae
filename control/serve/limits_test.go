package serve

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"porchlight/control"
	"porchlight/control/relay"
)

func limited(l relay.Limits, proxies ...string) Config {
	return Config{DataDir: "d", Naming: control.Naming{Domain: "porch.test"}, Listen: []string{":443"}, Limits: l, TrustedProxies: proxies}
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
		"each computer holds a connection":            limited(relay.Limits{AuthConnections: 100}),
		"than --limit-computers, which is 30000":      limited(relay.Limits{Tunnels: 30_000, AuthConnections: 20_000}),
		`"10.0.0.0/33" is no network`:                 limited(relay.Limits{}, "10.0.0.0/33"),
		`"balancer" is no network`:                    limited(relay.Limits{}, "10.0.0.1", "balancer"),
		`"::ffff:10.0.0.0/100" is no network`:         limited(relay.Limits{}, "::ffff:10.0.0.0/100"),
		`"0.0.0.0/0" is everybody`:                    limited(relay.Limits{}, "0.0.0.0/0"),
		`"::/0" is everybody`:                         limited(relay.Limits{}, "::/0"),
		`"fe80::1%eth0" is no network`:                limited(relay.Limits{}, "fe80::1%eth0"),
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

// Weakness: the limits knew nothing of how many files the process may open, and
// that of the computers nothing at all: they took the last one, and with it every
// visit, the health and the administration. Checked: whatever is set, computers
// and visitors each leave files to the other and a tenth to the rest; what was
// lowered is in the log, with its setting.
func TestLimitsFollowTheFileLimit(t *testing.T) {
	t.Parallel()
	const files, ours = 1024, 1024 - 102
	byDefault := relay.Limits{}.For(files)
	if taken := 6*byDefault.Tunnels + 2*byDefault.Visitors; taken > ours {
		t.Errorf("computers and visitors take %d of %d files by default", taken, files)
	}
	if many := (relay.Limits{}).For(524_288); many.Tunnels != 16<<10 || many.Visitors != 16<<10 || many.Handshakes != 4096 {
		t.Errorf("with files enough: %+v", many)
	}
	var log bytes.Buffer
	c := limited(relay.Limits{Visitors: 5000, VisitorsPerSource: 5000, Tunnels: 600, Handshakes: 100})
	c.Log = slog.New(slog.NewJSONHandler(&log, nil))
	for range 2 {
		if err := c.completeLimits(files); err != nil {
			t.Fatal(err)
		}
	}
	got := c.Limits
	if 2*got.Visitors > ours*3/4 || 6*got.Tunnels > ours*3/4 || got.Handshakes != 100 {
		t.Errorf("given too much: %+v", got)
	}
	if got.VisitorsPerSource != got.Visitors {
		t.Error("what was for one balancer's address is so no more")
	}
	if l := (relay.Limits{VisitorsPerSource: 4000, HandshakesPerSource: 1000}).For(files); l.VisitorsPerSource >= l.Visitors || l.HandshakesPerSource >= l.Handshakes {
		t.Errorf("few files make one address everybody: %+v", l)
	}
	for _, name := range []string{"--limit-visitors\"", "--limit-visitors-per-address\"", "--limit-computers\""} {
		if n := strings.Count(log.String(), name); n != 1 {
			t.Errorf("%s is %d times in the log:\n%s", name, n, log.String())
		}
	}
	if strings.Count(log.String(), "\n") != 3 {
		t.Errorf("the log:\n%s", log.String())
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

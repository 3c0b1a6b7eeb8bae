package serve

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/relay"
	"porchlight/test/programs"
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

// TestUpdateNoticeRefused: an address that no computer would ask is refused with the flag.
func TestUpdateNoticeRefused(t *testing.T) {
	t.Parallel()
	good := controlapi.UpdateNotice{Address: "https://porch.example/update.json", Key: strings.Repeat("A", 43) + "="}
	c := limited(relay.Limits{})
	if c.UpdateNotice = good; c.Complete() != nil || *c.updateNotice() != good {
		t.Errorf("%v was taken as %v", good, c.updateNotice())
	}
	c.UpdateNotice = controlapi.UpdateNotice{}
	if c.Complete() != nil || c.updateNotice() != nil {
		t.Errorf("without one agents are told %v", c.updateNotice())
	}
	for _, bad := range []controlapi.UpdateNotice{
		{Address: good.Address}, {Key: good.Key}, {Address: "http://porch.example/", Key: good.Key}, {Address: good.Address, Key: "AAAA"},
	} {
		if c.UpdateNotice = bad; c.Complete() == nil || !strings.HasSuffix(c.Complete().Error(), "(--update-address and --update-key)") {
			t.Errorf("%v: %v", bad, c.Complete())
		}
	}
}

// TestSecurityContact: what is no address for reports is refused with the flag.
func TestSecurityContact(t *testing.T) {
	t.Parallel()
	c := limited(relay.Limits{})
	for given, want := range map[string]string{
		"": "", "security@porch.example": "mailto:security@porch.example", "mailto:security@porch.example": "mailto:security@porch.example",
		"https://porch.example/security": "https://porch.example/security",
	} {
		c.SecurityContact = given
		for range 2 { // Complete may be called again
			if err := c.Complete(); err != nil || c.SecurityContact != want {
				t.Errorf("%q is %q, %v", given, c.SecurityContact, err)
			}
		}
	}
	for _, bad := range []string{
		"security", "http://porch.example/", "https:///", "https://", "tel:+1-201-555-0123", "mailto:", "mailto:a@b.c, d@e.f", "Maya <maya@porch.example>",
		"maya@porch.example\nContact: https://evil.example", "https://porch.example/\nExpires: never", "https://porch.example/ü",
	} {
		if c.SecurityContact = bad; c.Complete() == nil || !strings.HasSuffix(c.Complete().Error(), "(--security-contact)") {
			t.Errorf("%q: %v", bad, c.Complete())
		}
	}
}

func TestLimitsTaken(t *testing.T) {
	t.Parallel()
	c := limited(relay.Limits{Visitors: 64, VisitorsPerSource: 64, Tunnels: 100, Handshakes: 1, HandshakesPerSource: 1},
		"10.1.2.3/24", "192.0.2.7", "2001:db8::1")
	for range 2 { // Complete may be called again
		programs.Must(t, c.Complete())
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
	if taken := byDefault.Tunnels + 2*byDefault.Visitors; taken > ours {
		t.Errorf("computers and visitors take %d of %d files by default", taken, files)
	}
	if many := (relay.Limits{}).For(524_288); many.Tunnels != 16<<10 || many.Visitors != 16<<10 || many.Handshakes != 4096 {
		t.Errorf("with files enough: %+v", many)
	}
	var log bytes.Buffer
	c := limited(relay.Limits{Visitors: 5000, VisitorsPerSource: 5000, Tunnels: 900, Handshakes: 100})
	c.Log = slog.New(slog.NewJSONHandler(&log, nil))
	for range 2 {
		programs.Must(t, c.completeLimits(files))
	}
	got := c.Limits
	if 2*got.Visitors > ours*3/4 || got.Tunnels > ours*3/4 || got.Handshakes != 100 {
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

// The operator is told at the start what the domain lets computers do to each
// other, and nothing where browsers keep them apart.
func TestWarnOfNeighbours(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ domain, authHost, want string }{
		{"porch.test", "control.porch.test", "and the sign-in page"},
		{"porch.test", "control.test", "a page of one can set cookies for the others"},
		{"github.io", "control.github.io", ""},
		{"localhost", "control.localhost", ""},
	} {
		var log bytes.Buffer
		n := &Node{cfg: Config{Naming: control.Naming{Domain: tt.domain, AuthHost: tt.authHost}, Log: slog.New(slog.NewTextHandler(&log, nil))}}
		n.warnOfNeighbours()
		if said := log.String(); tt.want == "" && said != "" || !strings.Contains(said, tt.want) {
			t.Errorf("computers below %s, signing in at %s: %q", tt.domain, tt.authHost, said)
		}
	}
}

// TestNoServerInAnAgentsDirectory: one directory named for the other is refused,
// and nothing in it changes.
func TestNoServerInAnAgentsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programs.Must(t, os.WriteFile(filepath.Join(dir, agentFile), nil, 0o600))
	_, err := Open(t.Context(), Config{DataDir: dir, Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}})
	if err == nil || !strings.Contains(err.Error(), "of a Porchlight agent") {
		t.Fatalf("Open: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestDNSNeedsAZoneAndAddresses(t *testing.T) {
	t.Parallel()
	base := Config{
		DataDir: t.TempDir(), Naming: control.Naming{Domain: "porch.example"}, Listen: []string{":443"},
		DNS: ":53", DNSZone: "porch.example", PublicAddresses: []string{"203.0.113.7", "2001:db8::7"},
	}
	for name, c := range map[string]struct {
		change func(*Config)
		names  string // what the error tells to change; empty: none
	}{
		"as it should be":            {func(*Config) {}, ""},
		"a zone with a dot":          {func(c *Config) { c.DNSZone = "porch.example." }, ""},
		"the domain is in the zone":  {func(c *Config) { c.DNSZone = "example" }, ""},
		"itself, and another server": {func(c *Config) { c.DNSUpdate, c.DNSUpdateKey = "192.0.2.53:53", "k" }, "--dns-update"},
		"another server and no key":  {func(c *Config) { c.DNS, c.DNSUpdate = "", "192.0.2.53:53" }, "--dns-update-key"},
		"a key and no server":        {func(c *Config) { c.DNS, c.DNSUpdateKey = "", "k" }, "--dns-update"},
		"another server, no port":    {func(c *Config) { c.DNS, c.DNSUpdate, c.DNSUpdateKey = "", "192.0.2.53", "k" }, "--dns-update"},
		"a key that is not there":    {func(c *Config) { c.DNS, c.DNSUpdate, c.DNSUpdateKey = "", "192.0.2.53:53", "/nowhere" }, "--dns-update-key"},
		"addresses for other nodes":  {func(c *Config) { c.DNS, c.DNSZone = "", "" }, ""},
		"a zone and no address":      {func(c *Config) { c.DNS = "" }, "--dns ADDRESS"},
		"no zone":                    {func(c *Config) { c.DNSZone = "" }, "--dns-zone porch.example"},
		"another zone":               {func(c *Config) { c.DNSZone = "orch.example" }, "--dns-zone"},
		"no port":                    {func(c *Config) { c.DNS = "192.0.2.1" }, "--dns"},
		"nowhere to send anybody":    {func(c *Config) { c.PublicAddresses = nil }, "--public-address"},
		"a name for an address":      {func(c *Config) { c.PublicAddresses = []string{"relay1.example"} }, "--public-address"},
		"every address":              {func(c *Config) { c.PublicAddresses = []string{"0.0.0.0"} }, "--public-address"},
		"an address of an interface": {func(c *Config) { c.PublicAddresses = []string{"fe80::1%eth0"} }, "--public-address"},
	} {
		cfg := base
		c.change(&cfg)
		err := cfg.Complete()
		if again := cfg.Complete(); c.names == "" && (again != nil || cfg.publicText() != "203.0.113.7 2001:db8::7") {
			t.Errorf("%s, completed again: %v, %s", name, again, cfg.publicText())
		}
		if c.names == "" && err != nil || c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPeersNeedWhatOthersCanReach(t *testing.T) {
	t.Parallel()
	base := Config{
		DataDir: t.TempDir(), Postgres: "postgres:///x", Naming: control.Naming{Domain: "porch.test"},
		Listen: []string{":443"}, TunnelAddress: "relay1.porch.test:443", Node: "relay1", PeerAddress: "10.0.0.1:7443",
	}
	for name, c := range map[string]struct {
		change func(*Config)
		names  string // what the error tells to change; empty: none
	}{
		"as it should be":                        {func(*Config) {}, ""},
		"a name for an address":                  {func(c *Config) { c.PeerAddress = "relay1.internal:7443" }, ""},
		"agents reach it where it listens":       {func(c *Config) { c.TunnelAddress, c.Listen = "", []string{"192.0.2.1:443"} }, ""},
		"an address that is every address":       {func(c *Config) { c.PeerAddress = "0.0.0.0:7443" }, "--peer-address"},
		"the same in IPv6":                       {func(c *Config) { c.PeerAddress = "[::]:7443" }, "--peer-address"},
		"no host":                                {func(c *Config) { c.PeerAddress = ":7443" }, "--peer-address"},
		"no port":                                {func(c *Config) { c.PeerAddress = "10.0.0.1" }, "--peer-address"},
		"a port that is none":                    {func(c *Config) { c.PeerAddress = "10.0.0.1:70000" }, "--peer-address"},
		"a certificate for one node":             {func(c *Config) { c.TLS = TLSACME }, "porchlight-control seal-key make FILE"},
		"a certificate for all":                  {func(c *Config) { c.TLS, c.SealKey = TLSACME, "key" }, ""},
		"a store that is not shared":             {func(c *Config) { c.Postgres = "" }, "--postgres"},
		"no name":                                {func(c *Config) { c.Node = "" }, "--node"},
		"a name that would be two keys":          {func(c *Config) { c.Node = "a/b" }, "--node"},
		"agents cannot tell it from other nodes": {func(c *Config) { c.TunnelAddress = "" }, "--tunnel-address"},
	} {
		cfg := base
		c.change(&cfg)
		err := cfg.Complete()
		if c.names == "" && err != nil || c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Weakness: one resolver written in two ways counts as two, and alone proves whose a name is.
// Checked: however it is written, it is one.
func TestAResolverCountsOnce(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"9.9.9.9", "9.9.9.9:53", "::ffff:9.9.9.9", "[::ffff:909:909]:53"} {
		if c := (Config{Resolvers: []string{"9.9.9.9", again}}); c.completeResolvers() == nil {
			t.Errorf("%s is taken for another: %v", again, c.Resolvers)
		}
	}
	c := Config{Resolvers: []string{"9.9.9.9", "9.9.9.9:5353"}}
	programs.Must(t, c.completeResolvers())
}

// Weakness: the operator names a wrong directory, as the data's, and everybody may fetch what
// is in it. A release has its sums.
func TestOnlyAReleaseIsGivenOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := &Node{cfg: Config{InstallDir: dir}}
	programs.Must(t, os.WriteFile(filepath.Join(dir, "control.db"), []byte("secrets"), 0o600))
	if err := n.openInstall(); err == nil || !strings.Contains(err.Error(), "no release") {
		t.Errorf("a data directory: %v", err)
	}
	_ = n.install.Close()
	programs.Must(t, os.WriteFile(filepath.Join(dir, releaseSums), nil, 0o600))
	programs.Must(t, n.openInstall())
	_ = n.install.Close()
}

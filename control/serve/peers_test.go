package serve

import (
	"strings"
	"testing"

	"porchlight/control"
)

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
		"a challenge that any node may get":      {func(c *Config) { c.TLS = TLSACME }, "--tls files"},
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

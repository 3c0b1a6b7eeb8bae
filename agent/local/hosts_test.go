package local

import (
	"testing"

	"porchlight/test/programs"
)

// The owner's setting is what the control plane of this computer allows, and nothing else.
func TestHostsOfTheSettings(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	allowed := func(want ...string) {
		t.Helper()
		h.await(t, func() bool {
			hosts := programs.Got(h.controlPlane.Service.Clients.Hosts(t.Context()))(t)
			for i, host := range hosts {
				if i >= len(want) || host.Host != want[i] {
					return false
				}
			}
			return len(hosts) == len(want)
		})
	}
	allowed()
	for _, hosts := range [][]string{{"claude.ai", "vscode.dev"}, {"vscode.dev"}, {}, {"claude.ai"}} {
		now := programs.Got(h.owner.ChangeSettings(t.Context(), map[string]any{"clientHosts": hosts}))(t)
		if len(now.ClientHosts) != len(hosts) {
			t.Errorf("the setting is %v", now.ClientHosts)
		}
		allowed(hosts...)
	}
}

package local

import (
	"testing"

	"porchlight/control/kv"
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

// Weakness: a client that describes itself is called whatever it likes, so the owner could
// be shown its id as that of the assistant they made a client for.
// Checked: only clients that were made here are found by their names.
func TestClaimedNamesAreNotFound(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	p := h.controlPlane
	made := programs.Got(p.addClient(t.Context(), "Claude Code", []string{"http://localhost/callback"}))(t)
	programs.Must(t, p.store.Update(t.Context(), func(tx kv.Tx) error {
		return tx.Put("client-document/x", []byte(`{"id":"https://claude.ai/x","name":"Claude Code","public":true,"createdAt":"2030-01-01T00:00:00Z","document":{"host":"claude.ai"}}`), 0)
	}))
	if n := len(programs.Got(p.Service.Clients.List(t.Context()))(t)); n != 2 {
		t.Fatalf("%d clients", n)
	}
	if id := programs.Got(p.publicClient(t.Context(), "claude code"))(t); id != made {
		t.Errorf("found %s", id)
	}
}

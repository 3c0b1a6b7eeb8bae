//go:build clients

package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// connectedHouses are two computers of one owner at a real control plane. Nothing is
// published. The programs have this environment, too.
func connectedHouses(t testing.TB, env ...string) (one, other *house) {
	t.Helper()
	dir := t.TempDir()
	r := rig.In(t, binDir(t))
	r.Env = rig.Environ(filepath.Join(dir, "config"), env...)
	node := programs.Got(r.Node(t.Context(), filepath.Join(dir, "control"), "--outbox", filepath.Join(dir, "mails")))(t)
	programs.Got(node.Output("account", "add", "maya@example.net"))(t)
	mails := rig.MailsIn(filepath.Join(dir, "mails"))
	build := func(name string) (h *house, connected func()) {
		agent := programs.Got(r.Computer(t.Context(), filepath.Join(dir, name), "--local"))(t)
		h = &house{agent: agent, node: node, mails: mails, proxy: startProxy(t)}
		return h, h.connect(t, r, name)
	}
	attic, atticConnected := build("attic")
	cellar, cellarConnected := build("cellar")
	atticConnected() // both take the seconds between two questions
	cellarConnected()
	return attic, cellar
}

// connect has the computer ask for a name and its owner confirm it, who trusts it once it is
// connected.
func (h *house) connect(t testing.TB, r *rig.Rig, name string) (connected func()) {
	t.Helper()
	authority := rig.Authority(h.node.Data)
	command := programs.Begin(t, r.Command("porchlight", "connect", h.node.AuthURL, "--ca", authority, "--json", "--data", h.agent.Data))
	said := programs.Got(command.Says(t.Context(), `(?s)^(\{.*?\n\})`))(t)
	var waiting agentapi.Connecting
	programs.Must(t, json.Unmarshal([]byte(said[1]), &waiting))
	browser := visitor.New(programs.Got(rig.Roots(authority))(t))
	defer browser.Close()
	answers := map[string]string{"name": name, "decision": "allow"}
	programs.Got(browser.Confirm(t.Context(), waiting.VerificationURLComplete, waiting.UserCode, "maya@example.net", answers, h.mails))(t)
	return func() {
		if code := command.Wait(); code != 0 {
			t.Fatalf("connecting ended with %d:\n%s", code, command.Stderr())
		}
		_, rest, _ := strings.Cut(command.Stdout(), "\n}\n")
		programs.Must(t, json.Unmarshal([]byte(rest), &h.account))
		both := append(programs.Got(os.ReadFile(authority))(t), programs.Got(os.ReadFile(rig.Own(h.agent.Data)))(t)...)
		h.rootPEM = filepath.Join(t.TempDir(), "roots.pem")
		programs.Must(t, os.WriteFile(h.rootPEM, both, 0o600))
		h.roots = programs.Got(rig.Roots(h.rootPEM))(t)
	}
}

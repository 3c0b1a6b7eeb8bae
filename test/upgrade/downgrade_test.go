package upgrade_test

import (
	"os"
	"path/filepath"
	"testing"

	"porchlight/test/programs"
	"porchlight/test/rig"
)

// TestDowngradeOfBefore: programs of before, put in the place of this version's, refuse its
// stores with a sentence and leave them as they are, so that this version goes on with them.
// 15e3b3f is not among them: it does not look who wrote a store.
func TestDowngradeOfBefore(t *testing.T) {
	t.Parallel()
	before := os.Getenv("PORCHLIGHT_BEFORE")
	if before == "" {
		t.Skip("it runs programs of before, which `make test-before` builds from this clone's history")
	}
	for _, version := range []string{"c3b4a6fe", "943bcc8a"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			old, now := rig.In(t, filepath.Join(before, version)), rig.In(t, bin)
			old.Env = rig.Environ(filepath.Join(dir, "config"))
			now.Env = old.Env
			server, agent := filepath.Join(dir, "server"), filepath.Join(dir, "agent")
			serves := programs.Got(now.Node(t.Context(), server))(t)
			programs.Must(t, serves.Run(nil, "account", "add", "maya@example.net"))
			serves.Stop()
			programs.Got(now.Computer(t.Context(), agent, "--local"))(t).Stop()

			const sentence = `a newer version of Porchlight wrote (it|these rows) \(format \d+, and this one knows \d+\)\. Run that version, or restore`
			refused, err := old.Node(t.Context(), server)
			if err == nil {
				t.Error("the server of before serves it")
			}
			programs.Got(refused.Logs(t.Context(), sentence))(t)
			refusedToo, err := old.Computer(t.Context(), agent, "--local")
			if err == nil {
				t.Error("the agent of before runs on it")
			}
			programs.Got(refusedToo.Logs(t.Context(), sentence))(t)

			var accounts []struct{ Email string }
			serves = programs.Got(now.Node(t.Context(), server))(t)
			if err := serves.Run(&accounts, "account", "list"); err != nil || len(accounts) != 1 {
				t.Errorf("afterwards there are %+v, %v", accounts, err)
			}
			programs.Got(now.Computer(t.Context(), agent, "--local"))(t)
		})
	}
}

package checks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// The list of promises and tests is worth something only if build/spec.sh writes
// it of tests that ran, and says where a promise has none or a bad one.
func TestSpecSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	const shown = "P1 agent/a TestSpec/P1_P2_both\nP2 agent/a TestSpec/P1_P2_both\nW1 test/desktop TestW1_Menu\n"
	for name, tt := range map[string]struct {
		page, verdict string
		fine          bool
		says, list    string
	}{
		"all shown":    {"- **P1** One.\n- **P2** Two.\n- **W1** Menu.\n", "PASS", true, "P2   pass     Two.", shown},
		"one has none": {"- **P1** One.\n- **P3** Three.\n", "PASS", false, "P3   MISSING  Three.", "as it was\n"},
		"one fails":    {"- **P1** One.\n", "FAIL", false, "P1   FAIL     One.", "P1 agent/a TestSpec/P1_P2_both\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := programs.Got(os.ReadFile("../../build/spec.sh"))(t)
			for path, text := range map[string]string{
				"build/spec.sh":             string(script),
				"docs/interface.md":         tt.page,
				"test/promises.txt":         "as it was\n",
				"test/desktop/menu_test.go": "func TestW1_Menu(t *testing.T) {\n",
				"bin/go": "#!/bin/sh\ncase $* in\n'list -m') echo porchlight ;;\nlist*) echo porchlight/agent/a ;;\n" +
					"test*) printf '    --- " + tt.verdict + ": TestSpec/P1_P2_both (0.00s)\\nok  \\tporchlight/agent/a\\t0.1s\\n' ;;\nesac\n",
			} {
				path = filepath.Join(dir, path)
				programs.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
				executable(t, path, text)
			}
			cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(dir, "build", "spec.sh"))
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.fine || !strings.Contains(string(out), tt.says) {
				t.Errorf("fine: %v; it says %q, want %q", err == nil, out, tt.says)
			}
			if list, err := os.ReadFile(filepath.Join(dir, "test/promises.txt")); err != nil || string(list) != tt.list {
				t.Errorf("the list: %q, %v, want %q", list, err, tt.list)
			}
		})
	}
}

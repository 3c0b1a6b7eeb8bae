// Package checks tries the scripts that judge the project: one that calls
// everything fine is worse than none.
package checks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run carries out a script of build/ and returns what it printed and whether it
// was satisfied.
func run(t *testing.T, env []string, script string, args ...string) (out string, fine bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "build", script), args...)
	cmd.Env = append(os.Environ(), env...)
	raw, err := cmd.CombinedOutput()
	return string(raw), err == nil
}

// program is an executable of the test's that prints a line and ends.
func program(t *testing.T, prints string, status string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	executable(t, path, "#!/bin/sh\necho '"+prints+"'\nexit "+status+"\n")
	return path
}

// executable makes one of a text: by install, so that no program that another test starts
// meanwhile holds the file open to write.
func executable(t *testing.T, path, text string) {
	t.Helper()
	install := exec.Command("install", "-m", "700", "/dev/stdin", path)
	install.Stdin = strings.NewReader(text)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Weakness: a report was called "skipped" when it held a word such as
// certificate, whatever it reported.
func TestVulnerabilitiesAreJudgedByHowTheToolEnds(t *testing.T) {
	t.Parallel()
	database := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(database.Close)
	const gone = "http://127.0.0.1:1"
	for name, tt := range map[string]struct {
		database, prints, status string
		fine                     bool
		says                     string
	}{
		"nothing found":           {database.URL, "No vulnerabilities found.", "0", true, "nothing known"},
		"a report":                {database.URL, "GO-2026-0001: a certificate lookup can be refused, dial tcp", "3", false, "known to be vulnerable"},
		"the tool fails":          {database.URL, "cannot load packages", "1", false, "could not look"},
		"no database":             {gone, "a report nobody may see", "3", true, "skipped"},
		"a database with nothing": {database.URL + "/%", "", "0", true, "skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, fine := run(t, []string{"GOVULNDB=" + tt.database, "GOVULNCHECK=" + program(t, tt.prints, tt.status)}, "vulnerabilities.sh", "desktop")
			if fine != tt.fine || !strings.Contains(out, tt.says) {
				t.Errorf("fine: %v; it says %q", fine, out)
			}
		})
	}
}

// Weakness: the first part that failed kept the others from running.
func TestEveryPartRunsAndSpeaksWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Parts of which two run at a time: first and third wait until both have said something.
	script := `#!/bin/sh
for part; do :; done
case $part in desktop) echo "built"; exit ;; esac
echo "$part begins" && touch "$DIR/$part"
case $part in first|third) [ -n "$ALONE" ] || for turn in $(seq 3000); do
	[ -e "$DIR/first" ] && [ -e "$DIR/third" ] && break
	[ "$turn" != 3000 ] || exit 1
	sleep .01
done ;; esac
echo "$part ends"
[ "$part" != second ]
`
	executable(t, filepath.Join(dir, "make"), script)
	environment := []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "DIR=" + dir}
	out, fine := run(t, environment, "test.sh", "first", "second", "third")
	if fine || !strings.HasPrefix(out, "built\n") || !strings.HasSuffix(out, "2 passed, 1 failed\n") {
		t.Errorf("fine: %v; it says %q", fine, out)
	}
	for part, how := range map[string]string{"first": "passed", "second": "FAILED", "third": "passed"} {
		if whole := fmt.Sprintf("== make %[1]s\n%[1]s begins\n%[1]s ends\n%-16[1]s %s", part, how); !strings.Contains(out, whole) {
			t.Errorf("it does not say %q but %q", whole, out)
		}
	}
	if out, fine = run(t, append(environment, "ALONE=1"), "test.sh", "first"); !fine || !strings.HasSuffix(out, "1 passed, 0 failed\n") {
		t.Errorf("fine: %v; it says %q", fine, out)
	}
}

// Weakness: a program under test may meet a data race while its test, which sees
// only what it answers, goes on.
func TestRacesOfProgramsUnderTestFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		does string
		fine bool
	}{
		"no race":             {"true", true},
		"a race, tests green": {`echo "DATA RACE" >"${GORACE#log_path=}.1"`, false},
		"tests red":           {"false", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, fine := run(t, nil, "raced.sh", "sh", "-c", tt.does); fine != tt.fine {
				t.Errorf("fine: %v; it says %q", fine, out)
			}
		})
	}
}

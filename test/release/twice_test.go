package release

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestTwice is the quick form of `make test-release`: the programs for one system, made in two
// places, are the same byte for byte.
func TestTwice(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("releases are made on Linux")
	}
	t.Parallel()
	c := exec.Command("build/twice.sh", "0.1.0+gtwice", "-s -w -X porchlight/agent.Version=0.1.0+gtwice -X main.Version=0.1.0+gtwice", "", "programs")
	c.Dir = "../.."
	c.Env = append(os.Environ(), "PORCHLIGHT_ONE_CACHE=1", "TARGETS=linux/"+runtime.GOARCH)
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "the same, byte for byte") {
		t.Errorf("%v\n%s", err, out)
	}
}

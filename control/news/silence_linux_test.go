package news_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"porchlight/control/news"
	"porchlight/test/programs"
)

const childVariable = "PORCHLIGHT_TEST_NEWS_OF"

// TestChildNode is the other process of TestKilledAndSilentNodes.
func TestChildNode(t *testing.T) {
	address := os.Getenv(childVariable)
	if address == "" {
		return // here it is nobody
	}
	child := open(t, "child", nil)
	child.Know([]news.Node{{Name: "one", Run: "run-of-one", Address: address}})
	child.Hold("anna.porch.test", func(string) bool { return true })
	_, _ = os.Stdout.WriteString("at " + child.Address() + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A node that is killed is forgotten by its connection, and one that only stops by
// the silence of it; while it is silent it is asked, and nobody waits for long.
func TestKilledAndSilentNodes(t *testing.T) {
	t.Parallel()
	for what, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			one := open(t, "one", nil)
			cmd := exec.Command(os.Args[0], "-test.run=^TestChildNode$")
			cmd.Env = append(os.Environ(), childVariable+"="+one.Address())
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			line, err := bufio.NewReader(stdout).ReadString('\n')
			address, ok := strings.CutPrefix(strings.TrimSpace(line), "at ")
			if err != nil || !ok {
				t.Fatalf("the other process said %q, %v", line, err)
			}
			one.Know([]news.Node{{Name: "child", Run: "run-of-child", Address: address}})
			held := func() bool { found, _, _ := one.Holders(t.Context(), "anna.porch.test", 1); return len(found) == 1 }
			programs.Eventually(t, "the other process answers", held)
			one.calm(t)

			begun := time.Now()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			// Nobody answering at once tells that it is forgotten; while it is only
			// silent, each question takes its time.
			programs.Eventually(t, "the node is forgotten", func() bool {
				asked := time.Now()
				return !held() && time.Since(asked) < 100*time.Millisecond
			})
			t.Logf("a node that is %s is forgotten after %v", what, time.Since(begun))
			programs.Eventually(t, "and missed", one.Missed)
		})
	}
}

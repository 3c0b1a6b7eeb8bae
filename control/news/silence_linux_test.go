package news_test

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
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

// A node that is silent is to be forgotten in less than 4 s, with the last question that
// waits for its answer. That its connection ends so is what TestKilledAndSilentNodes sees.
func TestSilentNodesAreForgottenInTime(t *testing.T) {
	t.Parallel()
	interval, out := news.Pings()
	if interval <= 0 || out <= 0 || news.GoneAfter != time.Duration(out+1)*interval {
		t.Errorf("connections have %d pings, %v apart, and not %v", out, interval, news.GoneAfter)
	}
	const most = 4 * time.Second
	if bound := news.GoneAfter + news.AnswerWait; bound >= most {
		t.Errorf("a silent node holds tunnels for %v", bound)
	}
	if news.SilentAfter >= most {
		t.Errorf("a silent node is counted on for %v", news.SilentAfter)
	}
}

// A node that is killed is forgotten by the end of its connection, for which no clock is
// waited for, and one that only stops by pings that it leaves without an answer; while it
// is silent it is asked, and nobody waits for long.
func TestKilledAndSilentNodes(t *testing.T) {
	t.Parallel()
	const stale = "Router connection closed: Stale Connection"
	for _, tt := range []struct {
		what  string
		sig   syscall.Signal
		stale bool
	}{{"killed", syscall.SIGKILL, false}, {"stopped", syscall.SIGSTOP, true}} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			var said lines
			one := open(t, "one", func(c *news.Config) {
				c.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			cmd := exec.Command(os.Args[0], "-test.run=^TestChildNode$")
			cmd.Env = append(os.Environ(), childVariable+"="+one.Address())
			stdin := programs.Got(cmd.StdinPipe())(t)
			stdout := programs.Got(cmd.StdoutPipe())(t)
			programs.Must(t, cmd.Start())
			defer func() { _ = stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			line, err := bufio.NewReader(stdout).ReadString('\n')
			address, ok := strings.CutPrefix(strings.TrimSpace(line), "at ")
			if err != nil || !ok {
				t.Fatalf("the other process said %q, %v", line, err)
			}
			one.Know([]news.Node{{Name: "child", Run: "run-of-child", Address: address}})
			held := func() bool { found, _ := one.Holders(t.Context(), "anna.porch.test", 1); return len(found) == 1 }
			programs.Eventually(t, "the other process answers", held)
			one.calm(t)

			said.take()
			begun := time.Now()
			programs.Must(t, cmd.Process.Signal(tt.sig))
			// Nobody answering at once tells that it is forgotten; while it is only
			// silent, each question takes its time.
			programs.Eventually(t, "the node is forgotten", func() bool {
				asked := time.Now()
				return !held() && time.Since(asked) < 100*time.Millisecond
			})
			t.Logf("a node that is %s is forgotten after %v", tt.what, time.Since(begun))
			if all := said.take(); !strings.Contains(all, "Router connection closed: ") || strings.Contains(all, stale) != tt.stale {
				t.Errorf("its connection did not end as it should:\n%s", all)
			}
			programs.Eventually(t, "and missed", one.Missed)
		})
	}
}

// lines are what a node logs.
type lines struct {
	mu  sync.Mutex
	all strings.Builder // guarded by mu
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

// take is what was logged since the last call.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.all.Reset()
	return l.all.String()
}

package connect

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"porchlight/test/devtools"
	"porchlight/test/programs"
)

// chromium is asked by its own protocol.
type chromium struct {
	t       *testing.T
	client  *devtools.Client
	process *programs.Process
	session string
}

func newChromium(t *testing.T) realBrowser {
	t.Helper()
	return startChromium(t, []string{"--ignore-certificate-errors", "--host-resolver-rules=MAP *.test 127.0.0.1"})
}

// startChromium has a home of its own, where the certificates of roots are trusted.
func startChromium(t *testing.T, flags []string, roots ...string) *chromium {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium here")
	}
	dir := programs.Got(os.MkdirTemp("", "chromium-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) }) // what it still writes as it ends is nobody's
	cmd := exec.Command(program, append(flags, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--user-data-dir="+filepath.Join(dir, "profile"))...)
	if len(roots) > 0 {
		trust(t, filepath.Join(dir, ".pki", "nssdb"), roots)
		cmd.Env = append(os.Environ(), "HOME="+dir)
	}
	var process *programs.Process
	client := programs.Got(devtools.Start(cmd, func() error { process = programs.Begin(t, cmd); return nil }))(t)
	var made struct{ TargetID, SessionID string }
	programs.Must(t, client.Ask(t.Context(), "", "Target.createTarget", map[string]any{"url": "about:blank"}, &made))
	programs.Must(t, client.Ask(t.Context(), "", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made))
	return &chromium{t, client, process, made.SessionID}
}

// trust makes a store of certificates, as Chromium and Firefox keep theirs.
func trust(t *testing.T, dir string, roots []string) {
	t.Helper()
	if _, err := exec.LookPath("certutil"); err != nil {
		t.Skip("there is no certutil here")
	}
	programs.Must(t, os.MkdirAll(dir, 0o700))
	programs.Got(programs.Output(exec.Command("certutil", "-N", "--empty-password", "-d", "sql:"+dir)))(t)
	for i, root := range roots {
		programs.Got(programs.Output(exec.Command("certutil", "-A", "-d", "sql:"+dir, "-n", "root"+strconv.Itoa(i), "-t", "C,,", "-i", root)))(t)
	}
}

func (c *chromium) navigate(address string) error {
	return c.client.Navigate(c.t.Context(), c.session, address)
}

func (c *chromium) ask(script string) (string, error) {
	var said struct {
		Result           struct{ Value any } // no text of a page that was left meanwhile
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := c.client.Ask(c.t.Context(), c.session, "Runtime.evaluate",
		map[string]any{"expression": "(async () => String(" + script + "))()", "returnByValue": true, "awaitPromise": true}, &said)
	if err == nil && said.ExceptionDetails != nil {
		err = errors.New(said.ExceptionDetails.Text + " " + said.ExceptionDetails.Exception.Description + ": " + script)
	}
	text, _ := said.Result.Value.(string)
	return text, err
}

func (c *chromium) cookies() (all []http.Cookie, err error) {
	var jar struct {
		Cookies []struct{ Name, Value, Domain string }
	}
	err = c.client.Ask(c.t.Context(), c.session, "Storage.getCookies", nil, &jar)
	for _, one := range jar.Cookies {
		all = append(all, http.Cookie{Name: one.Name, Value: one.Value, Domain: one.Domain})
	}
	return all, err
}

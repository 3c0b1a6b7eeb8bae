package connect

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"porchlight/test/devtools"
	"porchlight/test/programs"
)

// chromium is asked by its own protocol.
type chromium struct {
	t       *testing.T
	client  *devtools.Client
	session string
}

func newChromium(t *testing.T) realBrowser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium here")
	}
	dir := programs.Got(os.MkdirTemp("", "chromium-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) }) // what it still writes as it ends is nobody's
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--ignore-certificate-errors", "--host-resolver-rules=MAP *.test 127.0.0.1", "--user-data-dir="+dir)
	client := programs.Got(devtools.Start(cmd, func() error { programs.Begin(t, cmd); return nil }))(t)
	var made struct{ TargetID, SessionID string }
	programs.Must(t, client.Ask(t.Context(), "", "Target.createTarget", map[string]any{"url": "about:blank"}, &made))
	programs.Must(t, client.Ask(t.Context(), "", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made))
	return &chromium{t, client, made.SessionID}
}

func (c *chromium) navigate(address string) error {
	var went struct{ ErrorText string }
	err := c.client.Ask(c.t.Context(), c.session, "Page.navigate", map[string]any{"url": address}, &went)
	if err == nil && went.ErrorText != "" {
		err = errors.New(went.ErrorText)
	}
	return err
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

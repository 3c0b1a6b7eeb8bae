//go:build clients

package clients

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"porchlight/test/devtools"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

// chromium is a real browser without a screen. Which certificates it trusts is for test/e2e.
type chromium struct{ client *devtools.Client }

// chromiumTab is the browser of one person, with cookies of its own.
type chromiumTab struct {
	*chromium
	session string
}

func startChromium(t testing.TB) *chromium {
	t.Helper()
	dir := programs.Got(os.MkdirTemp("", "chromium-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) }) // what it still writes as it ends is nobody's
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--ignore-certificate-errors", "--user-data-dir="+dir)
	client := programs.Got(devtools.Start(cmd, func() error { programs.Begin(t, cmd); return nil }))(t)
	return &chromium{client}
}

func (c *chromium) tab(t testing.TB) *chromiumTab {
	t.Helper()
	var made struct{ BrowserContextID, TargetID, SessionID string }
	ask := func(method string, params map[string]any) {
		programs.Must(t, c.client.Ask(t.Context(), "", method, params, &made))
	}
	ask("Target.createBrowserContext", map[string]any{})
	ask("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": made.BrowserContextID})
	ask("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true})
	return &chromiumTab{c, made.SessionID}
}

// open goes to an address, and returns when the page that it leads to is there.
func (c *chromiumTab) open(t testing.TB, address string) {
	t.Helper()
	if err := c.client.Navigate(t.Context(), c.session, address); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	c.until(t, `document.readyState === "complete"`)
}

// ask has the page say something, as a text.
func (c *chromiumTab) ask(t testing.TB, script string) (string, error) {
	var said struct {
		Result           struct{ Value string }
		ExceptionDetails *struct{ Text string }
	}
	err := c.client.Ask(t.Context(), c.session, "Runtime.evaluate", map[string]any{"expression": "String(" + script + ")", "returnByValue": true}, &said)
	if err == nil && said.ExceptionDetails != nil {
		err = errors.New(said.ExceptionDetails.Text + ": " + script)
	}
	return said.Result.Value, err
}

func (c *chromiumTab) says(t testing.TB, script string) string {
	t.Helper()
	return programs.Got(c.ask(t, script))(t)
}

// until waits for what a page says of itself; one that gives way to the next says nothing.
func (c *chromiumTab) until(t testing.TB, script string) {
	t.Helper()
	programs.Eventually(t, script, func() bool {
		said, err := c.ask(t, script)
		return err == nil && said == "true"
	})
}

// signIn asks for a link at the page of that, and opens it.
func (c *chromiumTab) signIn(t testing.TB, email string, mails *rig.Mails) {
	t.Helper()
	c.says(t, `(document.querySelector("[name=email]").value = `+strconv.Quote(email)+`, document.querySelector(".primary").click())`)
	c.until(t, `!!document.querySelector("[name=code]")`)
	for c.says(t, `!!document.querySelector("[name=token]")`) != "true" { // other mails have links, too
		c.open(t, programs.Got(mails.Link(t.Context(), email))(t))
	}
	c.says(t, `document.querySelector(".primary").click()`)
	c.until(t, `document.readyState === "complete" && !document.querySelector("[name=token]")`)
}

// consent opens an authorization request, signs in where that is asked, reads that the
// client asks for one app, and allows it; it returns where the browser ended.
func (h *house) consent(t testing.TB, tab *chromiumTab, authorize, client, app, back string) string {
	t.Helper()
	tab.open(t, authorize)
	if tab.says(t, `!!document.querySelector("[name=email]")`) == "true" {
		tab.signIn(t, h.account.Email, h.mails)
		tab.open(t, authorize)
	}
	if asks := tab.says(t, `document.body.innerText`); !strings.Contains(asks, client+" wants to open "+app+" on "+h.account.Host) {
		t.Fatalf("it asks:\n%s", asks)
	}
	if ticked := tab.says(t, `document.querySelectorAll("[name=app]:checked").length`); ticked != "1" {
		t.Errorf("ticked are %s apps", ticked)
	}
	tab.says(t, `document.querySelector("[name=decision][value=allow]").click()`)
	tab.until(t, `location.href.startsWith(`+strconv.Quote(back)+`)`)
	return tab.says(t, `location.href`)
}

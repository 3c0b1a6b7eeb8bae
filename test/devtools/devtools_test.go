package devtools

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// open starts a browser, and returns a page of it and its process.
func open(t *testing.T, ctx context.Context) (c *Client, page string, browser *programs.Process) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatal("chromium is not installed here: build/setup.sh test")
	}
	dir := programs.Got(os.MkdirTemp("", "devtools"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // children of a killed browser may still write there
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--user-data-dir="+dir)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	cmd.WaitDelay = time.Second // those children hold its output, too
	c = programs.Got(Start(cmd, func() error {
		browser = programs.Begin(t, cmd)
		return nil
	}))(t)
	var made struct{ TargetID, SessionID string }
	ask(t, ctx, c, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	ask(t, ctx, c, "", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	return c, made.SessionID, browser
}

func ask(t *testing.T, ctx context.Context, c *Client, session, method string, params map[string]any, into any) {
	t.Helper()
	programs.Must(t, c.Ask(ctx, session, method, params, into))
}

// pending asks a page what it answers when its function answer is called, and returns once
// the page has been asked.
func pending(t *testing.T, ctx context.Context, c *Client, page string, into any) <-chan error {
	t.Helper()
	ask(t, ctx, c, page, "Runtime.evaluate", map[string]any{"expression": `reached = new Promise(done => reach = done), 0`}, nil)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Ask(ctx, page, "Runtime.evaluate",
			map[string]any{"awaitPromise": true, "expression": `reach(), new Promise(done => answer = done)`}, into)
	}()
	ask(t, ctx, c, page, "Runtime.evaluate", map[string]any{"awaitPromise": true, "expression": `reached`}, nil)
	return ended
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), programs.Patience)
	defer cancel()
	c, page, _ := open(t, ctx)
	ask(t, ctx, c, page, "Runtime.enable", nil, nil) // events come among the answers now

	// The first is answered last.
	var early, late struct{ Result struct{ Value string } }
	first := pending(t, ctx, c, page, &early)
	ask(t, ctx, c, page, "Runtime.evaluate", map[string]any{"expression": `console.log("an event"), answer("early"), "late"`}, &late)
	if err := <-first; err != nil || early.Result.Value != "early" || late.Result.Value != "late" {
		t.Errorf("answered %q and %q, %v", early.Result.Value, late.Result.Value, err)
	}

	err := c.Ask(ctx, page, "Porch.light", nil, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "Porch.light: ") || !strings.Contains(err.Error(), "wasn't found") {
		t.Errorf("a method that there is not: %v", err)
	}
	ask(t, ctx, c, page, "Runtime.evaluate", map[string]any{"expression": "1"}, nil) // the next is answered
}

func TestEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), programs.Patience)
	defer cancel()
	c, page, browser := open(t, ctx)
	short, giveUp := context.WithCancel(ctx)
	failed := pending(t, short, c, page, nil)
	giveUp()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("a question given up: %v", err)
	}

	failed = pending(t, ctx, c, page, nil)
	browser.Kill()
	if err := <-failed; !errors.Is(err, errEnded) {
		t.Errorf("a question at the end: %v", err)
	}
	if err := c.Ask(ctx, "", "Browser.getVersion", nil, nil); !errors.Is(err, errEnded) {
		t.Errorf("a question after the end: %v", err)
	}
}

func TestNoBrowser(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/nowhere/chromium")
	if c, err := Start(cmd, cmd.Start); c != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("started nothing: %v, %v", c, err)
	}
}

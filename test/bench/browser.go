package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"porchlight/test/devtools"
)

// browser is a Chromium that reaches host over a link.
type browser struct {
	client *devtools.Client
	link   *link
	knows  map[string]bool // contenders that it has loaded from
	end    func()
	ended  bool
}

// openBrowser starts the browser of this round.
func (st *stage) openBrowser(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx) // the browser and its link are of this round
	st.onClose = append(st.onClose, end)
	dir, err := os.MkdirTemp(st.dir, "chromium-")
	if err != nil {
		return err
	}
	far, err := newLink(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--ignore-certificate-errors",
		"--disable-features=SpareRendererForSitePerProcess", // the start of a process for the next page, during this one
		"--user-data-dir="+dir, "--host-resolver-rules=MAP "+host+":443 "+far.addr, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir)
	client, err := devtools.Start(cmd, cmd.Start)
	if err != nil {
		return err
	}
	st.onClose = append(st.onClose, func() {
		end()
		_ = cmd.Wait() // it was killed
	})
	st.browser = &browser{client: client, link: far, knows: map[string]bool{}, end: end}
	return nil
}

// load opens the page in a context of its own and returns how long it took, in
// milliseconds.
func (b *browser) load(ctx context.Context, c contender) (ms float64, err error) {
	b.link.to.Store(c.addr)
	var made struct{ BrowserContextID, TargetID, SessionID string }
	step := func(method string, params map[string]any) {
		if err == nil {
			err = b.client.Ask(ctx, made.SessionID, method, params, &made)
		}
	}
	step("Target.createBrowserContext", nil)
	step("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": made.BrowserContextID})
	step("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true})
	name, value, _ := strings.Cut(c.header[1], "=")
	step("Network.setCookie", map[string]any{"name": name, "value": value, "url": "https://" + host + "/", "secure": true, "path": "/", "httpOnly": true})
	step("Page.enable", nil)
	// What the new tab still has to do is no part of the load.
	step("Runtime.evaluate", map[string]any{"expression": "new Promise(idle => requestIdleCallback(() => requestIdleCallback(idle)))", "awaitPromise": true})
	step("Page.navigate", map[string]any{"url": "https://" + host + "/page"})
	if err != nil {
		return 0, err
	}
	const script = `new Promise(done => {
		const look = () => { const t = performance.getEntriesByType("navigation")[0]
			document.title === "page" && t.loadEventEnd > 0 ? done([t.loadEventEnd, performance.getEntriesByType("resource").length]) : setTimeout(look, 20) }
		look()
	})`
	var out struct {
		Result struct{ Value []float64 }
	}
	if err := b.client.Ask(ctx, made.SessionID, "Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &out); err != nil {
		return 0, err
	}
	if len(out.Result.Value) != 2 || out.Result.Value[1] < resources {
		return 0, fmt.Errorf("the page did not load: %v", out.Result.Value)
	}
	err = b.client.Ask(ctx, "", "Target.disposeBrowserContext", map[string]any{"browserContextId": made.BrowserContextID}, nil)
	return out.Result.Value[0], err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// browser is a Chromium that is spoken to by its DevTools protocol, and that reaches host
// over a link.
type browser struct {
	talk  *websocket.Conn
	last  int
	link  *link
	knows map[string]bool // contenders that it has loaded from
}

// openBrowser starts the browser of this round.
func (st *stage) openBrowser(ctx context.Context) error {
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
		"--user-data-dir="+dir, "--remote-debugging-port=0", "--host-resolver-rules=MAP "+host+":443 "+far.addr, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir)
	if err := cmd.Start(); err != nil {
		return err
	}
	st.onClose = append(st.onClose, func() {
		_ = cmd.Process.Kill() // nothing of it is needed any more
		_ = cmd.Wait()
	})
	for ctx.Err() == nil {
		where, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		if port, path, ok := strings.Cut(strings.TrimSpace(string(where)), "\n"); err == nil && ok {
			talk, _, err := websocket.Dial(ctx, "ws://127.0.0.1:"+port+path, nil)
			if err != nil {
				return err
			}
			talk.SetReadLimit(16 << 20)
			st.browser = &browser{talk: talk, link: far, knows: map[string]bool{}}
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("Chromium did not start")
}

// load opens the page in a context of its own and returns how long it took, in
// milliseconds.
func (b *browser) load(ctx context.Context, c contender) (ms float64, err error) {
	b.link.to.Store(c.addr)
	var made struct{ BrowserContextID, TargetID, SessionID string }
	step := func(method string, params map[string]any) {
		if err == nil {
			err = b.ask(ctx, made.SessionID, method, params, &made)
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
	if err := b.ask(ctx, made.SessionID, "Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &out); err != nil {
		return 0, err
	}
	if len(out.Result.Value) != 2 || out.Result.Value[1] < resources {
		return 0, fmt.Errorf("the page did not load: %v", out.Result.Value)
	}
	err = b.ask(ctx, "", "Target.disposeBrowserContext", map[string]any{"browserContextId": made.BrowserContextID}, nil)
	return out.Result.Value[0], err
}

// ask sends one command and waits for its answer; what happens meanwhile is passed
// over.
func (b *browser) ask(ctx context.Context, session, method string, params map[string]any, into any) error {
	b.last++
	raw, err := json.Marshal(struct {
		ID     int            `json:"id"`
		To     string         `json:"sessionId,omitempty"`
		Method string         `json:"method"`
		Params map[string]any `json:"params,omitempty"`
	}{b.last, session, method, params})
	if err != nil {
		return err
	}
	if err := b.talk.Write(ctx, websocket.MessageText, raw); err != nil {
		return err
	}
	for {
		_, said, err := b.talk.Read(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(said, &answer); err != nil {
			return err
		}
		switch {
		case answer.ID != b.last:
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case into == nil:
			return nil
		default:
			return json.Unmarshal(answer.Result, into)
		}
	}
}

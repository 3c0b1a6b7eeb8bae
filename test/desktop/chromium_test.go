//go:build rig

package desktop

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"porchlight/test/devtools"
	"porchlight/test/programs"
)

// chrome is a Chromium of the session; each of its tabs has cookies of its own, as another
// person's browser has.
type chrome struct {
	s      *session
	client *devtools.Client
}

// startChrome starts one that trusts what the session's user trusts by now.
func (s *session) startChrome() *chrome {
	s.t.Helper()
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--hide-scrollbars", "--user-data-dir="+filepath.Join(s.dir, "chrome"))
	client := programs.Got(devtools.Start(cmd, func() error {
		s.run(cmd)
		return nil
	}))(s.t)
	return &chrome{s: s, client: client}
}

// tab is one person's browser.
type tab struct {
	*chrome
	session string
	width   int
}

// phone is somebody's of the size of a phone, used with a finger.
func (c *chrome) phone() *tab {
	c.s.t.Helper()
	t := c.tab(390, 844)
	t.must("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": true}, nil)
	return t
}

// tab is somebody's of that size.
func (c *chrome) tab(width, height int) *tab {
	c.s.t.Helper()
	t := &tab{chrome: c, width: width}
	var context struct{ BrowserContextID string }
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	t.must("Target.createBrowserContext", nil, &context)
	t.must("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context.BrowserContextID}, &target)
	t.must("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	t.session = attached.SessionID
	if c.s.opts.dark {
		t.must("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	}
	t.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 600}, nil)
	return t
}

func (t *tab) ask(method string, params map[string]any, answer any) error {
	ctx, cancel := context.WithTimeout(t.s.t.Context(), 2*patience)
	defer cancel()
	return t.client.Ask(ctx, t.session, method, params, answer)
}

func (t *tab) must(method string, params map[string]any, answer any) {
	t.s.t.Helper()
	programs.Must(t.s.t, t.ask(method, params, answer))
}

// opens goes to an address.
func (t *tab) opens(address string) {
	t.s.t.Helper()
	var got struct{ ErrorText string }
	t.must("Page.navigate", map[string]any{"url": address}, &got)
	if got.ErrorText != "" {
		t.s.t.Fatalf("opening %s: %s", address, got.ErrorText)
	}
}

func (t *tab) reload() {
	t.s.t.Helper()
	t.must("Page.reload", nil, nil)
}

// value is what a script of the page comes to.
func (t *tab) value(script string, answer any) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Text string }
	}
	if err := t.ask("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &got); err != nil {
		return err
	}
	if got.ExceptionDetails != nil {
		return errors.New(got.ExceptionDetails.Text)
	}
	return json.Unmarshal(got.Result.Value, answer)
}

// shows waits until the page shows all of these, and that it is no wider than the screen.
func (t *tab) shows(texts ...string) {
	t.s.t.Helper()
	t.s.eventually("the browser shows "+strings.Join(texts, ", "), func() error {
		var page struct {
			Text  string
			Width int
		}
		if err := t.value(`({text: document.body?.innerText ?? '', width: document.documentElement.scrollWidth})`, &page); err != nil {
			return err
		}
		for _, text := range texts {
			if !strings.Contains(page.Text, text) {
				return fmt.Errorf("it shows %q", page.Text)
			}
		}
		if page.Width > t.width {
			return fmt.Errorf("the page is %d wide", page.Width)
		}
		return nil
	})
}

// tap puts a finger on the button or link whose text begins so.
func (t *tab) tap(text string) {
	t.s.t.Helper()
	var at struct{ X, Y float64 }
	t.s.eventually("the browser has "+text, func() error {
		quoted, _ := json.Marshal(text)
		return t.value(`(() => {
			const one = [...document.querySelectorAll('button, a')].find((one) => one.innerText.trim().startsWith(`+string(quoted)+`));
			one.scrollIntoView({block: 'center', behavior: 'instant'});
			const box = one.getBoundingClientRect();
			return {x: box.x + box.width / 2, y: box.y + box.height / 2};
		})()`, &at)
	})
	t.must("Input.dispatchTouchEvent", map[string]any{"type": "touchStart", "touchPoints": []map[string]float64{{"x": at.X, "y": at.Y}}}, nil)
	t.must("Input.dispatchTouchEvent", map[string]any{"type": "touchEnd", "touchPoints": []any{}}, nil)
}

// shot keeps a picture of the page for people to look at.
func (t *tab) shot(name string) {
	t.s.t.Helper()
	dir := os.Getenv("PORCHLIGHT_SHOTS")
	if dir == "" {
		return
	}
	t.saves(filepath.Join(dir, strings.ReplaceAll(t.s.t.Name(), "/", "-")+"-"+name+".png"))
}

// saves writes a picture of the page to a file.
func (t *tab) saves(file string) {
	t.s.t.Helper()
	var got struct{ Data string }
	t.must("Page.captureScreenshot", map[string]any{"format": "png"}, &got)
	raw, err := base64.StdEncoding.DecodeString(got.Data)
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.s.t.Error(err)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coder/websocket"
)

const (
	wholePage = "a page with 200 resources in Chromium, 20 ms away"
	loadTime  = "ms until it is loaded"

	resources = 200
	oneWay    = 10 * time.Millisecond
	pageLoads = 3 // of one measurement
)

// servePage is a page, and what it loads: small scripts.
func servePage(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/r/") {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, "//"+strings.Repeat("x", 2<<10)) // a browser that has gone needs none
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var page strings.Builder
	page.WriteString("<!doctype html><title>page</title>")
	for i := range resources {
		fmt.Fprintf(&page, "<script defer src=/r/%d></script>", i)
	}
	_, _ = io.WriteString(w, page.String())
}

// pageLoad has Chromium load the page over a link that takes 20 ms there and back, each
// time with nothing kept from before.
func pageLoad(ctx context.Context, st *stage, c contender) (readings []reading, err error) {
	if st.tiny {
		return nil, nil // a browser takes longer than all the rest
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		fmt.Fprintf(os.Stderr, "%s is left out: %v\n", wholePage, err)
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	far, err := delayed(ctx, c.addr)
	if err != nil {
		return nil, err
	}
	b, end, err := startChromium(ctx, st, far)
	if err != nil {
		return nil, err
	}
	defer end()
	for range pageLoads {
		ms, err := b.load(ctx, c)
		if err != nil {
			return nil, err
		}
		readings = append(readings, reading{loadTime, ms})
	}
	return readings, nil
}

// delayed is an address that leads to another, with oneWay between them.
func delayed(ctx context.Context, to string) (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return // the measurement is over
			}
			go func() {
				time.Sleep(oneWay) // of the first packet
				far, err := net.Dial("tcp", to)
				if err != nil {
					near.Close()
					return
				}
				context.AfterFunc(ctx, func() { near.Close(); far.Close() })
				go carry(far, near)
				carry(near, far)
			}()
		}
	}()
	return ln.Addr().String(), nil
}

// carry writes what it reads oneWay later.
func carry(to, from net.Conn) {
	type parcel struct {
		at    time.Time
		bytes []byte
	}
	road := make(chan parcel, 1024)
	go func() {
		defer close(road)
		for {
			buf := make([]byte, 64<<10)
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			road <- parcel{time.Now().Add(oneWay), buf[:n]}
		}
	}()
	for p := range road {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.bytes); err != nil {
			from.Close()
		}
	}
	to.Close()
}

// browser is a Chromium that is spoken to by its DevTools protocol.
type browser struct {
	talk *websocket.Conn
	last int
}

func startChromium(ctx context.Context, st *stage, addr string) (b *browser, end func(), err error) {
	dir, err := os.MkdirTemp(st.dir, "chromium-")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--ignore-certificate-errors",
		"--user-data-dir="+dir, "--remote-debugging-port=0", "--host-resolver-rules=MAP "+host+":443 "+addr, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end = func() {
		_ = cmd.Process.Kill() // nothing of it is needed any more
		_ = cmd.Wait()
	}
	for ctx.Err() == nil {
		where, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		if port, path, ok := strings.Cut(strings.TrimSpace(string(where)), "\n"); err == nil && ok {
			talk, _, err := websocket.Dial(ctx, "ws://127.0.0.1:"+port+path, nil)
			if err != nil {
				end()
				return nil, nil, err
			}
			talk.SetReadLimit(16 << 20)
			return &browser{talk: talk}, end, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	end()
	return nil, nil, errors.New("Chromium did not start")
}

// load opens the page in a context of its own and returns how long it took, in
// milliseconds.
func (b *browser) load(ctx context.Context, c contender) (ms float64, err error) {
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

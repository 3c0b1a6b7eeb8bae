package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/coder/websocket"

	"porchlight/test/programs"
)

// firefox is asked by WebDriver BiDi (W3C).
type firefox struct {
	t       *testing.T
	conn    *websocket.Conn
	process *programs.Process
	last    int
	tab     string
}

func newFirefox(t *testing.T) realBrowser {
	t.Helper()
	return startFirefox(t, nil)
}

// startFirefox has a profile of its own, where the certificates of roots are trusted.
func startFirefox(t *testing.T, env []string, roots ...string) *firefox {
	t.Helper()
	program, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Skip("there is no Firefox here: apt-get install firefox-esr")
	}
	dir := programs.Got(os.MkdirTemp("", "firefox-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) }) // what it still writes as it ends is nobody's
	// Nothing but what the test opens is asked of anybody.
	prefs := ""
	for name, value := range map[string]string{
		"network.dns.localDomains": strconv.Quote(ownName), "browser.shell.checkDefaultBrowser": "false", "datareporting.policy.dataSubmissionEnabled": "false",
		"app.update.enabled": "false", "app.normandy.enabled": "false", "network.captive-portal-service.enabled": "false", "network.connectivity-service.enabled": "false",
		"browser.safebrowsing.update.enabled": "false", "services.settings.server": strconv.Quote("data:,"), "extensions.systemAddon.update.enabled": "false",
		"toolkit.telemetry.enabled": "false", "dom.push.connection.enabled": "false", "network.prefetch-next": "false", "network.trr.mode": "5",
	} {
		prefs += fmt.Sprintf("user_pref(%q, %s);\n", name, value)
	}
	programs.Must(t, os.WriteFile(filepath.Join(dir, "user.js"), []byte(prefs), 0o600))
	cmd := exec.Command(program, "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", dir)
	cmd.Env = append(append(os.Environ(), "HOME="+dir, "MOZ_CRASHREPORTER_DISABLE=1"), env...)
	if len(roots) > 0 {
		trust(t, dir, roots)
	}
	p := programs.Begin(t, cmd)
	said := programs.Got(p.Logs(t.Context(), `WebDriver BiDi listening on (ws://\S+)\n`))(t)
	conn, _, err := websocket.Dial(t.Context(), said[1]+"/session", nil)
	programs.Must(t, err)
	t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(1 << 24)
	f := &firefox{t: t, conn: conn, process: p}
	programs.Must(t, f.command("session.new", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{"acceptInsecureCerts": true}}}, nil))
	var made struct{ Context string }
	programs.Must(t, f.command("browsingContext.create", map[string]any{"type": "tab"}, &made))
	f.tab = made.Context
	return f
}

// command sends one, and waits for its answer; into is what that is read into, or nil.
func (f *firefox) command(method string, params map[string]any, into any) error {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	f.last++
	raw, err := json.Marshal(map[string]any{"id": f.last, "method": method, "params": params})
	if err != nil {
		return err
	}
	if err := f.conn.Write(ctx, websocket.MessageText, raw); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	for {
		_, raw, err := f.conn.Read(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var answer struct {
			ID             int
			Type           string
			Error, Message string
			Result         json.RawMessage
		}
		switch err := json.Unmarshal(raw, &answer); {
		case err != nil:
			return err
		case answer.ID != f.last: // an event
		case answer.Type != "success":
			return fmt.Errorf("%s: %s: %s", method, answer.Error, answer.Message)
		case into == nil:
			return nil
		default:
			return json.Unmarshal(answer.Result, into)
		}
	}
}

func (f *firefox) navigate(address string) error {
	return f.command("browsingContext.navigate", map[string]any{"context": f.tab, "url": address, "wait": "complete"}, nil)
}

func (f *firefox) ask(script string) (string, error) {
	var said struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Text string }
	}
	err := f.command("script.evaluate", map[string]any{
		"expression": "(async () => String(" + script + "))()", "target": map[string]any{"context": f.tab}, "awaitPromise": true, "resultOwnership": "none",
	}, &said)
	if err == nil && said.ExceptionDetails != nil {
		err = errors.New(said.ExceptionDetails.Text + ": " + script)
	}
	text, _ := said.Result.Value.(string)
	return text, err
}

func (f *firefox) cookies() (all []http.Cookie, err error) {
	var jar struct {
		Cookies []struct {
			Name, Domain string
			Value        struct{ Value string }
		}
	}
	err = f.command("storage.getCookies", map[string]any{}, &jar)
	for _, one := range jar.Cookies {
		all = append(all, http.Cookie{Name: one.Name, Value: one.Value.Value, Domain: one.Domain})
	}
	return all, err
}

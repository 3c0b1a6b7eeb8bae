//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// tenant is somebody with a computer that is connected to a control plane, and
// an app on it.
type tenant struct {
	*computer
	plane      *plane
	email      string
	browser    *visitor.Visitor // theirs
	credential string           // of the computer
	app        *backend
}

// newTenant makes an account, connects a computer of that name with an app, and
// signs its owner in at the app.
func (c *plane) newTenant(ctx context.Context, name string) (*tenant, error) {
	var err error
	if c.roots, err = rig.Roots(rig.Authority(c.Data)); err != nil {
		return nil, err
	}
	t := &tenant{plane: c, email: name + "@example.net", browser: visitor.New(c.roots)}
	if err := c.Run(nil, "account", "add", t.email); err != nil {
		return nil, err
	}
	if t.computer, err = c.s.startComputer(ctx, filepath.Join(c.s.dir, name)); err != nil {
		return nil, err
	}
	secrets := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "porchlight", "device", "*.secret")
	before, err := filepath.Glob(secrets)
	if err != nil {
		return nil, err
	}
	if err := t.connect(ctx, name); err != nil {
		return nil, err
	}
	after, err := filepath.Glob(secrets)
	if err != nil {
		return nil, err
	}
	for _, file := range after {
		if !slices.Contains(before, file) {
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			t.credential = strings.TrimSpace(string(raw))
		}
	}
	if t.credential == "" {
		return nil, errors.New("the computer keeps no credential")
	}
	return t, t.settle(ctx)
}

// connect has the agent ask and the owner confirm in a browser.
func (t *tenant) connect(ctx context.Context, name string) error {
	authority, err := os.ReadFile(rig.Authority(t.plane.Data))
	if err != nil {
		return err
	}
	req := agentapi.ConnectRequest{URL: t.plane.AuthURL, CA: string(authority)}
	if from := t.plane.authority; from != nil {
		req.CA, req.ACMEDirectory = req.CA+string(from.Own), from.Directory
	}
	waiting, err := t.owner.Connect(ctx, req)
	if err != nil {
		return err
	}
	answers := map[string]string{"name": name, "decision": "allow"}
	page, err := t.browser.Confirm(ctx, waiting.VerificationURLComplete, waiting.UserCode, t.email, answers, t.plane.mails)
	if err != nil {
		return err
	}
	if page.Status != http.StatusOK {
		return fmt.Errorf("confirming ends with HTTP %d: %.200s", page.Status, page.Body)
	}
	for end := time.Now().Add(programs.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		account, err := t.owner.Account(ctx)
		if err == nil && account.Connected && !account.Local {
			t.account = account
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.New("the computer does not connect")
}

// settle publishes the app and opens it in the owner's browser.
func (t *tenant) settle(ctx context.Context) (err error) {
	files := []string{rig.Authority(t.plane.Data)}
	if t.plane.authority == nil {
		files = append(files, rig.Own(t.Data))
	}
	if t.roots, err = rig.Roots(files...); err != nil {
		return err
	}
	if from := t.plane.authority; from != nil {
		t.roots.AppendCertsFromPEM(from.Root)
	}
	old := t.browser
	defer old.Close()
	t.browser = visitor.New(t.roots)
	if t.app, err = t.plane.s.startBackend(ctx, "go"); err != nil {
		return err
	}
	if t.app.host, err = t.publish(ctx, "notes", "Notes", t.app.tap.port()); err != nil {
		return err
	}
	for end := time.Now().Add(programs.Patience); ; time.Sleep(50 * time.Millisecond) {
		page, err := t.browser.SignIn(ctx, "https://"+t.app.host+"/hello", t.email, t.plane.mails)
		if err == nil && page.Status == http.StatusOK {
			break
		}
		if err == nil {
			err = fmt.Errorf("HTTP %d", page.Status)
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%s does not open its own app: %w", t.email, err)
		}
	}
	t.app.cookie, err = cookieOf(ctx, t.browser, t.app.host)
	return err
}

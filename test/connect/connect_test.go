package connect

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// TestConnectAndDisconnect: a computer on its own is connected, visited at its
// new address, and taken off again; what was approved is approved throughout.
func TestConnectAndDisconnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.startAgent("--local")
	w.publish()
	w.porchlight("approve", "notes")
	local := w.account()
	if !local.Local || !local.Connected {
		t.Fatalf("on its own it is %+v", local)
	}

	account := w.connect("cellar")
	if account.Name != "cellar" || account.Email != owner || account.AuthURL != w.control.AuthURL || account.Local || !account.Connected {
		t.Fatalf("connected it is %+v", account)
	}
	var apps []agentapi.AppSummary
	w.decode(w.porchlight("apps", "--json"), &apps)
	if len(apps) != 1 || apps[0].Status != agentapi.StatusLive || apps[0].Host != "notes."+account.Host {
		t.Fatalf("after connecting the apps are %+v", apps)
	}
	// Before its first visitor the app was asked by its new name.
	programs.Eventually(t, "the app is asked by its new name", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Equal(w.probed, []string{"notes." + local.Host, "notes." + account.Host})
	})
	page := w.visit(apps[0].URL)
	if page.Status != http.StatusOK || page.Body != "notes of "+owner {
		t.Fatalf("the visit ended with %d at %s: %s", page.Status, page.URL, page.Body)
	}
	w.mu.Lock()
	if role := w.seen.Get("X-Service-Role"); role != "owner" {
		t.Errorf("the app saw the role %q", role)
	}
	w.mu.Unlock()

	old := w.credential()
	if old == "" {
		t.Fatal("no device credential is kept")
	}
	w.porchlight("disconnect")
	if status := w.ask("/v1/sync", old); status != http.StatusUnauthorized {
		t.Errorf("the old credential is answered with %d", status)
	}
	if c := w.credential(); c != "" {
		t.Error("the old credential is still kept")
	}
	browser := visitor.New(w.trusting())
	defer browser.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if page, err := browser.Open(ctx, apps[0].URL); err == nil {
		t.Errorf("the old address still answers: %d %s", page.Status, page.Body)
	}
	if again := w.account(); !again.Local || again.URL != local.URL || again.AccountID != local.AccountID {
		t.Errorf("on its own again it is %+v, and was %+v", again, local)
	}
	w.decode(w.porchlight("apps", "--json"), &apps)
	if len(apps) != 1 || apps[0].Status != agentapi.StatusLive {
		t.Errorf("after disconnecting the apps are %+v", apps)
	}
	if code := agent.Stop(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
}

// TestControlAway: an agent that was connected starts, and lets in who was let
// in, without its control plane; and says so.
func TestControlAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.startAgent("--control", w.control.AuthURL, "--ca", w.caFile)
	if !strings.Contains(agent.Stdout(), "connect "+w.control.AuthURL) {
		t.Errorf("an agent that is not connected says:\n%s", agent.Stdout())
	}
	code, _, errOut := w.run("agent", "--control", w.control.AuthURL, "--api", "127.0.0.1:0")
	if code != 1 || !strings.Contains(errOut, "already runs here (headless, pid ") {
		t.Errorf("a second agent ended with %d: %s", code, errOut)
	}
	account := w.connect("cellar")
	w.publish()
	w.porchlight("approve", "notes")
	if page := w.visit("https://notes." + account.Host); page.Status != http.StatusOK {
		t.Fatalf("the visit ended with %d: %s", page.Status, page.Body)
	}
	if code := agent.Stop(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
	w.control.Stop()

	agent = w.startAgent("--control", w.control.AuthURL, "--ca", w.caFile)
	if now := w.account(); now.Host != account.Host || !now.Connected {
		t.Errorf("without its control plane it is %+v", now)
	}
	if code := agent.Stop(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
	if code, _, errOut := w.run("agent", "--control", "https://another.example", "--api", "127.0.0.1:0"); code != 1 || !strings.Contains(errOut, "connected to "+w.control.AuthURL) {
		t.Errorf("an agent for another control plane ended with %d: %s", code, errOut)
	}

	// Its control plane is away, so it cannot be told; the computer leaves anyway,
	// and tells it when it is back.
	agent = w.startAgent()
	old := w.credential()
	if code, _, errOut := w.run("disconnect"); code != 0 || !strings.Contains(errOut, " connect "+w.control.AuthURL+" --data ") {
		t.Errorf("disconnecting ended with %d and said no way back: %s", code, errOut)
	}
	if now := w.account(); now.Connected {
		t.Errorf("disconnected it is %+v", now)
	}
	w.startControl(w.control.Listens[0])
	programs.Eventually(t, "the old credential is forgotten, with the control plane back", func() bool { return w.credential() == "" })
	if status := w.ask("/v1/sync", old); status != http.StatusUnauthorized {
		t.Errorf("the old credential is answered with %d", status)
	}
	agent.Stop()
}

// TestConnectRefused: an answer of no, a name that is an app's, and Ctrl-C leave
// everything as it was.
func TestConnectRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startAgent("--local")
	w.publish()
	w.porchlight("approve", "notes")
	before := w.account()

	code, _, errOut := w.run("connect", w.control.AuthURL)
	if code != 1 || !strings.Contains(errOut, "--ca FILE") {
		t.Errorf("without its authority connecting ended with %d: %s", code, errOut)
	}
	code, _, errOut = w.run("connect", w.control.AuthURL, "--ca", w.caFile, "--name", "notes")
	if code != 1 || !strings.Contains(errOut, `called "notes"`) {
		t.Errorf("with an app's name connecting ended with %d: %s", code, errOut)
	}

	command, waiting := w.beginConnect()
	if page := w.confirm(waiting, "notes", "allow"); page.Status != http.StatusBadRequest {
		t.Errorf("the page took an app's name: %d", page.Status)
	}
	w.confirm(waiting, "cellar", "deny")
	if code := command.Wait(); code != 1 || !strings.Contains(command.Stderr(), "declined") {
		t.Errorf("declined, connecting ended with %d: %s", code, command.Stderr())
	}

	command = w.begin("connect", w.control.AuthURL, "--ca", w.caFile)
	programs.Got(command.Says(t.Context(), "Ctrl-C gives up"))(t)
	if code := command.Stop(); code != 1 || !strings.Contains(command.Stderr(), "nothing has changed") {
		t.Errorf("given up, connecting ended with %d: %s", code, command.Stderr())
	}
	if now := w.account(); now != before {
		t.Errorf("it was %+v and is %+v", before, now)
	}
	if w.credential() != "" {
		t.Error("a device credential is kept")
	}
}

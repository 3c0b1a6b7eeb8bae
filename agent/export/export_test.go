package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

// kept is an agent with one of each; fails names what it refuses, and alone is one that
// was never connected to anything.
type kept struct {
	fails string
	alone bool
}

var errKept = errors.New("Porchlight is still starting.")

var errAlone = agentapi.Errorf(agentapi.CodeUnavailable, "This computer is not connected to an account yet.")

func (k kept) refuse(what string) error {
	switch {
	case k.fails == what:
		return errKept
	case k.alone && (what == "people" || what == "passwords"):
		return errAlone
	}
	return nil
}

func (k kept) State(context.Context) (agentapi.OwnerState, error) {
	if k.alone {
		return agentapi.OwnerState{Apps: []agentapi.OwnerApp{{AppSummary: agentapi.AppSummary{Name: "notes"}}}}, nil
	}
	return agentapi.OwnerState{
		EngineVersion: "1.2.3",
		Account:       agentapi.Account{Email: "maya@example.com", Host: "maya.localhost:8443", Local: true},
		Apps: []agentapi.OwnerApp{{
			AppSummary: agentapi.AppSummary{Name: "notes", Label: "Notes <b>", LocalPort: 3000, Status: agentapi.StatusLive},
			Listener:   agentapi.Listener{PID: 7, Program: "python3"}, Here: []string{"bob@example.com"},
			Until:   new(time.Date(2026, 3, 4, 18, 0, 0, 0, time.UTC)),
			Options: agentapi.AppOptions{H2C: true},
		}},
		Grants: []agentapi.Grant{{ID: "g1", ClientName: "Phone"}},
		Groups: []agentapi.Group{{ID: "f1", Name: "Family", Apps: []string{"Notes <b>"}, Members: []agentapi.GroupMember{}}},
	}, k.refuse("state")
}

func (k kept) People(context.Context) (agentapi.People, error) {
	return agentapi.People{Members: []agentapi.Person{{Email: "bob@example.com", Status: agentapi.PersonRemoved, Apps: []string{}}}}, k.refuse("people")
}

func (k kept) Activity(_ context.Context, limit int) ([]agentapi.Activity, error) {
	if limit != store.MaxActivity {
		return nil, errors.New("not all of it")
	}
	return nil, k.refuse("activity")
}

func (k kept) Settings(context.Context) (agentapi.Settings, error) {
	return agentapi.Settings{FailStaticHours: 24}, k.refuse("settings")
}

func (k kept) Passwords(context.Context) ([]agentapi.AppPassword, error) {
	return []agentapi.AppPassword{{ID: "p1", Email: "maya@example.com", App: "Notes <b>", AppName: "notes", Name: "laptop"}}, k.refuse("passwords")
}

func (k kept) Senders(context.Context) ([]agentapi.Sender, error) {
	return []agentapi.Sender{{ID: "sender-1", Name: "GitHub", App: "Notes <b>", AppName: "notes", Path: "/push", Kind: agentapi.SenderGitHub, Secrets: 1}}, k.refuse("senders")
}

func (k kept) Devices(context.Context) ([]agentapi.Device, error) {
	return []agentapi.Device{{ID: "d1", Email: "maya@example.com", Apps: []string{"Notes <b>"}, AppNames: []string{"notes"}, Name: "tablet"}}, k.refuse("devices")
}

func TestEverythingIsWritten(t *testing.T) {
	t.Parallel()
	d := programs.Got(Gather(t.Context(), kept{}, time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)))(t)
	var out bytes.Buffer
	programs.Must(t, d.write(&out))
	for _, part := range []string{
		`"format": "porchlight-export"`, `"version": 1`, `"exportedAt": "2026-03-04T05:06:07Z"`, `"engineVersion": "1.2.3"`,
		`"email": "maya@example.com"`, `"label": "Notes <b>"`, `"localPort": 3000`, `"h2c": true`, `"until": "2026-03-04T18:00:00Z"`, `"status": "revoked"`,
		`"clientName": "Phone"`, `"activity": []`, `"quiet": []`, `"failStaticHours": 24`,
		`"passwords": [`, `"name": "laptop"`, `"devices": [`, `"name": "tablet"`, `"name": "Family"`, `"senders": [`, `"path": "/push"`,
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %s in\n%s", part, out.String())
		}
	}
	for _, passing := range []string{"python3", `"here"`, `"pid"`, "null"} {
		if strings.Contains(out.String(), passing) {
			t.Errorf("%s in\n%s", passing, out.String())
		}
	}
	for _, part := range []string{"state", "people", "activity", "settings", "passwords", "senders", "devices"} {
		if _, err := Gather(t.Context(), kept{fails: part}, time.Now()); !errors.Is(err, errKept) {
			t.Errorf("without its %s: %v", part, err)
		}
	}
}

// TestWithoutAnAccount: a computer that was never connected has no people, and is no
// reason to keep from its owner what there is.
func TestWithoutAnAccount(t *testing.T) {
	t.Parallel()
	d, err := Gather(t.Context(), kept{alone: true}, time.Now())
	if err != nil || len(d.Apps) != 1 || d.People == nil || d.Passwords == nil {
		t.Errorf("exported %+v, %v", d, err)
	}
	if _, err := Gather(t.Context(), kept{alone: true, fails: "people"}, time.Now()); !errors.Is(err, errKept) {
		t.Errorf("a fault is told as nobody: %v", err)
	}
}

func TestSavedForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName(time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)))
	if filepath.Base(path) != "porchlight-2026-03-04.json" {
		t.Errorf("it is called %s", path)
	}
	programs.Must(t, os.WriteFile(path, []byte("an older one"), 0o644))
	programs.Must(t, (Document{Format: Format}).Save(path))
	raw, err := os.ReadFile(path)
	var back Document
	if err != nil || json.Unmarshal(raw, &back) != nil || back.Format != Format {
		t.Errorf("saved %q, %v", raw, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	// Renaming would replace it, as it would /dev/null.
	special := filepath.Join(t.TempDir(), "special")
	ln := programs.Got(net.Listen("unix", special))(t)
	defer ln.Close()
	if err := (Document{}).Save(special); err == nil {
		t.Error("a socket was replaced")
	}
	for what, to := range map[string]string{"no directory": filepath.Join(dir, "none", "x.json"), "a directory": dir} {
		err := (Document{}).Save(to)
		if err == nil || !strings.HasPrefix(err.Error(), "The export was not saved as "+to+": ") || strings.Count(err.Error(), dir) != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

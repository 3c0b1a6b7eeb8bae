package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// The crash tests run this test program again, as a Porchlight that kills itself
// at one step of being connected or disconnected.
const (
	crashVariable   = "PORCHLIGHT_TEST_CRASH_DIR"
	crashStep       = "PORCHLIGHT_TEST_CRASH_STEP"
	crashControl    = "PORCHLIGHT_TEST_CRASH_CONTROL"
	crashControlPEM = "PORCHLIGHT_TEST_CRASH_PEM"
)

func beCrashed(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cfg := config(dir)
	cfg.step = func(step string) {
		if step == os.Getenv(crashStep) {
			self, _ := os.FindProcess(os.Getpid()) // never fails here
			_ = self.Kill()
			select {} // the kill is on its way
		}
	}
	h, err := New(ctx, cfg)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go h.Run(ctx)
	open, owner := agentapi.New(h.API()), agentapi.NewOwner(h.OwnerSocket(), secret)
	_, err = open.Publish(ctx, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 1})
	if err == nil {
		_, err = owner.Approve(ctx, "notes")
	}
	if err == nil {
		_, err = owner.Connect(ctx, agentapi.ConnectRequest{URL: os.Getenv(crashControl), CA: os.Getenv(crashControlPEM)})
	}
	for err == nil {
		var a agentapi.Account
		if a, err = owner.Account(ctx); err == nil && a.Connected && !a.Local {
			err = owner.Disconnect(ctx)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println("it was not killed:", err)
	return 1
}

// TestKilledWhileConnecting: wherever the process is killed, the next start finds
// this computer as it was or as it is to be, what was approved approved, and no
// credential left behind at a control plane it is not connected to.
func TestKilledWhileConnecting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step      string
		connected bool // afterwards
		heard     bool // the control plane learns that the computer is not there
	}{
		{step: "confirmed"}, // the credential died with the process
		{step: "noted"},
		{step: "credential kept", heard: true},
		{step: "switched", connected: true},
		{step: "ended", heard: true},
	} {
		t.Run(c.step, func(t *testing.T) {
			t.Parallel()
			control := newControl(t)
			control.confirm()
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), crashVariable+"="+dir, crashStep+"="+c.step, crashControl+"="+control.url, crashControlPEM+"="+control.pem)
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("it ended with %v: %s", err, out)
			}

			h := start(t, config(dir))
			owner := agentapi.NewOwner(h.OwnerSocket(), secret)
			programs.Eventually(t, "it is somebody", func() bool {
				a, err := owner.Account(t.Context())
				return err == nil && a.Connected && a.Local != c.connected
			})
			state, err := owner.State(t.Context())
			if err != nil || len(state.Apps) != 1 || state.Apps[0].Status != agentapi.StatusLive {
				t.Errorf("the apps are %+v, %v", state.Apps, err)
			}
			programs.Eventually(t, "every credential has been ended", func() bool { return len(h.kept.get().Ending) == 0 })
			if c.heard && control.known() {
				t.Error("the control plane still counts on this computer")
			}
			raw, err := os.ReadFile(filepath.Join(dir, connectionName))
			var kept connections
			if err == nil {
				err = json.Unmarshal(raw, &kept)
			}
			if c.step != "confirmed" && (err != nil || (kept.Current != nil) != c.connected) {
				t.Errorf("kept is %s, %v", raw, err)
			}
		})
	}
}

package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/remote"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// TestTroubleTakesAMoment: starting and roaming are no trouble; what lasts is.
func TestTroubleTakesAMoment(t *testing.T) {
	t.Parallel()
	kept := programs.Got(store.Open(t.TempDir()))(t)
	t.Cleanup(func() { kept.Close() })
	who := programs.Got(access.New(access.Config{Store: kept}))(t)
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{cfg: Config{ControlPlane: &ControlPlane{Local: true}}, remote: remote.New(remote.Config{}), access: who} // not connected yet
		time.Sleep(troubleAfter - time.Nanosecond)
		if text := a.trouble().String(); text != "" {
			t.Errorf("while it settles: %s", text)
		}
		time.Sleep(time.Nanosecond)
		if text := a.trouble().String(); !strings.Contains(text, "does not answer") {
			t.Errorf("afterwards: %q", text)
		}
	})
}

// Weakness: a database that failed over, or a backup that came back, tells every computer
// what is older than before, or a package update brings this version before the server's,
// and the owner is told that the server does not answer.
// Checked: it is said by its name, with how long people keep their access where they are
// let through, and then that this is over.
func TestServerThatIsNotBelievedIsTrouble(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		farAway *farAway
		says    [2]string
	}{
		"an older state": {&farAway{snapshot: controlapi.Snapshot{Version: "old", Line: "a", Change: 9}},
			[2]string{"is not believed. Tell who runs it. Everyone keeps the access", "for too long"}},
		"a version of before": {&farAway{refusal: errors.New("no tunnel"), of: controlapi.OfBefore("control.example")},
			[2]string{"of before 0.1.0, with which this one does not work, so nobody can open", "Ask whoever runs it to update it."}},
		"what lets no tunnel through": {&farAway{refusal: errors.New("no tunnel")},
			[2]string{"does not get through, so nobody can open", "A proxy or a firewall may be in the way."}},
	} {
		t.Run(what, func(t *testing.T) { t.Parallel(); saysTrouble(t, tt.farAway, tt.says) })
	}
}

// What the server's operator has ended is told as that, whatever else is wrong, and never as
// a server that does not answer (TR6).
func TestSuspendedIsTold(t *testing.T) {
	t.Parallel()
	control := &farAway{snapshot: controlapi.Snapshot{Version: "old", Line: "a", Change: 9}}
	says := "Ended by the server’s operator, ask abuse@porch.example."
	saysTroubleAfter(t, control, controlapi.Snapshot{Version: "new", Line: "a", Change: 10, Suspended: &controlapi.Suspended{Ask: "abuse@porch.example"}},
		[2]string{says, says})
}

// saysTrouble wants what the owner is told of a control plane, at first and after access ended.
func saysTrouble(t *testing.T, control *farAway, says [2]string) {
	saysTroubleAfter(t, control, controlapi.Snapshot{Version: "new", Line: "a", Change: 10}, says)
}

func saysTroubleAfter(t *testing.T, control *farAway, last controlapi.Snapshot, says [2]string) {
	synctest.Test(t, func(t *testing.T) {
		kept := programs.Got(store.Open(t.TempDir()))(t)
		defer kept.Close()
		who := programs.Got(access.New(access.Config{Store: kept}))(t)
		who.SetSnapshot(last)
		before := remote.New(remote.Config{
			Control: control, Tunnel: control, Last: last,
			Apps: func() []controlapi.App { return nil }, AppsChanged: make(chan struct{}),
			Knocks:     func() controlapi.KnocksFrom { return controlapi.KnocksFromKnown },
			OnSnapshot: func(s controlapi.Snapshot) { t.Errorf("it is believed: %+v", s) },
			OnContact:  who.Touch, OnChange: func() {}, Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- before.Run(ctx) }()
		defer func() { cancel(); <-over }()
		a := &Agent{cfg: Config{ControlPlane: &ControlPlane{}}, remote: before, access: who}
		time.Sleep(time.Minute)
		for _, want := range says {
			if text := a.trouble().String(); !strings.Contains(text, want) {
				t.Errorf("%q is not in: %s", want, text)
			}
			time.Sleep(25 * time.Hour)
		}
	})
}

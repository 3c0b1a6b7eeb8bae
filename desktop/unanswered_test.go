package desktop

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/menu"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

// stoppable is an agent whose process can be stopped: connections are taken and
// nothing is answered.
type stoppable struct {
	client
	stopped atomic.Bool
	refuses atomic.Bool
}

func (s *stoppable) EngineInfo(ctx context.Context) (agentapi.EngineInfo, error) {
	switch {
	case s.stopped.Load():
		<-ctx.Done()
		return agentapi.EngineInfo{}, ctx.Err()
	case s.refuses.Load():
		return agentapi.EngineInfo{}, errors.New("no")
	}
	return agentapi.EngineInfo{}, nil
}

func TestAStoppedAgentIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		agent := &stoppable{}
		var unanswered atomic.Bool
		e := &agentRunner{probeEvery: probeEvery, probeFor: probeFor, onUnanswered: unanswered.Store}
		ended := make(chan struct{})
		go func() { defer close(ended); e.watch(ctx, agent) }()
		for _, stopped := range []bool{false, true, false} {
			agent.stopped.Store(stopped)
			time.Sleep(2 * (probeEvery + probeFor))
			synctest.Wait()
			if unanswered.Load() != stopped {
				t.Errorf("stopped: %v, unanswered: %v", stopped, unanswered.Load())
			}
		}
		cancel()
		<-ended
	})
}

// While the agent does not answer, the menu says so, and a click is answered at
// once instead of waiting.
func TestWhileTheAgentIsSilent(t *testing.T) {
	t.Parallel()
	a := &app{state: owner.Everyday(), known: true, client: &stoppable{}, unanswered: true}
	s, known := a.snapshot()
	if m := menu.Draw(menu.Picture{OwnerState: s, Now: owner.Noon}); !known || m.Icon != menu.IconTrouble || m.Lines[0].Text != "Porchlight is not answering." {
		t.Errorf("%s, %q", m.Icon, m.Lines[0].Text)
	}
	if _, err := a.carryOut(t.Context(), verbs.Action{Verb: verbs.Revoke, Name: "notes"}); !errors.Is(err, errSilent) {
		t.Errorf("revoking: %v", err)
	}
}

package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/agentapi"
)

// stoppable is an agent whose process can be stopped: connections are taken and
// nothing is answered.
type stoppable struct {
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
		ended := make(chan struct{})
		go func() { defer close(ended); watch(ctx, agent.EngineInfo, unanswered.Store) }()
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

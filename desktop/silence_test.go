package desktop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/agentapi"
)

// stoppable is an agent whose process can be stopped: connections are taken and
// nothing is answered.
type stoppable struct {
	client
	stopped bool
	err     error
}

func (s *stoppable) EngineInfo(ctx context.Context) (agentapi.EngineInfo, error) {
	if s.stopped {
		<-ctx.Done()
		return agentapi.EngineInfo{}, ctx.Err()
	}
	return agentapi.EngineInfo{}, s.err
}

func TestAStoppedAgentIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		agent := &stoppable{}
		var silent bool
		e := &engine{probeEvery: probeEvery, probeFor: probeFor, onSilence: func(s bool) { silent = s }}
		ended := make(chan struct{})
		go func() { defer close(ended); e.watch(ctx, agent) }()
		for _, c := range []struct {
			what    string
			stopped bool
			err     error
			want    bool
		}{
			{"answers", false, nil, false},
			{"stopped", true, nil, true},
			{"goes on", false, nil, false},
			{"refuses", false, errors.New("no"), false}, // an answer too
		} {
			agent.stopped, agent.err = c.stopped, c.err
			time.Sleep(probeEvery + probeFor)
			synctest.Wait()
			if silent != c.want {
				t.Errorf("an agent that %s counts as silent: %v", c.what, silent)
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
	a := &app{state: everyday(), known: true, client: &stoppable{}, silent: true}
	s, known := a.snapshot()
	if m := menuOf(s, false); !known || m.icon != iconTrouble || m.status() != "Porchlight is not answering." {
		t.Errorf("%s, %q", m.icon, m.status())
	}
	if _, err := a.carryOut(t.Context(), action{verb: doRevoke, name: "notes"}); !errors.Is(err, errSilent) {
		t.Errorf("revoking: %v", err)
	}
}

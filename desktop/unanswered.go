package desktop

import (
	"context"
	"time"

	"porchlight/agent/agentapi"
)

const (
	// probeEvery is the time between two looks whether another process's agent
	// still answers, and probeFor how long it may take. A stopped process keeps
	// its connections, and its stream of events is silent anyway most of the time.
	probeEvery = 2 * time.Second
	probeFor   = 1500 * time.Millisecond
)

// prober is what is asked of an agent to see whether it answers.
type prober interface {
	EngineInfo(ctx context.Context) (agentapi.EngineInfo, error)
}

// watch looks after an agent of another process until ctx ends. An agent of this
// process needs none: nobody is left to look once it has stopped.
func (e *agentRunner) watch(ctx context.Context, c prober) {
	tick := time.NewTicker(e.probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		probing, cancel := context.WithTimeout(ctx, e.probeFor)
		_, err := c.EngineInfo(probing)
		late := probing.Err() != nil
		cancel()
		if ctx.Err() == nil {
			e.onUnanswered(err != nil && late)
		}
	}
}

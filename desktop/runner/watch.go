package runner

import (
	"context"
	"porchlight/agent/agentapi"
	"time"
)

const (
	// probeEvery is the time between two looks whether another process's agent
	// still answers, and probeFor how long it may take. A stopped process keeps
	// its connections, and its stream of events is silent anyway most of the time.
	probeEvery = 2 * time.Second
	probeFor   = 1500 * time.Millisecond
)

// watch looks after an agent of another process until ctx ends. An agent of this
// process needs none: nobody is left to look once it has stopped.
func watch(ctx context.Context, ask func(context.Context) (agentapi.EngineInfo, error), onUnanswered func(bool)) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		probing, cancel := context.WithTimeout(ctx, probeFor)
		_, err := ask(probing)
		late := probing.Err() != nil
		cancel()
		if ctx.Err() == nil {
			onUnanswered(err != nil && late)
		}
	}
}

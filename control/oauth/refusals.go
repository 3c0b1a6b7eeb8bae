package oauth

import (
	"log/slog"
	"sync"
	"time"
)

// refusalsPerMinute is how many refusals the log names in a minute: anybody can
// cause as many as they like, and must not fill the operator's disk.
const refusalsPerMinute = 60

// refusals tell the operator why clients were refused, for their authors to ask.
type refusals struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex // protects what follows
	minute time.Time  // when it began
	told   int
}

// tell logs a refusal of a client, whose id anybody may have made up.
func (r *refusals) tell(what, client, code, why string) {
	r.mu.Lock()
	if now := r.now(); now.Sub(r.minute).Abs() >= time.Minute {
		r.minute, r.told = now, 0
	}
	r.told++
	told := r.told
	r.mu.Unlock()
	if told <= refusalsPerMinute {
		r.log.Info(what, "client", clientOf(client), "code", code, "why", why)
	}
	if told == refusalsPerMinute {
		r.log.Warn("many OAuth requests are refused; further refusals of this minute are not logged")
	}
}

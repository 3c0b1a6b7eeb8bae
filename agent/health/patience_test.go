package health

import "time"

// AskFor bounds a probe, and in it the wait for the rest of an answer, otherwise.
func (h *Health) AskFor(probe, body time.Duration) { h.askFor, h.bodyFor = probe, body }

// Awaited is how many apps' next answers are news.
func (h *Health) Awaited() int64 { return h.awaited.Load() }

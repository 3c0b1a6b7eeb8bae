package listening

import "time"

// AskFor bounds each question otherwise.
func (l *Listening) AskFor(within time.Duration) { l.askFor = within }

package gate

import "time"

// logEvery is how often a limit that was reached is a line in the log.
const logEvery = time.Minute

// Refusals counts what limits refused, by the limit's name, so that a flood does
// not fill the log. The mutex of the struct it is in guards it.
type Refusals map[string]*refusals

type refusals struct {
	logged time.Time
	since  int // how many since then
}

// Count notes a refusal. log is true once a minute, with how many there were since
// the line before.
func (r Refusals) Count(limit string, now time.Time) (n int, log bool) {
	of := r[limit]
	if of == nil {
		of = &refusals{}
		r[limit] = of
	}
	of.since++
	if now.Sub(of.logged).Abs() < logEvery {
		return 0, false
	}
	n, of.logged, of.since = of.since, now, 0
	return n, true
}

package relay

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// limit is one of the bounds on what strangers can make the relay hold.
type limit int

const (
	limitHandshakes limit = iota
	limitVisitors
	limitComputer
	limitWaiting
	limitPassedOn
	limitTunnels
	limitAuth
	limitHeads
	limitAdmissions
	limitPeers
	limitLookups
	limitFiles
	limits // how many there are
)

// limitNames are those of the settings, where there is one, and of the metric.
var limitNames = [limits]string{
	"handshakes", "visitors", "visitors-per-computer", "waiting-per-computer", "visitors-passed-on",
	"computers", "auth-connections", "large-heads", "admissions", "peers", "lookups", "open-files",
}

// errBusy is what every overLimit is.
var errBusy = errors.New("relay: too many visitors")

// overLimit turns a visitor away.
type overLimit limit

func (e overLimit) Error() string      { return fmt.Sprintf("relay: limit %s is reached", limitNames[e]) }
func (overLimit) Is(target error) bool { return target == errBusy }

// tellEvery is how often the log names a limit that goes on being reached.
const tellEvery = time.Minute

// namedAt is when the log named each limit last, in nanoseconds.
type namedAt [limits]atomic.Int64

// reached counts a connection that was turned away, or had to go for another,
// and names the limit in the log, once in a while.
func (r *Relay) reached(which limit) {
	n := r.counters.limited[which].Add(1)
	now, last := r.now().UnixNano(), r.namedAt[which].Load()
	if n > 1 && now-last < int64(tellEvery) || !r.namedAt[which].CompareAndSwap(last, now) {
		return
	}
	sentence := "a limit is reached: connections are turned away"
	if which == limitFiles {
		sentence = "there are hardly any open files left: connections are turned away; allow the process more of them (LimitNOFILE of the service, or ulimit -n)"
	}
	r.log.Warn(sentence, "limit", limitNames[which], "times", n)
}

// reachedBy is reached for the limit an error names.
func (r *Relay) reachedBy(err error) {
	which := overLimit(limitVisitors)
	_ = errors.As(err, &which)
	r.reached(limit(which))
}

// Reached is a limit, and how often it was reached.
type Reached struct {
	Name    string
	Value   int // 0 where it is none of Limits
	Reached uint64
}

// LimitsReached are the limits of this relay.
func (r *Relay) LimitsReached() []Reached {
	l := r.cfg.Limits
	values := [limits]int{
		limitHandshakes: l.Handshakes, limitVisitors: l.Visitors, limitComputer: l.VisitorsPerComputer, limitWaiting: l.WaitingPerComputer,
		limitPassedOn: l.VisitorsPassedOn, limitTunnels: l.Tunnels, limitAuth: l.AuthConnections, limitAdmissions: l.AdmitPerSecond, limitFiles: r.mostFiles,
	}
	out := make([]Reached, limits)
	for i, name := range limitNames {
		out[i] = Reached{name, values[i], r.counters.limited[i].Load()}
	}
	return out
}

package localapi

import (
	"net/http"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/people"
	"porchlight/internal/bounds"
)

// How often programs may ask. What lets somebody in is paced for every program, so that
// a bad one cannot bury what it did; what else changes something, for other users'
// programs alone. Nobody waits to take access away.
var (
	paceStranger = bounds.Bucket{Size: 200, Refill: 50 * time.Millisecond} // requests of one user
	paceProgram  = bounds.Bucket{Size: 30, Refill: 2 * time.Second}        // gifts of one process
	pacePrograms = bounds.Bucket{Size: 60, Refill: time.Second}            // and of all
	paceUnknown  = bounds.Bucket{Size: 30, Refill: 2 * time.Second}        // one user's removals of nobody
)

// maxPaced bounds the users, and the processes, that are remembered.
const maxPaced = 1024

// paces are the buckets in use.
type paces struct {
	strangers *bounds.Buckets[string] // by user
	programs  *bounds.Buckets[string] // by process
	all       *bounds.Buckets[struct{}]
	unknown   *bounds.Buckets[string] // by user
}

func newPaces() paces {
	return paces{
		strangers: bounds.NewBuckets[string](paceStranger, maxPaced),
		programs:  bounds.NewBuckets[string](paceProgram, maxPaced),
		all:       bounds.NewBuckets[struct{}](pacePrograms, 1),
		unknown:   bounds.NewBuckets[string](paceUnknown, maxPaced),
	}
}

// slow paces what programs of other users change.
func (a *API) slow(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	by := a.callerOf(r)
	if !by.Stranger {
		return nil
	}
	wait := a.paces.strangers.Take(time.Now(), by.UserID)
	if wait == 0 {
		return nil
	}
	return &agentapi.Error{
		Code: agentapi.CodeTooMany, RetryAfter: wait,
		Message: "Programs of your user ask Porchlight for too much at once. Wait a moment and try again.",
	}
}

// paced carries out what lets somebody in. What is refused took nothing of what all
// programs have.
func (a *API) paced(r *http.Request, by people.Actor, give func() (any, error)) (any, error) {
	if by.Owner {
		return give()
	}
	if err := a.slow(r); err != nil {
		return nil, err
	}
	if err := a.slowChange(by); err != nil {
		return nil, err
	}
	out, err := give()
	if err != nil {
		a.paces.all.GiveBack(struct{}{})
	}
	return out, err
}

// slowChange paces how often programs let somebody in: one is taken from both buckets, or
// from none.
func (a *API) slowChange(by people.Actor) error {
	now := time.Now()
	own, all := a.paces.programs.Take(now, by.Process), a.paces.all.Take(now, struct{}{})
	switch {
	case own == 0 && all == 0:
		return nil
	case own == 0:
		a.paces.programs.GiveBack(by.Process)
	case all == 0:
		a.paces.all.GiveBack(struct{}{})
	}
	return &agentapi.Error{
		Code: agentapi.CodeTooMany, RetryAfter: max(own, all),
		Message: "Programs let people in too often. Wait a moment and try again.",
	}
}

// takes carries out what takes access away, for which nobody waits. An id that this
// computer does not know is asked for at the control plane, in the turn of other changes:
// that is paced, but for somebody who was invited a moment ago.
func (a *API) takes(r *http.Request, by people.Actor, accountID string, take func() (any, error)) (any, error) {
	if _, known := a.cfg.People.Row(accountID); known || by.Owner {
		return take()
	}
	user := a.callerOf(r).UserID
	if wait := a.paces.unknown.Take(time.Now(), user); wait > 0 {
		return nil, &agentapi.Error{
			Code: agentapi.CodeTooMany, RetryAfter: wait,
			Message: "Programs name people whom this computer does not know too often. Wait a moment and try again.",
		}
	}
	out, err := take()
	if err == nil {
		a.paces.unknown.GiveBack(user)
	}
	return out, err
}

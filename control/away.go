package control

import (
	"errors"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// awayFor is when whoever was told that the store is away should ask again.
const awayFor = 5 * time.Second

// Away says whether err is of a store that passes: it does not answer, is asked
// for too much, or is being closed. The refusal tells a person so.
func Away(err error) (refusal *controlapi.Error, away bool) {
	sentence := "The service cannot get at its data just now. Nothing was changed. Try again in a moment."
	switch {
	case errors.Is(err, kv.ErrOutcomeUnknown):
		sentence = "The service lost its data store while it kept this. Look whether it was done before you try again."
	case !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrContended) && !errors.Is(err, kv.ErrClosed):
		return nil, false
	}
	return &controlapi.Error{Code: controlapi.CodeUnavailable, Message: sentence, RetryAfter: awayFor}, true
}

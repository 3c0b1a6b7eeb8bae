package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// A store that passes is told of by what somebody is to do now; anything else is
// not taken for it.
func TestAway(t *testing.T) {
	t.Parallel()
	for err, says := range map[error]string{
		kv.ErrUnavailable:     "Nothing was changed",
		kv.ErrContended:       "Nothing was changed",
		kv.ErrClosed:          "Nothing was changed",
		kv.ErrOutcomeUnknown:  "Look whether it was done",
		kv.ErrNotFound:        "",
		context.Canceled:      "",
		errors.New("another"): "",
	} {
		refusal, away := Away(fmt.Errorf("storing: %w", err))
		if away != (says != "") {
			t.Errorf("%v: away is %t", err, away)
		}
		if away && (refusal.Code != controlapi.CodeUnavailable || refusal.RetryAfter != awayFor || !strings.Contains(refusal.Message, says)) {
			t.Errorf("%v: %+v", err, refusal)
		}
	}
}

package feed

import (
	"errors"
	"testing"
	"time"

	"porchlight/control/controlapi"
)

// A hint is kept while the store cannot say otherwise, and goes with its credential.
func TestHints(t *testing.T) {
	t.Parallel()
	var h Hints
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	h.Learn("hash", "anna", now, nil)
	for _, c := range []struct {
		with  error
		known bool
	}{
		{errors.New("the store is away"), true},
		{&controlapi.Error{Code: controlapi.CodeTooMany}, true},
		{&controlapi.Error{Code: controlapi.CodeUnauthorized}, false},
		{errors.New("the store is away"), false},
	} {
		h.Learn("hash", "", now, c.with)
		if id, known := h.Get("hash"); known != c.known || known != (id == "anna") {
			t.Errorf("after %v it is %q, %t", c.with, id, known)
		}
	}
}

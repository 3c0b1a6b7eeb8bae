package openlink

import (
	"testing"
	"time"
)

// The file that carries the owner's link holds something that signs in.
func TestLifetimeIsAMinute(t *testing.T) {
	t.Parallel()
	if lifetime != time.Minute {
		t.Errorf("%v", lifetime)
	}
}

package host

import (
	"testing"
	"time"
)

// How long a control plane that was left is asked to forget this computer.
func TestLeavingIsGivenUpAfterAMonth(t *testing.T) {
	t.Parallel()
	if leaveFor != 30*24*time.Hour {
		t.Errorf("%v", leaveFor)
	}
}

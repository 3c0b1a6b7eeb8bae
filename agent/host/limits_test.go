package host

import (
	"testing"
	"time"
)

// How long a control plane that was left is asked to forget this computer.
func TestEndingIsGivenUpAfterAMonth(t *testing.T) {
	t.Parallel()
	if endFor != 30*24*time.Hour {
		t.Errorf("%v", endFor)
	}
}

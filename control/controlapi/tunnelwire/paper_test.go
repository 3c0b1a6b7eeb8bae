package tunnelwire

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// TestThePaperSaysHowLongAPollTakes: whoever relies on V1 to V3 reads it there.
func TestThePaperSaysHowLongAPollTakes(t *testing.T) {
	t.Parallel()
	text := programs.Got(os.ReadFile("../../../docs/interface.md"))(t)
	const slow = 15 * time.Second // the agent gives up a slow relay, and asked once more before
	if SilenceAwake+HelloWait > slow {
		t.Errorf("a slow relay is given up after %v", SilenceAwake+HelloWait)
	}
	want := fmt.Sprintf("at most %.0f s, %.0f s where the way to the server is slow, and %.0f s while the computer's visitors have nothing open |",
		HeardAwake.Seconds(), slow.Seconds(), SilenceAsleep.Seconds())
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/interface.md does not say: %s", want)
	}
}

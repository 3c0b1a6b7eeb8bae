package procinfo

import (
	"os/user"
	"testing"

	"porchlight/test/programs"
)

func TestOwn(t *testing.T) {
	t.Parallel()
	me := programs.Got(user.Current())(t)
	for id, want := range map[string]bool{
		me.Uid:       true,
		almighty:     true,
		"":           false,
		"65534":      me.Uid == "65534",
		me.Uid + "0": false,
		"00":         false,
		"root":       false,
		"S-1-5-32":   false,
	} {
		if got := Own(id); got != want {
			t.Errorf("Own(%q) = %v, want %v", id, got, want)
		}
	}
}

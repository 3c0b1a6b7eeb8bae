package agentapi

import (
	"strings"
	"testing"
)

func TestAgainOpen(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]OwnerApp{
		"":                             {},
		"ben@x.org can open it again.": {OpenTo: []string{"ben@x.org"}, OpenToCount: 1},
		"ben@x.org and cy@x.org can open it again.":  {OpenTo: []string{"ben@x.org", "cy@x.org"}, OpenToCount: 2},
		"ben@x.org and 2 others can open it again.":  {OpenTo: []string{"ben@x.org", "cy@x.org", "di@x.org"}, OpenToCount: 3},
		"ben@x.org and 39 others can open it again.": {OpenTo: []string{"ben@x.org", "cy@x.org"}, OpenToCount: 40},
	} {
		if got := a.AgainOpen(strings.Clone); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

package agentapi

import (
	"strings"
	"testing"
)

func TestOthersWhoOpen(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]OwnerApp{
		"":                        {},
		"ben@x.org":               {OpenTo: []string{"ben@x.org"}, OpenToCount: 1},
		"ben@x.org and cy@x.org":  {OpenTo: []string{"ben@x.org", "cy@x.org"}, OpenToCount: 2},
		"ben@x.org and 2 others":  {OpenTo: []string{"ben@x.org", "cy@x.org", "di@x.org"}, OpenToCount: 3},
		"ben@x.org and 39 others": {OpenTo: []string{"ben@x.org", "cy@x.org"}, OpenToCount: 40},
	} {
		if got := a.OthersWhoOpen(strings.Clone); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

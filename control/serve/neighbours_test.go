package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"porchlight/control"
)

// The operator is told at the start what the domain lets computers do to each
// other, and nothing where browsers keep them apart.
func TestWarnOfNeighbours(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ domain, authHost, want string }{
		{"porch.test", "control.porch.test", "and the sign-in page"},
		{"porch.test", "control.test", "a page of one can set cookies for the others"},
		{"github.io", "control.github.io", ""},
		{"localhost", "control.localhost", ""},
	} {
		var log bytes.Buffer
		n := &Node{cfg: Config{Naming: control.Naming{Domain: tt.domain, AuthHost: tt.authHost}, Log: slog.New(slog.NewTextHandler(&log, nil))}}
		n.warnOfNeighbours()
		if said := log.String(); tt.want == "" && said != "" || !strings.Contains(said, tt.want) {
			t.Errorf("computers below %s, signing in at %s: %q", tt.domain, tt.authHost, said)
		}
	}
}

package proxy_test

import (
	"strings"
	"testing"

	"porchlight/control/controlapi"
)

// While the server's operator has ended what goes to a computer, every host of it says so,
// published or not, to whoever asks, and in German.
func TestSuspendedPage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.app("notes", hello)
	snap := r.access.Snapshot()
	snap.Version, snap.Suspended = "suspended", &controlapi.Suspended{Ask: "abuse@porch.example"}
	r.access.SetSnapshot(snap)
	b := r.browser(true)
	for _, host := range []string{origin, "https://nothing." + rootHost, "https://" + rootHost} {
		res, body := b.fetch("GET", host+"/", "Accept", "text/html")
		if res.StatusCode != 403 || !strings.Contains(body, "Ended by the server’s operator, ask abuse@porch.example.") {
			t.Errorf("%s: %s %s", host, res.Status, body)
		}
	}
	if _, body := b.fetch("GET", origin+"/", "Accept", "text/html", "Accept-Language", "de"); !strings.Contains(body, "Vom Betreiber des Servers beendet, fragen Sie abuse@porch.example.") {
		t.Errorf("in German: %s", body)
	}
}

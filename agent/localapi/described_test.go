package localapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"porchlight/docs/openapi"
	"porchlight/test/programs"
)

var document = sync.OnceValues(openapi.Loopback)

// described holds every answer of a handler to docs/openapi/loopback.yaml.
func described(t testing.TB) func(http.Handler) http.Handler {
	t.Helper()
	d, err := document()
	programs.Must(t, err)
	return func(h http.Handler) http.Handler { return d.Checked(h, t.Errorf) }
}

// Every route is in the OpenAPI document under its tier, and nothing else is.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	d, err := document()
	programs.Must(t, err)
	tags := map[tier]string{tierOpen: "open", tierCapability: "capability", tierOwner: "owner", tierTake: "owner"}
	var ours []string
	for _, rt := range routes {
		operation := rt.method + " " + rt.path
		ours = append(ours, operation)
		if tag := d.Tag(operation); tag != tags[rt.tier] {
			t.Errorf("%s is described as one of the %q tier, and is of %q", operation, tag, tags[rt.tier])
		}
	}
	slices.Sort(ours)
	if described := d.Operations(); !slices.Equal(ours, described) {
		t.Errorf("routes:\n%s\ndescribed:\n%s", strings.Join(ours, "\n"), strings.Join(described, "\n"))
	}
}

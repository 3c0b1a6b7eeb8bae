package web

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/docs/openapi"
	"porchlight/test/programs"
)

var document = sync.OnceValues(openapi.Control)

// described holds every answer of a handler to docs/openapi/control.yaml.
func described(t testing.TB, h http.Handler) http.Handler {
	t.Helper()
	d := programs.Got(document())(t)
	return d.Checked(h, t.Errorf)
}

// Every route that programs use is in the OpenAPI document, and nothing else is.
// Pages are for people and are not, but for the one a remote client sends its
// user to.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	d := programs.Got(document())(t)
	var routes []string
	for _, rt := range newHandler(newRig(t).svc, Config{}).routes {
		switch {
		case rt.path == controlapi.PathToken || rt.path == controlapi.PathRevoke: // answer every method themselves
			routes = append(routes, "POST "+rt.path, "OPTIONS "+rt.path)
		case rt.tier != tierPage || rt.path == controlapi.PathAuthorize:
			routes = append(routes, rt.method+" "+rt.path)
		}
	}
	slices.Sort(routes)
	if described := d.Operations(); !slices.Equal(routes, described) {
		t.Errorf("routes that programs use:\n%s\ndescribed:\n%s", strings.Join(routes, "\n"), strings.Join(described, "\n"))
	}
}

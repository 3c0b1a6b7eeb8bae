package controlapi_test

import (
	"slices"
	"testing"
	"time"

	"porchlight/control/controlapi"
)

// A row opens what one of its grants opens.
func TestFoldedGrantsOpenWhatOneOpens(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	grant := func(client string, on int, apps ...string) controlapi.Grant {
		return controlapi.Grant{ID: client + day(on).String(), ClientID: client, AccountID: "a", CreatedAt: day(on), Apps: apps}
	}
	got := map[string][]string{}
	for _, row := range controlapi.FoldGrants([]controlapi.Grant{
		grant("one", 1, "notes"),
		grant("two", 1, "photos"), grant("two", 2, "notes", "photos"),
		grant("all later", 1, "notes"), grant("all later", 2),
		grant("all before", 1), grant("all before", 2, "notes"), grant("all before", 3, "photos"),
	}) {
		got[row.ClientID] = row.Apps
	}
	for client, want := range map[string][]string{"one": {"notes"}, "two": {"notes", "photos"}, "all later": nil, "all before": nil} {
		if !slices.Equal(got[client], want) {
			t.Errorf("%s opens %v, want %v", client, got[client], want)
		}
	}
}

package access_test

import (
	"context"
	"testing"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
)

// A grant for some apps opens these alone, as its person may, and never the launcher; one
// that no snapshot has told of opens nothing.
func TestLimitedGrants(t *testing.T) {
	t.Parallel()
	const photos = "id-photos"
	a, _ := open(t, t.TempDir(), newClock())
	limited, all, empty := controlapi.LimitedGrantID("g"), "g2", controlapi.LimitedGrantID("none")
	snap := snapshot(func(people []controlapi.Person) {
		for i := range people {
			if people[i].AccountID == bob {
				people[i].Apps = []string{notes, photos}
			}
		}
	})
	decided := func(when string, want map[string]map[string]access.Reason) {
		t.Helper()
		for grant, apps := range want {
			for app, why := range apps {
				decides(t, a, access.Identity{AccountID: bob, GrantID: grant}, app, why, when+", "+grant+" at "+app)
				gone, cancel := context.WithCancel(t.Context())
				cancel() // nobody waits
				if opens := a.GrantOpens(gone, grant, app); opens != (why == "") {
					t.Errorf("%s, %s at %q: it opens: %v", when, grant, app, opens)
				}
			}
		}
	}
	a.SetSnapshot(snap)
	decided("not told", map[string]map[string]access.Reason{
		limited: {notes: access.ReasonGrant, photos: access.ReasonGrant, "": access.ReasonGrant}, all: {notes: "", photos: "", "": ""},
	})
	snap.Version, snap.GrantApps = "v2", map[string][]string{limited: {notes}, empty: {}}
	a.SetSnapshot(snap)
	told := map[string]map[string]access.Reason{
		limited: {notes: "", photos: access.ReasonGrant, "": access.ReasonGrant},
		empty:   {notes: access.ReasonGrant, "": access.ReasonGrant},
		all:     {notes: "", photos: "", "": ""},
	}
	decided("told", told)

	// A stream at an app that is taken from the grant is cut.
	cut := make(chan struct{})
	d, leave := a.Enter(access.Identity{AccountID: bob, GrantID: limited}, notes, func() { close(cut) })
	defer leave()
	if !d.Allowed {
		t.Fatalf("%+v", d)
	}
	snap.Version, snap.GrantApps = "v3", map[string][]string{limited: {photos}}
	if closed := a.SetSnapshot(snap); closed != 1 {
		t.Errorf("closed %d", closed)
	}
	<-cut
}

// A token that was handed out a moment ago waits for the snapshot that says what its grant
// opens.
func TestFreshLimitedGrantIsAwaited(t *testing.T) {
	t.Parallel()
	a, _ := open(t, t.TempDir(), newClock())
	snap := snapshot(nil)
	a.SetSnapshot(snap)
	grant := controlapi.LimitedGrantID("g")
	opens := make(chan bool)
	for _, app := range []string{notes, "id-photos"} {
		go func() { opens <- a.GrantOpens(t.Context(), grant, app) == (app == notes) }()
	}
	snap.Version, snap.GrantApps = "v2", map[string][]string{grant: {notes}}
	a.SetSnapshot(snap)
	for range 2 {
		if !<-opens {
			t.Error("it was not waited for, or opens another app")
		}
	}
}

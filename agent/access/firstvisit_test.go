package access_test

import (
	"slices"
	"testing"

	"porchlight/agent/access"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// A member's first visit of an app is told once in the life of the data directory, and
// the owner's never.
func TestFirstVisitIsToldOnce(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var told []string
	day := func(visits ...[3]string) {
		kept, err := store.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		who, err := access.New(access.Config{Store: kept, OnFirstVisit: func(v store.Visited) { told = append(told, v.Email+" "+v.Label) }})
		if err != nil {
			t.Fatal(err)
		}
		who.SetSnapshot(controlapi.Snapshot{Version: "1", People: []controlapi.Person{{AccountID: "maya", Email: "maya@example.com", Role: controlapi.RoleOwner, Status: controlapi.PersonActive}}})
		for _, v := range visits {
			who.Opened(access.Identity{AccountID: v[0]}, v[0]+"@example.com", v[1], v[2])
		}
		if _, err := who.Activity(10); err != nil { // which waits until all is written
			t.Fatal(err)
		}
	}
	day([3]string{"bob", "a1", "Notes"}, [3]string{"maya", "a1", "Notes"}, [3]string{"bob", "a2", "Photos"})
	day([3]string{"bob", "a1", "Diary"}, [3]string{"carla", "a1", "Diary"}) // renamed meanwhile
	if want := []string{"bob@example.com Notes", "bob@example.com Photos", "carla@example.com Diary"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

package activity_test

import (
	"slices"
	"testing"

	"porchlight/agent/activity"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

// A member's first visit of an app is told once in the life of the data directory, and
// the owner's never, nor that of a remote client.
func TestFirstVisitIsToldOnce(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var told []string
	day := func(visits ...[3]string) {
		kept := programs.Got(store.Open(path))(t)
		defer kept.Close()
		lines := activity.New(activity.Config{Store: kept, OnFirstVisit: func(v store.Visited) { told = append(told, v.Email+" "+v.Label) }})
		for _, v := range visits {
			one := visit(v[0], v[1], v[2])
			if one.Owner = v[0] == "maya"; v[0] == "dave" {
				one.GrantID = "g1"
			}
			lines.Opened(one)
		}
		if _, err := lines.Lines(10); err != nil { // which waits until all is written
			t.Fatal(err)
		}
	}
	day([3]string{"bob", "a1", "Notes"}, [3]string{"maya", "a1", "Notes"}, [3]string{"dave", "a1", "Notes"}, [3]string{"bob", "a2", "Photos"})
	day([3]string{"bob", "a1", "Diary"}, [3]string{"carla", "a1", "Diary"}) // renamed meanwhile
	if want := []string{"bob@example.com Notes", "bob@example.com Photos", "carla@example.com Diary"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

package people

import (
	"slices"
	"testing"

	"porchlight/control/controlapi"
)

func TestAcceptedInvitations(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"n": "Notes", "p": "Photos", "d": "Diary", "r": "Recipes"}
	of := func(computer string, people ...controlapi.Person) controlapi.Snapshot {
		return controlapi.Snapshot{Computer: controlapi.Computer{ID: computer}, People: people}
	}
	bob := func(status controlapi.PersonStatus, apps ...string) controlapi.Person {
		return controlapi.Person{AccountID: "1", Email: "bob@example.com", Status: status, Apps: apps}
	}
	pending, active, revoked := controlapi.PersonPending, controlapi.PersonActive, controlapi.PersonRemoved
	for name, c := range map[string]struct {
		before, now controlapi.Snapshot
		want        []string
	}{
		"accepted":           {of("c", bob(pending, "n")), of("c", bob(active, "n")), []string{"bob@example.com accepted your invitation and can open Notes."}},
		"two apps":           {of("c", bob(pending)), of("c", bob(active, "p", "n")), []string{"bob@example.com accepted your invitation and can open Notes and Photos."}},
		"many apps":          {of("c", bob(pending)), of("c", bob(active, "n", "p", "d", "r")), []string{"bob@example.com accepted your invitation and can open Diary, Notes, Photos and 1 more."}},
		"an app that left":   {of("c", bob(pending)), of("c", bob(active, "gone")), []string{"bob@example.com accepted your invitation."}},
		"still invited":      {of("c", bob(pending, "n")), of("c", bob(pending, "n")), nil},
		"active all along":   {of("c", bob(active, "n")), of("c", bob(active, "n")), nil},
		"removed meanwhile":  {of("c", bob(pending, "n")), of("c", bob(revoked)), nil},
		"first snapshot":     {controlapi.Snapshot{}, of("c", bob(active, "n")), nil},
		"another computer":   {of("other", bob(pending, "n")), of("c", bob(active, "n")), nil},
		"invited in between": {of("c"), of("c", bob(active, "n")), []string{"bob@example.com accepted your invitation and can open Notes."}},
		"invited again":      {of("c", bob(revoked)), of("c", bob(active, "n")), []string{"bob@example.com accepted your invitation and can open Notes."}},
		"the owner":          {of("c"), of("c", controlapi.Person{AccountID: "0", Role: controlapi.RoleOwner, Status: active}), nil},
	} {
		var got []string
		for _, who := range accepted(c.before, c.now) {
			got = append(got, acceptedWords(who, labels).String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

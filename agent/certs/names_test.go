package certs

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// Weakness: an own domain ends between the look that lets it be ordered and the order, or
// while it is renewed. Checked: whatever the service did not give is proven before each
// order, whether it is the computer's own by now or not.
func TestNamesAreProvenBeforeAnOrder(t *testing.T) {
	t.Parallel()
	root, unproven := "maya.porch.example", errors.New("not proven")
	n := Names{
		Root:  func() string { return root },
		Own:   func(string) bool { return false },
		Prove: func(context.Context, string) error { return unproven },
	}
	for name, given := range map[string]bool{
		"maya.porch.example": true, "notes.maya.porch.example": true,
		"notes.maya.test": false, "notes.eve.porch.example": false, "porch.example": false, "": false,
	} {
		if err := n.Before(t.Context(), name); (err == nil) != given {
			t.Errorf("%q is ordered: %v", name, err)
		}
	}
	if root = ""; n.Before(t.Context(), "notes.maya.test") == nil {
		t.Error("ordered, and nobody knows who this is")
	}
}

// Strangers choose names, and an authority issues so many a week: only the root host, the
// launcher and live apps may have one ordered, and nothing before it is known who this is.
func TestNames(t *testing.T) {
	t.Parallel()
	root, reached := "maya.porch.example", true
	n := Names{
		Root:       func() string { return root },
		Apps:       func() []string { return []string{"asks", "notes"} },
		Live:       func(app string) bool { return app == "notes" },
		Reached:    func() bool { return reached },
		Own:        func(name string) bool { return name == "notes.maya.test" },
		OwnDomains: func() []string { return []string{"notes.maya.test"} },
	}
	for name, want := range map[string]struct{ serves, mayOrder bool }{
		"maya.porch.example":         {true, true},
		"portal.maya.porch.example":  {true, true},
		"notes.maya.porch.example":   {true, true},
		"asks.maya.porch.example":    {true, false},
		"nobody.maya.porch.example":  {true, false},
		"x.notes.maya.porch.example": {false, false},
		"notes.maya.test":            {true, true},
		"x.notes.maya.test":          {false, false},
		".maya.porch.example":        {false, false},
		"notes.eve.porch.example":    {false, false},
		"notmaya.porch.example":      {false, false},
		"porch.example":              {false, false},
		"":                           {false, false},
	} {
		if got := n.Serves(name); got != want.serves {
			t.Errorf("%q is served: %v", name, got)
		}
		if got := n.MayOrder(name); got != want.mayOrder {
			t.Errorf("%q may be ordered: %v", name, got)
		}
	}
	if got := n.Ordered(); !slices.Equal(got, []string{"maya.porch.example", "notes.maya.porch.example", "notes.maya.test"}) {
		t.Errorf("ordered: %q", got)
	}
	if reached = false; n.Ordered() != nil {
		t.Error("ordered, and no relay sends the authority")
	}
	reached, root = true, ""
	if n.Ordered() != nil || n.Serves("notes.") || n.Serves("") || n.MayOrder("notes.") || n.MayOrder("") {
		t.Error("names of nobody")
	}
}

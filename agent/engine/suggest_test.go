package engine

import (
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Apps stand by label as people read it, in every list. OW14.
func TestAppsStandInOrder(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	want := []string{"App", "apple", "Notes 8", "notes 16", "Notes 56", "Öl", "Photos"}
	for i, at := range []int{4, 6, 3, 0, 5, 2, 1} { // each by a name of another order
		d.live(t, string(rune('a'+i)), want[at], 8000+i)
	}
	var got []string
	for _, app := range d.apps.OwnerApps(nil) {
		got = append(got, app.Label)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What is suggested can be shared as it is: the name is free and fit to be one, and no
// other app has the label.
func TestSuggest(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.live(t, "notes", "Notes", 8000)
	d.live(t, "photos-2", "Something", 8001)
	d.live(t, "photos", "Photos", 8002)
	programs.Got(d.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "asks", Label: "Asks", LocalPort: 8003}))(t)
	for _, tt := range []struct{ texts, name, label string }{
		{"Jupyter Server", "jupyter-server", "Jupyter Server"},
		{"Notes", "notes-2", "Notes 2"},
		{"notes (copy)", "notes-copy", "notes (copy)"},
		{"Photos", "photos-3", "Photos 3"},
		{"something", "something-2", "something 2"}, // a label of another name
		{"Asks", "asks-2", "Asks 2"},                // a request holds its name
		{"Maya", "maya-2", "Maya 2"},                // the computer's own
		{"www", "www-2", "www 2"},
		{"|Port 8000", "port-8000", "Port 8000"},
		{"日記|Port 8000", "port-8000", "日記"},
		{"\u202eevil|Port 1", "port-1", "Port 1"},
		{"<script>alert(1)</script>", "script-alert-1-script", "<script>alert(1)</script>"},
		{"A very long title of an app that goes on and on", "a-very-long-title-of-an-app", "A very long title of an app that goes on and on"},
		{strings.Repeat("x", 50), strings.Repeat("x", 30), strings.Repeat("x", 50)},
		{"|", "app", "app"},
	} {
		name, label := d.apps.Suggest(strings.Split(tt.texts, "|")...)
		if name != tt.name || label != tt.label {
			t.Errorf("%q: %q, %q; want %q, %q", tt.texts, name, label, tt.name, tt.label)
		}
		seen := agentapi.Seen{Label: label, LocalPort: 9000, Program: &ada.Program, User: &ada.User}
		if _, err := d.apps.Share(t.Context(), name, 0, agentapi.Share{Seen: seen, Listening: true, Keep: true, Menu: true}); err != nil {
			t.Errorf("%q cannot be shared as %q, %q: %v", tt.texts, name, label, err)
		}
		if _, err := d.apps.Revoke(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
}

// A port is for its live app, then for an app that is off where nobody but the owner
// opened it, and only then for a request, which any program can make.
func TestOnPort(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.live(t, "off", "Off", 8000)
	programs.Got(d.apps.Unpublish(t.Context(), Caller{}, "off"))(t)
	alone, shared := func(string) int { return 0 }, func(string) int { return 1 }
	if app, ok := d.apps.OnPort(8000, alone); !ok || app.Name != "off" {
		t.Errorf("off: %+v, %v", app, ok)
	}
	if app, ok := d.apps.OnPort(8000, shared); ok {
		t.Errorf("one that others opened: %+v", app)
	}
	programs.Got(d.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "zebra", Label: "Zebra", LocalPort: 8000}))(t)
	if app, ok := d.apps.OnPort(8000, alone); !ok || app.Name != "off" {
		t.Errorf("off, and a request: %+v, %v", app, ok)
	}
	if app, ok := d.apps.OnPort(8000, shared); !ok || app.Name != "zebra" {
		t.Errorf("a request: %+v, %v", app, ok)
	}
	d.live(t, "zoo", "Zoo", 8000)
	if app, ok := d.apps.OnPort(8000, shared); !ok || app.Name != "zoo" {
		t.Errorf("a live app: %+v, %v", app, ok)
	}
	if _, ok := d.apps.OnPort(8001, alone); ok {
		t.Error("nobody asked for that port")
	}
}

// A program that is gone at the click is not put at an address, and one that has
// changed is not either. What is kept is an approval without an end, and the menu bar
// is not told of what it did itself.
func TestShareOfWhatWasShown(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	share := agentapi.Share{Seen: agentapi.Seen{Label: "Notes", LocalPort: 8000, Program: &ada.Program, User: &ada.User}, Listening: true, Keep: true, Menu: true}
	d.dead = true
	if _, err := d.apps.Share(t.Context(), "notes", 1, share); agentapi.CodeOf(err) != agentapi.CodeConflict || err.Error() != "Port 8000 stopped listening." {
		t.Errorf("gone: %v", err)
	}
	d.dead, d.now = false, eve
	if _, err := d.apps.Share(t.Context(), "notes", 1, share); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("another: %v", err)
	}
	if _, ok := d.apps.Lookup("notes"); ok {
		t.Error("it is there all the same")
	}
	d.now = ada
	programs.Got(d.apps.Share(t.Context(), "notes", 1, share))(t)
	d.reopen()
	if app, ok := d.apps.Lookup("notes"); !ok || app.Status != agentapi.StatusLive || app.kept.Shared != nil || len(d.apps.Notices()) != 0 {
		t.Errorf("after a restart: %+v, %v; told %+v", app, ok, d.apps.Notices())
	}
}

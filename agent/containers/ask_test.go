//go:build unix

package containers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

// What a container may ask for: an address that names this computer, at a port that it
// publishes itself.
func TestClaims(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		change func(map[string]any)
		port   int // 0 where it does not ask
		why    string
	}{
		"as it is":        {func(map[string]any) {}, 8080, ""},
		"no labels":       {with("Labels", map[string]string{}), 0, ""},
		"baked in":        {label("porchlight.name", "notes"), 0, "may have come with its image"},
		"of another host": {label("porchlight.name", "notes.eve.example"), 0, "notes.maya.example"},
		"host alone":      {label("porchlight.name", "maya.example"), 0, "whole address"},
		"a lie":           {label("porchlight.port", "22"), 0, "porchlight.port"},
		"no number":       {label("porchlight.port", "8080 "), 0, "porchlight.port"},
		"the only one":    {with("Labels", map[string]string{"porchlight.name": "notes.maya.example"}), 8080, ""},
		"none published": {func(o map[string]any) {
			with("Ports", nil)(o)
			with("Labels", map[string]string{"porchlight.name": "notes.maya.example"})(o)
		}, 0, "0 ports"},
		"published by nobody": {with("Ports", nil), 0, "porchlight.port"},
	} {
		one := programs.Got(read("", programs.Got(json.Marshal([]any{listed(1, tt.change)}))(t)))(t)[0]
		asks, ok, why := one.claims("maya.example")
		if ok != (tt.port != 0) || ok && (asks.LocalPort != tt.port || asks.PublishRequest.Name != "notes") || tt.why == "" != (why == "") || !strings.Contains(why, tt.why) {
			t.Errorf("%s: %+v, %v, %q", what, asks.PublishRequest, ok, why)
		}
	}
	one := programs.Got(read("", programs.Got(json.Marshal([]any{listed(1)}))(t)))(t)[0]
	if _, ok, _ := one.claims(""); ok {
		t.Error("it asks on a computer without an address")
	}
}

// desk is what the engine of the apps would be told.
type desk struct {
	*Containers
	mu     sync.Mutex
	told   []string                      // guarded by mu
	holder map[string]agentapi.Container // guarded by mu; all at 8080
	waits  bool                          // guarded by mu
	refuse error                         // guarded by mu
}

func open(t *testing.T, f *fake) *desk {
	t.Helper()
	d := &desk{holder: map[string]agentapi.Container{}}
	d.Containers = New(Config{
		Socket: func() string { return f.socket },
		Host:   func() string { return "maya.example" },
		Publish: func(_ context.Context, c agentapi.Container, req agentapi.PublishRequest) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.told = append(d.told, fmt.Sprintf("%s asks for %s at %d as %s", c, req.Name, req.LocalPort, req.Label))
			return d.refuse
		},
		Gone: func(_ context.Context, name string, c agentapi.Container) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.told = append(d.told, fmt.Sprintf("%s with %s is gone", c, name))
			return nil
		},
		Holder: func(name string) (*agentapi.Container, int, bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if c, ok := d.holder[name]; ok {
				return &c, 8080, d.waits
			}
			return nil, 0, false
		},
		Changes: new(broadcast.Signal),
		Log:     slog.New(slog.DiscardHandler),
	})
	return d
}

// round looks once, and returns what the engine of the apps was told.
func (d *desk) round(t *testing.T) []string {
	t.Helper()
	d.Containers.round(t.Context(), d.cfg.Socket())
	d.mu.Lock()
	defer d.mu.Unlock()
	told := d.told
	d.told = nil
	slices.Sort(told)
	return told
}

// A container asks once, is taken back when it is gone, and never because its engine is.
func TestAContainerAsksOnce(t *testing.T) {
	t.Parallel()
	f := engine(t, nil)
	d := open(t, f)
	const asks, gone = "container web (nginx:1) asks for notes at 8080 as Notes", "container web (nginx:1) with notes is gone"
	for _, step := range []struct {
		what string
		says func()
		want []string
	}{
		{"nothing runs", func() { f.says(t) }, nil},
		{"it starts", func() { f.says(t, listed(1)) }, []string{asks}},
		{"it runs", func() {}, nil},
		{"the engine is away", func() { f.list.Store("no") }, nil},
		{"and back", func() { f.says(t, listed(1)) }, nil},
		{"it is made anew", func() { f.says(t, listed(2)) }, []string{asks}},
		{"it stops", func() { f.says(t) }, []string{gone}},
		{"it starts again", func() { f.says(t, listed(2)) }, []string{asks}},
		{"of another image", func() { f.says(t, listed(3, with("ImageID", "sha256:"+id(7)))) }, []string{asks, gone}},
	} {
		step.says()
		if told := d.round(t); !slices.Equal(told, step.want) {
			t.Errorf("%s: %q, want %q", step.what, told, step.want)
		}
	}
	d.holder["notes"] = agentapi.Container{Engine: f.socket, Name: "web", ImageID: id(7)}
	for waits, want := range map[bool]int{false: 0, true: 1} {
		if d.waits = waits; len(d.round(t)) != want {
			t.Errorf("it is the one that was approved, and another waits in its place: %v", waits)
		}
	}
	delete(d.holder, "notes")
	d.refuse = agentapi.Errorf(agentapi.CodeTooMany, "too many wait")
	f.says(t, listed(4))
	for range 2 {
		if told := d.round(t); !slices.Contains(told, asks) {
			t.Errorf("there was no room, and now: %q", told)
		}
	}
}

// Weakness: a container that names itself by another's address, or publishes its port at
// another address of this computer, took its place.
func TestNoContainerTakesAnothersPlace(t *testing.T) {
	t.Parallel()
	f := engine(t, nil)
	d := open(t, f)
	at := func(port int, address string) func(map[string]any) {
		return func(o map[string]any) {
			with("Ports", []map[string]any{{"IP": address, "PublicPort": port, "Type": "tcp"}})(o)
			label("porchlight.port", fmt.Sprint(port))(o)
		}
	}
	mallet := with("Names", []string{"/mallet"})
	f.says(t, listed(2, mallet, at(9999, "0.0.0.0")), listed(1))
	if told := d.round(t); !slices.Equal(told, []string{"container web (nginx:1) asks for notes at 8080 as Notes"}) {
		t.Errorf("two with one name, the second asked first: %q", told)
	}
	d.holder["notes"] = agentapi.Container{Engine: f.socket, Name: "web", ImageID: id(1000)}
	f.says(t, listed(0, mallet, at(9999, "0.0.0.0")), listed(1))
	if told := d.round(t); len(told) != 0 {
		t.Errorf("an older one with the name of what was approved: %q", told)
	}
	f.says(t, listed(0, mallet, at(9999, "0.0.0.0")))
	if told := d.round(t); len(told) != 2 || !strings.HasPrefix(told[0], "container mallet") {
		t.Errorf("what was approved is gone: %q", told)
	}
	f.says(t, listed(3, mallet, at(8080, "::")), listed(1))
	for _, line := range d.round(t) {
		if strings.Contains(line, "asks") {
			t.Errorf("two at one port: %q", line)
		}
	}
}

//go:build unix

package containers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
		}, 0, "no port"},
		"several": {func(o map[string]any) {
			with("Ports", []map[string]any{{"PublicPort": 1, "Type": "tcp"}, {"PublicPort": 2, "Type": "tcp"}})(o)
			with("Labels", map[string]string{"porchlight.name": "notes.maya.example"})(o)
		}, 0, "several ports"},
		"published by nobody": {with("Ports", nil), 0, "porchlight.port"},
	} {
		one := programs.Got(read("", programs.Got(json.Marshal([]any{listed(1, tt.change)}))(t)))(t)[0]
		asks, ok, why := one.claims("maya.example")
		if ok != (tt.port != 0) || ok && (asks.LocalPort != tt.port || asks.PublishRequest.Name != "notes") || tt.why == "" != why.IsZero() || !strings.Contains(why.String(), tt.why) {
			t.Errorf("%s: %+v, %v, %q", what, asks.PublishRequest, ok, why.String())
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
	log    bytes.Buffer // read while no round runs
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
		Log:     slog.New(slog.NewTextHandler(&d.log, nil)),
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
	asks, gone := "container web (nginx:1 "+short+") asks for notes at 8080 as Notes", "container web (nginx:1 "+short+") with notes is gone"
	another := strings.Replace(asks, short, id(7)[:12], 1)
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
		{"of another image", func() { f.says(t, listed(3, with("ImageID", "sha256:"+id(7)))) }, []string{another, gone}},
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
	f.says(t, listed(4))
	d.log.Reset()
	for _, code := range []agentapi.Code{agentapi.CodeTooMany, agentapi.CodeConflict, ""} {
		if d.refuse = nil; code != "" {
			d.refuse = agentapi.Errorf(code, "You have another app of this name.")
		}
		if told := d.round(t); !slices.Contains(told, asks) {
			t.Errorf("it was refused, and now: %q", told)
		}
		said := ""
		if trouble := d.Trouble(); trouble != nil {
			said = trouble.Words.String()
		}
		if code != "" && said != "The container web has no address. You have another app of this name." || code == "" && said != "" {
			t.Errorf("the owner reads %q", said)
		}
	}
	if lines := strings.Count(d.log.String(), "\n"); lines != 1 {
		t.Errorf("it was refused twice for one reason, and the log has %d lines:\n%s", lines, d.log.String())
	}
	if told := d.round(t); len(told) > 0 {
		t.Errorf("it has its address, and now: %q", told)
	}
}

// The owner is told why no container asks, and that it is over.
func TestWhatIsWrongIsTold(t *testing.T) {
	t.Parallel()
	f := engine(t, nil)
	d := open(t, f)
	socket := f.socket
	forbidden := filepath.Join(filepath.Dir(socket), "other")
	programs.Must(t, os.WriteFile(forbidden, nil, 0o600))
	for _, step := range []struct {
		what string
		do   func()
		says string
		away bool
	}{
		{"nothing is", func() {}, "", false},
		{"no socket", func() { f.socket = socket + "s" }, "There is no container engine at " + socket + "s.", true},
		{"another file", func() { f.socket = forbidden }, "The container engine at " + forbidden + " cannot be asked: ", true},
		{"no engine", func() { f.socket = socket; f.list.Store("no") }, "The container engine at " + socket + " cannot be asked: ", true},
		{"a short name", func() { f.says(t, listed(1, label("porchlight.name", "notes"))) }, "The container web has no address. Its label porchlight.name counts as the whole address alone, like notes.maya.example:", false},
		{"the whole one", func() { f.says(t, listed(1)) }, "", false},
	} {
		step.do()
		d.round(t)
		switch trouble := d.Trouble(); {
		case trouble == nil != (step.says == ""):
			t.Errorf("%s: %+v", step.what, trouble)
		case trouble != nil && (trouble.Away != step.away || !strings.HasPrefix(trouble.Words.String(), step.says)):
			t.Errorf("%s: %v %q", step.what, trouble.Away, trouble.Words)
		}
	}
	if said := away("/s", fmt.Errorf("asked: %w", context.DeadlineExceeded)).String(); said != "The container engine at /s did not answer within 5 seconds." {
		t.Errorf("one that hangs: %q", said)
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
	if told := d.round(t); !slices.Equal(told, []string{"container web (nginx:1 " + short + ") asks for notes at 8080 as Notes"}) {
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
	for address, asks := range map[string]string{
		"127.0.0.1": "",                     // that cannot be, so neither is believed
		"::":        "container web (nginx", // is not as exact as 127.0.0.1, where the other is
		"::1":       "container web (nginx",
		"0.0.0.0":   "container web (nginx",
	} {
		clear(d.holder)
		f.says(t)
		d.round(t)
		f.says(t, listed(3, mallet, at(8080, address)), listed(1))
		if told := strings.Join(d.round(t), "\n"); !strings.HasPrefix(told, asks) || strings.Contains(told, "asks") != (asks != "") || strings.Contains(told, "mallet") {
			t.Errorf("another at port 8080 of %s: %q", address, told)
		}
	}
}

package desktop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"porchlight/agent/agentapi"
)

// step feeds one snapshot and returns what was told, as "+key" and "-key".
func step(a *announcer, s agentapi.OwnerState) []string {
	show, drop := a.next(s)
	var out []string
	for _, n := range show {
		out = append(out, "+"+n.key)
	}
	for _, k := range drop {
		out = append(out, "-"+k)
	}
	return out
}

func stateOf(apps ...agentapi.OwnerApp) agentapi.OwnerState {
	return agentapi.OwnerState{Account: account(), Apps: apps}
}

func TestRequestNoteWording(t *testing.T) {
	t.Parallel()
	show, _ := newAnnouncer(0, time.Now).next(stateOf(pending("paperless", "Paperless", 8010)))
	if len(show) != 1 {
		t.Fatalf("%d notes", len(show))
	}
	n := show[0]
	if n.title != "Paperless wants an address" || n.body != "paperless.maya.localhost:8443, port 8010: python3, run by maya. Only you could open it." {
		t.Errorf("%q / %q", n.title, n.body)
	}
	if len(n.buttons) != 2 || n.buttons[0].text != "Approve" || n.buttons[0].do.seen.LocalPort != 8010 || n.buttons[1].text != "Deny" || n.click.verb != doShow {
		t.Errorf("buttons %+v, click %+v", n.buttons, n.click)
	}
}

func TestRequestsAreToldOnce(t *testing.T) {
	t.Parallel()
	now := noon
	a := newAnnouncer(0, func() time.Time { return now })
	p := pending("paperless", "Paperless", 8010)
	moved := p
	moved.LocalPort = 9999
	quiet := pending("quiet", "Quiet", 1)
	quiet.Quiet = true

	for i, c := range []struct {
		s    agentapi.OwnerState
		wait time.Duration
		want []string
	}{
		{stateOf(p, quiet, live("notes", "Notes", 3000)), 0, []string{"+request-paperless"}},
		{stateOf(p, quiet), 0, nil},
		{stateOf(moved), 0, []string{"+request-paperless"}}, // what is asked for changed: replaced
		{stateOf(), 0, []string{"-request-paperless"}},      // decided elsewhere, or withdrawn
		{stateOf(p), time.Second, nil},                      // asks again at once: no second note
		{stateOf(), 0, nil},
		{stateOf(p), askedAgain, []string{"+request-paperless"}},
	} {
		now = now.Add(c.wait)
		if got := step(a, c.s); !slices.Equal(got, c.want) {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
}

func TestManyRequestsBecomeOneNote(t *testing.T) {
	t.Parallel()
	a := newAnnouncer(0, func() time.Time { return noon })
	var apps []agentapi.OwnerApp
	for i := range 12 {
		apps = append(apps, pending(fmt.Sprintf("a%02d", i), fmt.Sprintf("A %02d", i), 7000+i))
	}
	steps := []struct {
		n    int
		want []string
	}{
		{2, []string{"+request-a00", "+request-a01"}},
		{12, []string{"+requests", "-request-a00", "-request-a01"}},
		{12, nil},
		{11, []string{"+requests"}}, // the count on it is kept right
		{3, []string{"-requests"}},
		{0, nil},
	}
	for i, c := range steps {
		if got := step(a, stateOf(apps[:c.n]...)); !slices.Equal(got, c.want) {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
	show, _ := newAnnouncer(0, time.Now).next(stateOf(apps...))
	if len(show) != 1 || show[0].title != "12 apps want an address" || show[0].body != "A 00, A 01, A 02 and 9 more." {
		t.Errorf("%+v", show)
	}
}

// A program that asks under ever new names must not grow what is remembered.
func TestAnnouncerForgets(t *testing.T) {
	t.Parallel()
	now := noon
	a := newAnnouncer(0, func() time.Time { return now })
	for i := range 1000 {
		a.next(stateOf(pending(fmt.Sprintf("n%d", i), "N", 1)))
		now = now.Add(askedAgain)
	}
	a.next(stateOf())
	if len(a.told) > 1 {
		t.Errorf("remembers %d requests that are gone", len(a.told))
	}
}

func TestNoticesAreToldOnce(t *testing.T) {
	t.Parallel()
	s := stateOf(live("notes", "Diary", 3000))
	add := func(ids ...uint64) {
		for _, id := range ids {
			s.Notices = append(s.Notices, agentapi.Notice{ID: id, Kind: "renamed", App: "notes", Text: fmt.Sprintf("Text %d.", id)})
		}
	}
	add(4, 6, 5)
	a := newAnnouncer(4, time.Now)
	show, _ := a.next(s)
	want := []note{
		{key: "notice-5", title: "Diary", body: "Text 5.", click: action{verb: doShow}},
		{key: "notice-6", title: "Diary", body: "Text 6.", click: action{verb: doShow}},
	}
	if diff := cmp.Diff(want, show, cmp.AllowUnexported(note{}, action{}, seen{}, button{})); diff != "" {
		t.Error(diff)
	}
	if got := step(a, s); got != nil {
		t.Errorf("told again: %v", got)
	}
	if a.lastNotice != 6 {
		t.Errorf("remembers %d", a.lastNotice)
	}
	add(7, 8, 9, 10)
	if got := step(a, s); !slices.Equal(got, []string{"+notices"}) {
		t.Errorf("four at once: %v", got)
	}
}

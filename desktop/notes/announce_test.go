package notes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

func loud() []string { return nil }

// step feeds one snapshot and returns what was said.
func step(a *notes.Announcer, s agentapi.OwnerState) []string {
	return said(a.Next(s, loud))
}

// said is what is told and what is taken back, as "+key" and "-key".
func said(c notes.Changes) []string {
	var out []string
	for _, n := range c.Show {
		out = append(out, "+"+n.Key)
	}
	for _, k := range c.Drop {
		out = append(out, "-"+k)
	}
	return out
}

func TestRequestNoteWording(t *testing.T) {
	t.Parallel()
	show := notes.NewAnnouncer(notes.Told{}, time.Now).Next(owner.State(owner.Pending("paperless", "Paperless", 8010)), loud).Show
	if len(show) != 1 {
		t.Fatalf("%d notes", len(show))
	}
	n := show[0]
	if n.Title != "Paperless wants an address" || n.Body != "paperless.maya.localhost:8443, port 8010: python3, run by maya. Then only you can open it." {
		t.Errorf("%q / %q", n.Title, n.Body)
	}
	// What a button does is pinned as well as what it says.
	asked := owner.Pending("paperless", "Paperless", 8010)
	if len(n.Buttons) != 3 || n.Buttons[0] != (notes.Button{Text: "Approve", Do: verbs.ApproveOf(asked)}) || n.Buttons[1] != (notes.Button{Text: "For today", Do: verbs.TodayOf(asked)}) ||
		n.Buttons[2] != (notes.Button{Text: "Deny", Do: verbs.Action{Verb: verbs.Deny, Name: "paperless"}}) || n.Click.Verb != verbs.Show {
		t.Errorf("buttons %+v, click %+v", n.Buttons, n.Click)
	}
}

func TestRequestsAreToldOnce(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	p := owner.Pending("paperless", "Paperless", 8010)
	moved := p
	moved.LocalPort = 9999
	quiet := owner.Pending("quiet", "Quiet", 1)
	quiet.Quiet = true

	for i, c := range []struct {
		s    agentapi.OwnerState
		wait time.Duration
		want []string
	}{
		{owner.State(p, quiet, owner.Live("notes", "Notes", 3000)), 0, []string{"+request-paperless"}},
		{owner.State(p, quiet), 0, nil},
		{owner.State(moved), 0, []string{"+request-paperless"}}, // what is asked for changed: replaced
		{owner.State(), 0, []string{"-request-paperless"}},      // decided elsewhere, or withdrawn
		{owner.State(p), time.Second, nil},                      // asks again at once: no second note
		{owner.State(), 0, nil},
		{owner.State(p), time.Minute, []string{"+request-paperless"}},
	} {
		now = now.Add(c.wait)
		if got := step(a, c.s); !slices.Equal(got, c.want) {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
}

func TestManyRequestsBecomeOneNote(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	var apps []agentapi.OwnerApp
	for i := range 300 {
		apps = append(apps, owner.Pending(fmt.Sprintf("a%03d", i), fmt.Sprintf("A %03d", i), 7000+i))
	}
	for i, c := range []struct {
		n    int
		wait time.Duration
		want []string
	}{
		{2, 0, []string{"+request-a000", "+request-a001"}},
		{12, 0, []string{"+requests", "-request-a000", "-request-a001"}},
		{12, 0, nil},
		{40, 0, nil}, // the count on it is kept right, not by the second
		{300, 3*time.Second - 1, nil},
		{300, 1, []string{"+requests"}},
		{3, 0, []string{"-requests"}},
		{0, 0, nil},
	} {
		now = now.Add(c.wait)
		if got := step(a, owner.State(apps[:c.n]...)); !slices.Equal(got, c.want) {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
	all := notes.NewAnnouncer(notes.Told{}, time.Now).Next(owner.State(apps...), loud)
	if len(all.Show) != 1 || all.Show[0].Title != "300 apps want an address" || all.Show[0].Body != "A 000, A 001, A 002 and 297 more." {
		t.Errorf("%+v", all.Show)
	}
}

// While the count is behind, the announcer asks to look again in time.
func TestTheCountIsPutRightLater(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	var apps []agentapi.OwnerApp
	for i := range 20 {
		apps = append(apps, owner.Pending(fmt.Sprintf("a%d", i), "A", 7000+i))
	}
	a.Next(owner.State(apps[:10]...), loud)
	c := a.Next(owner.State(apps...), loud)
	if len(c.Show) != 0 || c.Again != 3*time.Second {
		t.Fatalf("%+v", c)
	}
	now = now.Add(c.Again)
	if c = a.Next(owner.State(apps...), loud); len(c.Show) != 1 || c.Show[0].Title != "20 apps want an address" || c.Again != 0 {
		t.Errorf("%+v", c)
	}
}

// A program that asks, withdraws, and asks under another name, for ever.
func TestRequestsThatComeAndGo(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := notes.NewAnnouncer(notes.Told{}, func() time.Time { return now })
	single, flood := 0, 0
	for i := range 600 { // five minutes
		for _, n := range a.Next(owner.State(owner.Pending(fmt.Sprintf("n%d", i), "N", 1)), loud).Show {
			if n.Key == "requests" {
				flood++
			} else {
				single++
			}
		}
		now = now.Add(250 * time.Millisecond)
		a.Next(owner.State(), loud)
		now = now.Add(250 * time.Millisecond)
	}
	if single > 5*6 || single < 6 || flood < 1 || flood > 5 {
		t.Errorf("in five minutes %d requests were told one by one, and %d times that they keep coming", single, flood)
	}
	// Once there is peace, the note about them goes away.
	now = now.Add(time.Minute)
	if c := a.Next(owner.State(), loud); !slices.Contains(c.Drop, "requests") || c.Again != 0 {
		t.Errorf("%+v", c)
	}
}

package desktop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

func loud() quiet { return nil }

// step feeds one snapshot and returns what was said.
func step(a *announcer, s agentapi.OwnerState) []string {
	return said(a.next(s, loud))
}

// said is what is told and what is taken back, as "+key" and "-key".
func said(c changes) []string {
	var out []string
	for _, n := range c.show {
		out = append(out, "+"+n.key)
	}
	for _, k := range c.drop {
		out = append(out, "-"+k)
	}
	return out
}

func TestRequestNoteWording(t *testing.T) {
	t.Parallel()
	show := newAnnouncer(told{}, time.Now).next(owner.State(owner.Pending("paperless", "Paperless", 8010)), loud).show
	if len(show) != 1 {
		t.Fatalf("%d notes", len(show))
	}
	n := show[0]
	if n.title != "Paperless wants an address" || n.body != "paperless.maya.localhost:8443, port 8010: python3, run by maya. Only you could open it." {
		t.Errorf("%q / %q", n.title, n.body)
	}
	// What a button does is pinned as well as what it says.
	if len(n.buttons) != 2 || n.buttons[0] != (button{"Approve", verbs.ApproveOf(owner.Pending("paperless", "Paperless", 8010))}) ||
		n.buttons[1] != (button{"Deny", verbs.Action{Verb: verbs.Deny, Name: "paperless"}}) || n.click.Verb != verbs.Show {
		t.Errorf("buttons %+v, click %+v", n.buttons, n.click)
	}
}

func TestRequestsAreToldOnce(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := newAnnouncer(told{}, func() time.Time { return now })
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
		{owner.State(p), askedAgain, []string{"+request-paperless"}},
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
	a := newAnnouncer(told{}, func() time.Time { return now })
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
		{300, recount - 1, nil},
		{300, 1, []string{"+requests"}},
		{3, 0, []string{"-requests"}},
		{0, 0, nil},
	} {
		now = now.Add(c.wait)
		if got := step(a, owner.State(apps[:c.n]...)); !slices.Equal(got, c.want) {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
	all := newAnnouncer(told{}, time.Now).next(owner.State(apps...), loud)
	if len(all.show) != 1 || all.show[0].title != "300 apps want an address" || all.show[0].body != "A 000, A 001, A 002 and 297 more." {
		t.Errorf("%+v", all.show)
	}
}

// While the count is behind, the announcer asks to look again in time.
func TestTheCountIsPutRightLater(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := newAnnouncer(told{}, func() time.Time { return now })
	var apps []agentapi.OwnerApp
	for i := range 20 {
		apps = append(apps, owner.Pending(fmt.Sprintf("a%d", i), "A", 7000+i))
	}
	a.next(owner.State(apps[:10]...), loud)
	c := a.next(owner.State(apps...), loud)
	if len(c.show) != 0 || c.again != recount {
		t.Fatalf("%+v", c)
	}
	now = now.Add(c.again)
	if c = a.next(owner.State(apps...), loud); len(c.show) != 1 || c.show[0].title != "20 apps want an address" || c.again != 0 {
		t.Errorf("%+v", c)
	}
}

// A program that asks, withdraws, and asks under another name, for ever.
func TestRequestsThatComeAndGo(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := newAnnouncer(told{}, func() time.Time { return now })
	single, flood := 0, 0
	for i := range 600 { // five minutes
		for _, n := range a.next(owner.State(owner.Pending(fmt.Sprintf("n%d", i), "N", 1)), loud).show {
			if n.key == keyRequests {
				flood++
			} else {
				single++
			}
		}
		now = now.Add(250 * time.Millisecond)
		a.next(owner.State(), loud)
		now = now.Add(250 * time.Millisecond)
	}
	if single > 5*maxAMinute || single < maxAMinute || flood < 1 || flood > 5 {
		t.Errorf("in five minutes %d requests were told one by one, and %d times that they keep coming", single, flood)
	}
	// Once there is peace, the note about them goes away.
	now = now.Add(time.Minute)
	if c := a.next(owner.State(), loud); !slices.Contains(c.drop, keyRequests) || c.again != 0 {
		t.Errorf("%+v", c)
	}
}

// A program that asks under ever new names must not grow what is remembered.
func TestAnnouncerForgets(t *testing.T) {
	t.Parallel()
	now := owner.Noon
	a := newAnnouncer(told{}, func() time.Time { return now })
	for i := range 1000 {
		a.next(owner.State(owner.Pending(fmt.Sprintf("n%d", i), "N", 1)), loud)
		now = now.Add(askedAgain)
	}
	a.next(owner.State(), loud)
	if len(a.requested) > 1 {
		t.Errorf("remembers %d requests that are gone", len(a.requested))
	}
}

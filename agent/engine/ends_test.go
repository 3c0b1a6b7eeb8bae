package engine

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// computerClocks are those of a computer whose clock can be set. Its time passes by itself
// under synctest, and else by pass.
type computerClocks struct {
	time   time.Time     // what a good clock shows; zero: time.Now
	set    time.Duration // by how much this one was set ahead
	booted time.Time
}

func newComputerClocks() *computerClocks {
	at := time.Date(2026, 11, 27, 14, 5, 0, 0, time.UTC)
	return &computerClocks{time: at, booted: at.Add(-time.Hour)}
}

func (c *computerClocks) good() time.Time {
	if c.time.IsZero() {
		return time.Now().Round(0)
	}
	return c.time
}
func (c *computerClocks) pass(d time.Duration)     { c.time = c.time.Add(d) }
func (c *computerClocks) now() time.Time           { return c.good().Add(c.set) }
func (c *computerClocks) sinceBoot() time.Duration { return c.good().Sub(c.booted) }

// approvedUntil has notes live until an end.
func (h *host) approvedUntil(t *testing.T, until string) {
	t.Helper()
	programs.Must(t,
		second(h.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000})),
		second(h.apps.Approve(t.Context(), "notes", agentapi.Approval{Until: until})),
	)
}

// there says whether notes is approved.
func (h *host) there() bool {
	app, ok := h.apps.Lookup("notes")
	return ok && app.ID != ""
}

// An approval ends at its moment, without anybody asking, and as by revoke: what is open
// is closed, GET is 404 and the next POST waits for the owner.
func TestAnApprovalEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := openHostWith(t, &computerClocks{booted: time.Now().Add(-time.Hour)})
		var lines []agentapi.Activity
		h.cfg.Happened = func(line agentapi.Activity) { lines = append(lines, line) }
		programs.Run(t, h.apps.AwaitEnds)
		synctest.Wait()
		h.approvedUntil(t, "90s")
		app, _ := h.apps.Lookup("notes")
		end := h.apps.OwnerApps(nil)[0].Until
		if want := time.Now().Add(90 * time.Second); end == nil || !end.Equal(want) {
			t.Fatalf("it ends at %v, want %v", end, want)
		}
		time.Sleep(90*time.Second - time.Millisecond)
		synctest.Wait()
		if !h.there() { // h.gone is the other goroutine's until it ends
			t.Fatal("it ended too early")
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if !slices.Equal(h.gone, []string{app.ID}) {
			t.Errorf("closed %q, want what is open to %s", h.gone, app.ID)
		}
		if _, err := h.apps.Get("notes"); agentapi.CodeOf(err) != agentapi.CodeNotFound {
			t.Errorf("GET after the end: %v", err)
		}
		last := lines[len(lines)-1]
		if last.Kind != agentapi.ActivityEnded || last.Owner || last.App != "Notes" || last.Closed != 3 || !last.Until.Equal(*end) {
			t.Errorf("written down: %+v", last)
		}
		told := h.apps.Notices()
		if len(told) != 1 || told[0].Kind != agentapi.NoticeEnded || told[0].App != "notes" || !strings.Contains(told[0].Text, "Notes was approved until ") {
			t.Errorf("told %+v", told)
		}
		pub, err := h.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000})
		if err != nil || pub.Status != agentapi.StatusPending {
			t.Errorf("the next POST: %+v, %v", pub, err)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if app, _ := h.apps.Lookup("notes"); app.Status != agentapi.StatusPending || len(h.apps.Notices()) != 1 {
			t.Errorf("hours later: %+v, told %+v", app, h.apps.Notices())
		}
	})
}

// What ended while the computer slept, and timers with it, ends as it wakes up.
func TestAnApprovalEndsAsTheComputerWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clocks := &computerClocks{booted: time.Now().Add(-time.Hour)}
		h := openHostWith(t, clocks)
		programs.Run(t, h.apps.AwaitEnds)
		h.approvedUntil(t, "3h")
		synctest.Wait()
		clocks.set, clocks.booted = 4*time.Hour, clocks.booted.Add(-4*time.Hour)
		h.apps.Woke()
		synctest.Wait()
		if h.there() || len(h.gone) != 1 {
			t.Errorf("there: %v, closed %q", h.there(), h.gone)
		}
	})
}

// However the clocks and the agent are treated, an approval for three hours lasts no longer.
func TestAnApprovalCannotBeStretched(t *testing.T) {
	t.Parallel()
	const given = 3 * time.Hour
	day := 24 * time.Hour
	for what, tt := range map[string]struct {
		before func(*host, *computerClocks) // an hour after the approval
		after  time.Duration                // then passes
		ended  bool
	}{
		"nothing":                        {func(*host, *computerClocks) {}, 2*time.Hour - time.Second, false},
		"nothing, and its time":          {func(*host, *computerClocks) {}, 2 * time.Hour, true},
		"clock set back":                 {func(_ *host, c *computerClocks) { c.set = -day }, 2 * time.Hour, true},
		"clock set back, before its end": {func(_ *host, c *computerClocks) { c.set = -day }, 2*time.Hour - time.Second, false},
		"clock set ahead past its end":   {func(_ *host, c *computerClocks) { c.set = 2 * time.Hour }, 0, true},
		"set ahead and back":             {func(h *host, c *computerClocks) { c.set = time.Hour; h.apps.EndDue(t.Context()); c.set = 0 }, 2*time.Hour - time.Second, false},
		"restart":                        {func(h *host, _ *computerClocks) { h.reopen() }, 2*time.Hour - time.Second, false},
		"restart after its end": {func(h *host, c *computerClocks) {
			h.close()
			c.pass(2 * time.Hour)
			h.open()
		}, 0, true},
		"off, and the clock set back": {func(h *host, c *computerClocks) {
			h.close()
			c.pass(2 * time.Hour)
			c.set = -day
			h.open()
		}, 0, true},
		"started anew, and the clock set back": {func(h *host, c *computerClocks) {
			h.apps.EndDue(t.Context()) // keeps the count, as it does every minute
			h.close()
			c.set, c.booted = -day, c.time
			c.pass(time.Hour)
			h.open()
		}, time.Hour, true},
		"killed at once, and the clock set back": {func(h *host, c *computerClocks) {
			h.close()
			c.set = -day
			h.open()
		}, 2 * time.Hour, true},
		"started anew": {func(h *host, c *computerClocks) {
			h.close()
			c.booted = c.time
			h.open()
		}, 2*time.Hour - time.Second, false},
		"started anew, and the clock set back later": {func(h *host, c *computerClocks) {
			h.close()
			c.pass(time.Hour)
			c.booted = c.time
			h.open()
			c.set = -day
		}, time.Hour, true},
		"started anew, after its end": {func(h *host, c *computerClocks) {
			h.close()
			c.pass(2 * time.Hour)
			c.booted = c.time
			h.open()
		}, 0, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			clocks := newComputerClocks()
			h := openHostWith(t, clocks)
			h.approvedUntil(t, "3h")
			clocks.pass(given - 2*time.Hour)
			tt.before(h, clocks)
			clocks.pass(tt.after)
			h.apps.EndDue(t.Context())
			if h.there() == tt.ended {
				t.Errorf("ended: %v, want %v", !h.there(), tt.ended)
			}
		})
	}
}

// An end that people type for as good as never is no end in the past.
func TestAnApprovalEndsInAThousandYears(t *testing.T) {
	t.Parallel()
	clocks := newComputerClocks()
	h := openHostWith(t, clocks)
	clocks.pass(time.Minute)
	h.approvedUntil(t, "9999-12-30")
	if h.apps.EndDue(t.Context()); !h.there() {
		t.Error("it ended at once")
	}
}

// An end is given, moved and taken away by approving; an approval without a word of it
// keeps the one there is.
func TestAnEndIsChangedByApproving(t *testing.T) {
	t.Parallel()
	clocks := newComputerClocks()
	h := openHostWith(t, clocks)
	h.approvedUntil(t, "3h")
	ends := func() string {
		if end := h.apps.OwnerApps(nil)[0].Until; end != nil {
			return end.Format("15:04")
		}
		return "never"
	}
	id := func() string { app, _ := h.apps.Lookup("notes"); return app.ID }
	first := id()
	stop := func() { programs.Got(h.apps.Unpublish(t.Context(), Caller{}, "notes"))(t) }
	for _, tt := range []struct {
		until, want string
		before      func()
	}{
		{"", "17:05", nil},
		{"5h", "19:05", nil},
		{"1h", "15:05", nil},
		{"never", "never", nil},
		{"", "never", nil},
		{"2026-11-27T22:00:00Z", "22:00", nil},
		{"1h", "15:05", stop},
		{"never", "never", nil},
		{"2h", "16:05", func() { h.live(t, "notes", "Notes", 8000) }},
	} {
		if tt.before != nil {
			tt.before()
		}
		_, err := h.apps.Approve(t.Context(), "notes", agentapi.Approval{Until: tt.until})
		if err != nil || ends() != tt.want || id() != first {
			t.Errorf("until %q: %v, ends %s (want %s), id kept: %v", tt.until, err, ends(), tt.want, id() == first)
		}
	}
	for _, until := range []string{"2026-11-27T14:05:00Z", "2020-01-01", "soon"} {
		if _, err := h.apps.Approve(t.Context(), "notes", agentapi.Approval{Until: until}); agentapi.CodeOf(err) != agentapi.CodeInvalid || ends() != "16:05" {
			t.Errorf("until %q: %v, ends %s", until, err, ends())
		}
	}
	clocks.pass(time.Hour)
	programs.Got(h.apps.Approve(t.Context(), "notes", agentapi.Approval{Until: "2h"}))(t)
	clocks.pass(time.Hour)
	if h.apps.EndDue(t.Context()); !h.there() {
		t.Error("it came to the end it had before it was prolonged")
	}
	looks := func() time.Duration { return h.apps.EndDue(t.Context()).Round(time.Second) }
	clocks.pass(time.Hour - 30*time.Second)
	if next := looks(); next != 30*time.Second {
		t.Errorf("half a minute before the end it looks again in %v", next)
	}
	programs.Got(h.apps.Approve(t.Context(), "notes", agentapi.Approval{Until: "2h"}))(t)
	if next := looks(); next != time.Minute {
		t.Errorf("while an approval ends, the count is kept every %v", next)
	}
	programs.Got(h.apps.Approve(t.Context(), "notes", agentapi.Approval{Until: "never"}))(t)
	if next := looks(); next != time.Hour {
		t.Errorf("while none ends, it looks every %v", next)
	}
}

// The owner is told of an end that was given at a terminal, as of an approval there.
func TestAnEndGivenAtATerminalIsTold(t *testing.T) {
	t.Parallel()
	h := openHostWith(t, newComputerClocks())
	h.approvedUntil(t, "")
	programs.Got(h.apps.Approve(t.Context(), "notes", agentapi.Approval{Terminal: true}))(t)
	if told := h.apps.Notices(); len(told) != 0 {
		t.Errorf("told of nothing: %+v", told)
	}
	programs.Got(h.apps.Approve(t.Context(), "notes", agentapi.Approval{Until: "3h", Terminal: true}))(t)
	if told := h.apps.Notices(); len(told) != 1 || told[0].Kind != agentapi.NoticeApproved || !strings.HasPrefix(told[0].Text, "Notes was approved anew at a terminal. It is approved until ") {
		t.Errorf("told %+v", told)
	}
}

// An end needs no disk: where nothing can be written the app is gone all the same, and
// after a restart, too.
func TestAnApprovalEndsWithoutADisk(t *testing.T) {
	t.Parallel()
	clocks := newComputerClocks()
	h := openHostWith(t, clocks)
	h.approvedUntil(t, "3h")
	clocks.pass(3 * time.Hour)
	h.close()
	h.apps.EndDue(t.Context())
	if h.there() || len(h.gone) != 1 {
		t.Errorf("there: %v, closed %q", h.there(), h.gone)
	}
	h.open()
	if h.apps.EndDue(t.Context()); h.there() {
		t.Error("it is back after a restart")
	}
}

package store

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
	"porchlight/test/programs"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (s *Store) add(t *testing.T, lines ...agentapi.Activity) {
	t.Helper()
	programs.Must(t, s.AddActivity(lines...))
}

// Neither visits nor decisions push the other out of its share, and each uses what the
// other leaves free.
func TestSharesOfActivity(t *testing.T) {
	t.Parallel()
	const most, decisionsOwn = 1000, 200
	s := openDir(t, t.TempDir())
	s.activity.most = most
	many := func(n int, kind string) {
		lines := make([]agentapi.Activity, n)
		for i := range lines {
			lines[i] = agentapi.Activity{At: noon, App: fmt.Sprint(i), Kind: kind, Owner: kind != agentapi.ActivityOpened}
		}
		s.add(t, lines...)
	}
	count := func(group string) int {
		t.Helper()
		lines, _, err := s.ActivityPage(ActivityQuery{Limit: 2 * most, Group: group})
		programs.Must(t, err)
		return len(lines)
	}
	want := func(visits, decisions int) {
		t.Helper()
		if v, d := count(agentapi.GroupVisits), count(agentapi.GroupDecisions); v != visits || d != decisions {
			t.Errorf("%d visits and %d decisions, want %d and %d", v, d, visits, decisions)
		}
	}
	many(50, agentapi.ActivityApproved)
	many(most+7, agentapi.ActivityOpened)
	want(most-50, 50)
	many(300, agentapi.ActivityPaused)
	want(most-decisionsOwn, decisionsOwn)
	many(100, agentapi.ActivityOpened)
	want(most-decisionsOwn, decisionsOwn)
	programs.Must(t, s.ClearActivity())
	want(0, 0)
	many(400, agentapi.ActivityPaused)
	many(10, agentapi.ActivityOpened)
	want(10, 400)
}

// What strangers cause is one line an hour and kind, and what programs and members do
// again and again is counted too; the owner's decisions and all visits stay apart.
func TestActivityIsCounted(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	line := func(minute int, kind, email, app string) agentapi.Activity {
		return agentapi.Activity{At: noon.Add(time.Duration(minute) * time.Minute), Kind: kind, Email: email, App: app, Name: app}
	}
	by := func(l agentapi.Activity, program string) agentapi.Activity { l.By = program; return l }
	owner := func(l agentapi.Activity) agentapi.Activity { l.Owner = true; return l }
	s.add(t,
		line(0, agentapi.ActivityKnocked, "a@x", "notes"), line(1, agentapi.ActivityTurnedAway, "a@x", "notes"), line(2, agentapi.ActivityKnocked, "a@x", "wiki"),
		line(3, agentapi.ActivityTurnedAway, "a@x", "notes"), line(59, agentapi.ActivityTurnedAway, "b@x", "notes"), line(60, agentapi.ActivityTurnedAway, "b@x", "notes"),
		by(line(61, agentapi.ActivityGiven, "bob@x", "notes"), "wiki"), by(line(62, agentapi.ActivityWithdrawn, "bob@x", "notes"), "wiki"),
		by(line(63, agentapi.ActivityGiven, "bob@x", "notes"), "wiki"), by(line(63, agentapi.ActivityGiven, "bob@x", "notes"), "other"),
		owner(line(64, agentapi.ActivityWithdrawn, "bob@x", "notes")), by(line(65, agentapi.ActivityGiven, "bob@x", "notes"), "wiki"),
		owner(line(66, agentapi.ActivityWithdrawn, "bob@x", "notes")), owner(line(66, agentapi.ActivityWithdrawn, "bob@x", "notes")),
	)
	want := []string{
		"withdrawn bob@x notes 0", "withdrawn bob@x notes 0", "granted bob@x notes 0", "withdrawn bob@x notes 0",
		"granted bob@x notes 0", "withdrawn bob@x notes 0", "granted bob@x notes 2",
		"turned-away b@x notes 0", "turned-away  notes 3", "knocked a@x  2",
	}
	lines := programs.Got(s.Activity(100))(t)
	for i, l := range lines {
		if got := fmt.Sprint(l.Kind, " ", l.Email, " ", l.App, " ", l.Count); i >= len(want) || got != want[i] {
			t.Errorf("line %d: %q", i, got)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d", len(lines), len(want))
	}
}

// Lines of versions before there were shares come with their numbers and their times.
func TestOlderActivityIsShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	kinds := []string{agentapi.ActivityOpened, agentapi.ActivityInvited, agentapi.ActivityClient, agentapi.ActivityRemoved}
	err := s.update(func(tx *boltfile.Tx) error {
		b := tx.Bucket([]byte("activity"))
		for i, kind := range kinds {
			raw, err := json.Marshal(map[string]any{"at": noon.Add(time.Duration(i) * time.Second), "email": "bob@x", "app": "Notes", "kind": kind})
			if err != nil {
				return err
			}
			id, err := b.NextSequence()
			if err != nil {
				return err
			}
			if err := b.Put(numbered(id), raw); err != nil {
				return err
			}
		}
		if err := tx.DeleteBucket([]byte("activity.decisions")); err != nil {
			return err
		}
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte("3"))
	})
	programs.Must(t, err)
	programs.Must(t, s.Close())
	s = openDir(t, dir)
	lines, err := s.Activity(10)
	if err != nil || len(lines) != 4 {
		t.Fatalf("%+v, %v", lines, err)
	}
	for i, l := range lines {
		if want := kinds[3-i]; l.Kind != want || l.ID != uint64(4-i) || !l.At.Equal(noon.Add(time.Duration(3-i)*time.Second)) || l.Email != "bob@x" {
			t.Errorf("%+v, want %s", l, want)
		}
	}
	if lines, _, err := s.ActivityPage(ActivityQuery{Limit: 10, Group: agentapi.GroupDecisions}); err != nil || len(lines) != 2 {
		t.Errorf("decisions: %+v, %v", lines, err)
	}
}

// A page looks at no more lines than it may, and says where to go on.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	var lines []agentapi.Activity
	for i := range 1000 {
		kind := agentapi.ActivityOpened
		if i%3 == 0 {
			kind = agentapi.ActivityPaused
		}
		lines = append(lines, agentapi.Activity{At: noon, App: fmt.Sprint(i % 100), Kind: kind, Owner: true})
	}
	s.add(t, lines...)
	looked, found, pages := 0, 0, 0
	q := ActivityQuery{Limit: 50, Scan: 70, Keep: func(l agentapi.Activity) bool { looked++; return l.App == "7" }}
	for {
		before := looked
		page, next, err := s.ActivityPage(q)
		if err != nil || looked-before > 70 {
			t.Fatalf("%d lines looked at, %v", looked-before, err)
		}
		found, pages = found+len(page), pages+1
		if q.Before = next; next == 0 {
			break
		}
	}
	if looked != 1000 || found != 10 || pages != 15 {
		t.Errorf("%d of %d lines on %d pages", found, looked, pages)
	}
}

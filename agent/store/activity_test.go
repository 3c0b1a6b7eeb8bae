package store

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
	"porchlight/test/programs"
)

// Lines are bounded in number and age, however the clock jumps, and numbers do
// not return after a clearing.
func TestActivityIsBounded(t *testing.T) {
	t.Parallel()
	const most = 2000
	s := openDir(t, t.TempDir())
	s.activity.most = most
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var batch []agentapi.Activity
	for i := range most + 250 {
		batch = append(batch, agentapi.Activity{At: at.Add(time.Duration(i) * time.Second), App: fmt.Sprint(i), Kind: agentapi.ActivityOpened})
		if len(batch) == 700 || i == most+249 {
			programs.Must(t, s.AddActivity(batch...))
			batch = nil
		}
	}
	lines, err := s.Activity(2 * most)
	if err != nil || len(lines) != most || lines[0].App != fmt.Sprint(most+249) || lines[most-1].App != "250" {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	last := lines[0].At
	programs.Must(t, s.SweepActivity(last.Add(90*24*time.Hour-time.Minute)))
	if lines, err = s.Activity(most); err != nil || len(lines) != 61 {
		t.Errorf("%d lines of the last minute, %v", len(lines), err)
	}
	// A line from the past, when the clock was set back, is kept behind those
	// before it and takes nothing with it.
	programs.Must(t, s.AddActivity(agentapi.Activity{At: at.Add(-time.Hour), App: "back", Kind: agentapi.ActivityOpened}))
	if lines, err = s.Activity(2); err != nil || len(lines) != 2 || lines[0].App != "back" || lines[1].At != last {
		t.Errorf("%+v, %v", lines, err)
	}
	programs.Must(t, s.ClearActivity())
	if lines, err = s.Activity(10); err != nil || len(lines) != 0 {
		t.Errorf("after clearing: %+v, %v", lines, err)
	}
	programs.Must(t, s.AddActivity(agentapi.Activity{At: at, App: "new", Kind: agentapi.ActivityOpened}))
	err = s.view(func(tx *boltfile.Tx) error {
		k, _ := tx.Bucket([]byte("activity")).Cursor().First()
		if n := binary.BigEndian.Uint64(k); n != most+252 {
			t.Errorf("the next number is %d", n)
		}
		return nil
	})
	programs.Must(t, err)
}

// A damaged line is left out and swept; the rest is there.
func TestDamagedActivity(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	programs.Must(t, s.AddActivity(agentapi.Activity{At: at, App: "first", Kind: agentapi.ActivityOpened}, agentapi.Activity{At: at, App: "second", Kind: agentapi.ActivityOpened}))
	err := s.update(func(tx *boltfile.Tx) error {
		return tx.Bucket([]byte("activity")).Put(binary.BigEndian.AppendUint64(nil, 1), []byte("{"))
	})
	programs.Must(t, err)
	for range 2 {
		if lines, err := s.Activity(10); err != nil || len(lines) != 1 || lines[0].App != "second" {
			t.Errorf("%+v, %v", lines, err)
		}
		programs.Must(t, s.SweepActivity(at))
	}
}

// A damaged record that everything is closed keeps the agent from starting: to
// skip it would open everything.
func TestDamagedDarkIsAnError(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	err := s.update(func(tx *boltfile.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("dark.since"), []byte("yesterday"))
	})
	programs.Must(t, err)
	if since, err := s.DarkSince(); err == nil {
		t.Errorf("dark since %v", since)
	}
}

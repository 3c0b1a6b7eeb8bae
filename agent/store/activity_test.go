package store

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"porchlight/agent/agentapi"
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
			if err := s.AddActivity(batch...); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
	lines, err := s.Activity(2 * most)
	if err != nil || len(lines) != most || lines[0].App != fmt.Sprint(most+249) || lines[most-1].App != "250" {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	last := lines[0].At
	if err := s.SweepActivity(last.Add(90*24*time.Hour - time.Minute)); err != nil {
		t.Fatal(err)
	}
	if lines, err = s.Activity(most); err != nil || len(lines) != 61 {
		t.Errorf("%d lines of the last minute, %v", len(lines), err)
	}
	// A line from the past, when the clock was set back, is kept behind those
	// before it and takes nothing with it.
	if err := s.AddActivity(agentapi.Activity{At: at.Add(-time.Hour), App: "back", Kind: agentapi.ActivityOpened}); err != nil {
		t.Fatal(err)
	}
	if lines, err = s.Activity(2); err != nil || len(lines) != 2 || lines[0].App != "back" || lines[1].At != last {
		t.Errorf("%+v, %v", lines, err)
	}
	if err := s.ClearActivity(); err != nil {
		t.Fatal(err)
	}
	if lines, err = s.Activity(10); err != nil || len(lines) != 0 {
		t.Errorf("after clearing: %+v, %v", lines, err)
	}
	if err := s.AddActivity(agentapi.Activity{At: at, App: "new", Kind: agentapi.ActivityOpened}); err != nil {
		t.Fatal(err)
	}
	err = s.view(func(tx *bolt.Tx) error {
		k, _ := tx.Bucket(activityBucket).Cursor().First()
		if n := binary.BigEndian.Uint64(k); n != most+252 {
			t.Errorf("the next number is %d", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A damaged line is left out and swept; the rest is there.
func TestDamagedActivity(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	if err := s.AddActivity(agentapi.Activity{At: at, App: "first", Kind: agentapi.ActivityOpened}, agentapi.Activity{At: at, App: "second", Kind: agentapi.ActivityOpened}); err != nil {
		t.Fatal(err)
	}
	err := s.update(func(tx *bolt.Tx) error {
		return tx.Bucket(activityBucket).Put(binary.BigEndian.AppendUint64(nil, 1), []byte("{"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if lines, err := s.Activity(10); err != nil || len(lines) != 1 || lines[0].App != "second" {
			t.Errorf("%+v, %v", lines, err)
		}
		if err := s.SweepActivity(at); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged record that everything is closed keeps the agent from starting: to
// skip it would open everything.
func TestDamagedDarkIsAnError(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	err := s.update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(darkKey, []byte("yesterday")) })
	if err != nil {
		t.Fatal(err)
	}
	if since, err := s.DarkSince(); err == nil {
		t.Errorf("dark since %v", since)
	}
}

package store

import (
	"testing"
	"time"

	"porchlight/control/controlapi"
)

// TestBecomeComputer: people and sessions belong to one computer at one control
// plane; what the owner decided does not.
func TestBecomeComputer(t *testing.T) {
	t.Parallel()
	for id, stays := range map[string]bool{"c1": true, "c2": false, "": false} {
		s, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		key := SessionKey{1}
		snap := controlapi.Snapshot{Version: "v", Computer: controlapi.Computer{ID: "c1"}}
		if err := s.SaveSnapshot(snap, time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddSession(key, Session{AccountID: "a"}, 1); err != nil {
			t.Fatal(err)
		}
		if err := s.AddDenyRecord(DenyRecord{AccountID: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := s.BecomeComputer(id); err != nil {
			t.Fatal(err)
		}
		_, _, haveSnapshot, err := s.Snapshot()
		if err != nil || haveSnapshot != stays {
			t.Errorf("as %q the snapshot is there: %v, %v", id, haveSnapshot, err)
		}
		if _, ok, err := s.Session(key); err != nil || ok != stays {
			t.Errorf("as %q the session is there: %v, %v", id, ok, err)
		}
		if records, err := s.DenyRecords(); err != nil || len(records) != 1 {
			t.Errorf("as %q the denials are %v, %v", id, records, err)
		}
	}
}

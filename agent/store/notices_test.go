package store

import (
	"fmt"
	"testing"

	"porchlight/agent/agentapi"
)

// told stores a notice about people with a way to undo it.
func told(t *testing.T, s *Store, text string) []agentapi.Notice {
	t.Helper()
	notices, err := s.AddNotice(agentapi.Notice{Kind: agentapi.ActivityInvited, Text: text}, &Undo{Kind: agentapi.ActivityInvited, AccountID: text})
	if err != nil {
		t.Fatal(err)
	}
	return notices
}

// undoable says of which account a notice can be undone, empty for none.
func undoable(t *testing.T, s *Store, id uint64) string {
	t.Helper()
	undo, ok, err := s.UndoOf(id)
	if err != nil || ok != (undo.AccountID != "") {
		t.Fatalf("%+v, %v, %v", undo, ok, err)
	}
	return undo.AccountID
}

// TestNoticesAboutPeopleAreBounded: a program that keeps changing who has what
// pushes out what it was told of before, and nothing about apps.
func TestNoticesAboutPeopleAreBounded(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	change(t, s, AppChange{Name: "notes", Notices: []agentapi.Notice{{Kind: "renamed", App: "notes"}}})
	var notices []agentapi.Notice
	for i := range maxToldOfPeople + 3 {
		notices = told(t, s, fmt.Sprint("account ", i))
	}
	if len(notices) != maxToldOfPeople+1 || notices[0].App != "notes" || notices[1].Text != "account 3" {
		t.Fatalf("%d notices, the first %+v", len(notices), notices[:2])
	}
	for i := range maxToldOfPeople + 3 {
		want := ""
		if i >= 3 {
			want = fmt.Sprint("account ", i)
		}
		if got := undoable(t, s, uint64(i)+2); got != want {
			t.Fatalf("notice %d undoes %q, want %q", i+2, got, want)
		}
	}
	if again := told(t, s, "account 7"); len(again) != len(notices) || undoable(t, s, 9) != "" || undoable(t, s, again[len(again)-1].ID) != "account 7" {
		t.Errorf("told again: %d notices, the last %+v", len(again), again[len(again)-1])
	}
}

// TestUndoGoesWithItsNotice: whatever pushes a notice out, there is no undoing it
// afterwards.
func TestUndoGoesWithItsNotice(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	id := told(t, s, "account")[0].ID
	for i := range MaxNotices {
		if got := undoable(t, s, id); got != "account" {
			t.Fatalf("after %d others it undoes %q", i, got)
		}
		name := fmt.Sprint("app", i)
		change(t, s, AppChange{Name: name, Notices: []agentapi.Notice{{Kind: "renamed", App: name}}})
	}
	if got := undoable(t, s, id); got != "" {
		t.Errorf("it still undoes %q", got)
	}
}

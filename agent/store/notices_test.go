package store

import (
	"fmt"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// told stores a notice about people with a way to undo it.
func told(t *testing.T, s *Store, text string) []agentapi.Notice {
	t.Helper()
	notices, err := s.AddNotice(agentapi.Notice{Kind: agentapi.ActivityInvited, Text: text}, &Undo{Kind: agentapi.ActivityInvited, AccountID: text}, nil)
	programs.Must(t, err)
	return notices
}

// undoable says of which account a notice can be undone, empty for none.
func undoable(t *testing.T, s *Store, id uint64) string {
	t.Helper()
	_, undo, ok, err := s.UndoOf(id)
	if err != nil || ok != (undo.AccountID != "") {
		t.Fatalf("%+v, %v, %v", undo, ok, err)
	}
	return undo.AccountID
}

// saw has the owner see all notices.
func saw(t *testing.T, s *Store, notices []agentapi.Notice) {
	t.Helper()
	programs.Must(t, s.SeeNotices(notices[len(notices)-1].ID))
}

// S9: whatever comes after it, an unseen notice that can be undone stays.
func TestS9UnseenUndosStay(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	for i := range MaxUndos {
		told(t, s, fmt.Sprint("account ", i))
	}
	for i := range maxNotices + 10 {
		name := fmt.Sprint("app", i)
		change(t, s, AppChange{Name: name, Notices: []agentapi.Notice{{Kind: "renamed", App: name}}})
		programs.Got(s.AddNotice(agentapi.Notice{Kind: agentapi.ActivityRemoved, Text: name}, nil, nil))(t)
	}
	for i := range MaxUndos {
		if got := undoable(t, s, uint64(i)+1); got != fmt.Sprint("account ", i) {
			t.Fatalf("notice %d undoes %q", i+1, got)
		}
	}
	if all, err := s.Apps(); err != nil || len(all.Notices) > maxNotices {
		t.Errorf("%d notices, %v", len(all.Notices), err)
	}
}

// S9: what a notice took the place of is undone with it, by either's id.
func TestS9FoldedNotices(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	add := func(u Undo) uint64 {
		t.Helper()
		if id, before, ok, err := s.FoldOf(u); err != nil {
			t.Fatal(err)
		} else if ok {
			u.Join(id, before)
		}
		notices := programs.Got(s.AddNotice(agentapi.Notice{Kind: u.Kind, Text: fmt.Sprint(u)}, &u, nil))(t)
		return notices[len(notices)-1].ID
	}
	bob := Undo{Kind: agentapi.ActivityInvited, AccountID: "bob", Apps: []string{"notes"}, Newcomer: true, Program: "7 python3"}
	first := add(bob)
	bob.Apps, bob.Newcomer = []string{"wiki"}, false
	second := add(bob)
	now, undo, ok, err := s.UndoOf(first)
	if err != nil || !ok || now != second || !undo.Newcomer || undo.Times != 2 || fmt.Sprint(undo.Apps) != "[wiki notes]" {
		t.Errorf("the first is undone by %d, %+v, %v", now, undo, err)
	}
	for what, other := range map[string]Undo{
		"another person":            {Kind: bob.Kind, AccountID: "ben", Program: bob.Program},
		"another process":           {Kind: bob.Kind, AccountID: "bob", Program: "8 python3"},
		"another change":            {Kind: agentapi.ActivityGiven, AccountID: "bob", Program: bob.Program},
		"a process nobody knows":    {Kind: bob.Kind, AccountID: "bob"},
		"another nobody knows, too": {Kind: bob.Kind, AccountID: "bob"},
	} {
		if _, got, _, _ := s.UndoOf(add(other)); got.Times != 0 {
			t.Errorf("%s was told with the first", what)
		}
	}
	programs.Must(t, s.SeeNotices(second))
	if _, got, _, _ := s.UndoOf(add(bob)); got.Times != 0 {
		t.Error("what was seen already was told again")
	}
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
		saw(t, s, notices)
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
	notices := told(t, s, "account")
	saw(t, s, notices)
	id := notices[0].ID
	for i := range maxNotices {
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

// What was taken from several people is one notice, and each can be undone, the newest of
// a bounded many; none of it takes the room of what was given.
func TestOneNoticeOfMany(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	given := told(t, s, "given")[0].ID
	var last uint64
	for i := range 2 * maxUndone {
		var with []uint64
		if i > 0 {
			with = []uint64{last}
		}
		notices, err := s.AddNotice(agentapi.Notice{Kind: agentapi.ActivityWithdrawn, Text: fmt.Sprint(i)},
			&Undo{Kind: agentapi.ActivityWithdrawn, AccountID: fmt.Sprint(i), Apps: []string{"a"}}, with)
		if err != nil || len(notices) != 2 || notices[1].Undo != (i == 0) || MustStay(notices[1], 0) {
			t.Fatalf("%d: %+v, %v", i, notices, err)
		}
		last = notices[1].ID
	}
	if undoable(t, s, given) != "given" || undoable(t, s, last) == "" || undoable(t, s, last-maxUndone+2) == "" || undoable(t, s, last-maxUndone) != "" {
		t.Error("the newest of many cannot be undone, or all can")
	}
}

// Weakness: of two notices that say alike how much was taken from how many, the former
// went with the Undo of whoever was the last of its people.
// Checked: that can be undone after it, too.
func TestAlikeNoticesOfMany(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	var last uint64
	for _, who := range []string{"bob", "carol", "dave", "erin"} {
		text, with := "took Notes from "+who, []uint64(nil)
		if who == "carol" || who == "erin" {
			text, with = "took access away 2 times, from 2 people", []uint64{last}
		}
		notices, err := s.AddNotice(agentapi.Notice{Kind: agentapi.ActivityWithdrawn, Text: text}, &Undo{Kind: agentapi.ActivityWithdrawn, AccountID: who}, with)
		programs.Must(t, err)
		if last = notices[len(notices)-1].ID; who == "carol" {
			saw(t, s, notices)
		}
	}
	for id, who := range []string{"bob", "carol", "dave", "erin"} {
		if got := undoable(t, s, uint64(id+1)); got != who {
			t.Errorf("notice %d undoes %q, want %s", id+1, got, who)
		}
	}
}

package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/internal/boltfile"
	"porchlight/internal/durable"
	"porchlight/test/programs"
)

// TestFirstDatabaseOpens: testdata/first.db was written by the first agent that
// could be used, before there were settings, pauses, activity or anything
// pending. Everything in it is still there, and what came later has its default.
func TestFirstDatabaseOpens(t *testing.T) {
	t.Parallel()
	raw := programs.Got(os.ReadFile(filepath.Join("testdata", "first.db")))(t)
	dir := t.TempDir()
	programs.Must(t, os.WriteFile(filepath.Join(dir, FileName), raw, 0o600))
	s := openDir(t, dir)
	all, err := s.Apps()
	if err != nil || len(all.Apps) != 3 || len(all.Denials) != 1 || all.Denials["nope"].Count != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	for name, status := range map[string]agentapi.Status{
		"notes": agentapi.StatusLive, "photos": agentapi.StatusPending, "wiki": agentapi.StatusStopped,
	} {
		app := all.Apps[name]
		if app.Status != status || (app.ID != "") != (status != agentapi.StatusPending) || app.LocalPort == 0 || app.Label == "" || app.RequestedAt.IsZero() {
			t.Errorf("%s is %+v", name, app)
		}
		if app.Paused || app.Approved != nil || app.ApprovedFor != nil || app.Options != (agentapi.AppOptions{}) {
			t.Errorf("%s has what nobody chose: %+v", name, app)
		}
	}
	snap, contact, ok, err := s.Snapshot()
	if err != nil || !ok || contact.IsZero() || snap.Computer.Host != "root.localhost:18443" || len(snap.People) != 1 || snap.Version == "" {
		t.Errorf("the snapshot is %+v of %v, %v, %v", snap, contact, ok, err)
	}
	sessions := 0
	if _, err := s.DeleteSessions(func(sess Session) bool {
		if sess.AppID == all.Apps["notes"].ID && sess.AccountID == snap.People[0].AccountID && sess.Epoch == snap.People[0].Epoch {
			sessions++
		}
		return false
	}); err != nil || sessions != 1 {
		t.Errorf("%d sessions, %v", sessions, err)
	}
	if in, err := s.Instance(); err != nil || in.ID != "22ba28da" || len(in.Key) != 32 {
		t.Errorf("the directory calls itself %q, %v", in.ID, err)
	}
	if got, err := s.Settings(); err != nil || !reflect.DeepEqual(got, agentapi.DefaultSettings()) {
		t.Errorf("settings nobody chose: %+v, %v", got, err)
	}
	if since, err := s.DarkSince(); since != nil || err != nil {
		t.Errorf("dark since %v, %v", since, err)
	}
	if lines, err := s.Activity(MaxActivity); len(lines) != 0 || err != nil {
		t.Errorf("%d lines of activity, %v", len(lines), err)
	}
	if pending, err := s.Pending(); len(pending) != 0 || err != nil {
		t.Errorf("pending %+v, %v", pending, err)
	}
	if _, ok, err := s.Silence(); ok || err != nil {
		t.Errorf("a silence, %v", err)
	}
}

// TestLostChangeIsAdded: versions before the count wrote a deny record and its
// pending change one after the other, so a crash could leave the record alone.
func TestLostChangeIsAdded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	at := time.Unix(1, 0).UTC()
	whole := PendingChange{ID: 7, AccountID: "bob", At: at}
	err := errors.Join(
		s.SaveSnapshot(controlapi.Snapshot{Computer: controlapi.Computer{ID: "home"}}, at),
		s.TakeAway(whole),
		s.AddDenyRecord(DenyRecord{GrantID: "g", At: at}),
		s.update(func(tx *boltfile.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("schema")) }),
		s.Close(),
	)
	programs.Must(t, err)
	for range 2 { // the second has nothing to do
		s = openDir(t, dir)
		want := []PendingChange{whole, {ID: 8, GrantID: "g", Computer: "home", At: at}}
		if all, err := s.Pending(); err != nil || !slices.Equal(all, want) {
			t.Errorf("%+v, %v, want %+v", all, err, want)
		}
		programs.Must(t, s.Close())
	}
}

// TestNewerDatabaseIsLeftAlone: it is refused with a sentence, by whatever opens
// it, and stays as it is.
func TestNewerDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	newer := func(tx *boltfile.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), strconv.AppendInt(nil, int64(len(migrations)+1), 10))
	}
	programs.Must(t, errors.Join(s.update(newer), s.Close()))
	path := filepath.Join(dir, FileName)
	state := func() (content []byte, changed time.Time) {
		content, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		programs.Must(t, errors.Join(err, statErr))
		return content, info.ModTime()
	}
	content, changed := state()
	for range 2 { // the second shows that the first let go
		_, err := Open(dir)
		for _, err := range []error{err, Check(dir)} {
			if err == nil || !strings.HasPrefix(err.Error(), "cannot open "+path+": a newer version") || !strings.Contains(err.Error(), "Run that version, or restore") {
				t.Errorf("%v", err)
			}
		}
	}
	if after, at := state(); !bytes.Equal(after, content) || !at.Equal(changed) {
		t.Errorf("it changed at %v", at)
	}
}

// Settings of a version that did not know of one that is on by default have it on.
func TestOlderSettingsKeepWhatIsOn(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	old := []byte(`{"failStaticHours":4,"askAgain":true,"trustEverybody":false,"quiet":["access"]}`)
	programs.Must(t, s.update(func(tx *boltfile.Tx) error { return tx.Bucket([]byte("settings")).Put([]byte("owner"), old) }))
	got, err := s.Settings()
	if err != nil || !got.Requests || !got.Probe || !got.Titles || got.FailStaticHours != 4 || !got.AskAgain {
		t.Errorf("%+v, %v", got, err)
	}
}

// Weakness: what was withdrawn from somebody before there were groups was no mark, so the first
// group with the app opened it to them. Checked: pending changes, deny records and the newest
// decisions mark it, and nothing else does.
func TestWithdrawnBeforeGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	at := time.Now().UTC()
	line := func(kind, account, app string) agentapi.Activity {
		return agentapi.Activity{At: at, Kind: kind, Email: account + "@x", AccountID: account, App: app}
	}
	programs.Must(t, errors.Join(
		s.update(func(tx *boltfile.Tx) error {
			apps := tx.Bucket([]byte("apps"))
			return errors.Join(put(apps, []byte("notes"), App{ID: "id-notes", Name: "notes", Label: "Notes"}), put(apps, []byte("wiki"), App{ID: "id-wiki", Name: "wiki", Label: "Wiki"}))
		}),
		s.TakeAway(PendingChange{ID: 1, AccountID: "ann", AppID: "id-notes", At: at}),
		s.AddDenyRecord(DenyRecord{AccountID: "ben", AppID: "id-wiki", At: at}), s.AddDenyRecord(DenyRecord{AccountID: "cleo", At: at}),
		s.AddActivity(
			line(agentapi.ActivityGiven, "dora", "Notes"), line(agentapi.ActivityWithdrawn, "dora", "Notes"),
			line(agentapi.ActivityWithdrawn, "emil", "Notes"), line(agentapi.ActivityGiven, "emil", "Notes"),
			line(agentapi.ActivityWithdrawn, "dora", "Gone"), line(agentapi.ActivityRemoved, "dora", ""), line(agentapi.ActivityInvited, "dora", "Wiki"),
		),
		s.update(func(tx *boltfile.Tx) error {
			err := errors.Join(tx.DeleteBucket([]byte("groups")), tx.DeleteBucket([]byte("withdrawn")))
			return errors.Join(err, tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte("4")))
		}),
		s.Close(),
	))
	s = openDir(t, dir)
	got := programs.Got(s.Withdrawn())(t)
	slices.SortFunc(got, func(a, b Withdrawn) int { return strings.Compare(a.AccountID, b.AccountID) })
	if want := []Withdrawn{{"ann", "id-notes"}, {"ben", "id-wiki"}, {"dora", "id-notes"}}; !slices.Equal(got, want) {
		t.Errorf("withdrawn are %v, want %v", got, want)
	}
}

// TestCopyOfBefore: what an earlier version wrote is copied before it is changed. A version that
// knows less is told of the copy, which opens with everything in it. Where none can be made
// nothing is changed.
func TestCopyOfBefore(t *testing.T) {
	t.Parallel()
	raw := programs.Got(os.ReadFile(filepath.Join("testdata", "first.db")))(t)
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	programs.Must(t, os.WriteFile(path, raw, 0o600))
	programs.Must(t, os.MkdirAll(filepath.Join(path+".format-0", "taken"), 0o700))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("without a copy it opens: %v", err)
	}
	if now := programs.Got(os.ReadFile(path))(t); !bytes.Equal(now, raw) {
		t.Error("it was changed")
	}
	programs.Must(t, os.RemoveAll(path+".format-0"))
	s := programs.Got(Open(dir))(t)
	programs.Must(t, s.update(func(tx *boltfile.Tx) error { return tx.Bucket(metaBucket).Put(versionKey, []byte("99")) }))
	programs.Must(t, s.Close())
	for what, err := range map[string]error{"Open": errorOf(Open(dir)), "Check": Check(dir)} {
		if err == nil || !strings.HasSuffix(err.Error(), path+".format-0 is one") {
			t.Errorf("%s says %v", what, err)
		}
	}
	for _, look := range []func(string) (int, int, error){Format, FormatInUse} {
		if is, knows, err := look(dir); is != 99 || knows != len(migrations) || err == nil || !strings.HasSuffix(err.Error(), path+".format-0 is one") {
			t.Errorf("it is %d of %d, %v", is, knows, err)
		}
	}
	programs.Must(t, os.Rename(path+".format-0", path))
	if all, err := openDir(t, dir).Apps(); err != nil || len(all.Apps) != 3 {
		t.Errorf("the copy holds %+v, %v", all, err)
	}
}

// A copy that the disk has no room for is not begun.
func TestACopyWantsRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programs.Must(t, openDir(t, dir).Close())
	file := programs.Got(os.Open(filepath.Join(dir, FileName)))(t)
	defer file.Close()
	free := programs.Got(durable.FreeSpace(dir))(t)
	programs.Must(t, roomFor(file, dir, copyLeaves))
	if err := roomFor(file, dir, 2*free+1); err == nil || !strings.Contains(err.Error(), "no room for one: that takes ") {
		t.Errorf("the disk has %d bytes, and it says %v", free, err)
	}
}

func errorOf(_ *Store, err error) error { return err }

// TestFormat: it tells of none, of the present one, and of one that is in use.
func TestFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if is, _, err := Format(dir); is != 0 || err != nil {
		t.Errorf("of none it says %d, %v", is, err)
	}
	s := programs.Got(Open(dir))(t)
	if _, _, err := Format(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("of one in use it says %v", err)
	}
	// Read beside whoever writes all the time, it is the same; and nothing of it stays.
	ctx, stop := context.WithCancel(t.Context())
	wrote := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			err := s.update(func(tx *boltfile.Tx) error {
				return tx.Bucket(metaBucket).Put([]byte("n"), bytes.Repeat([]byte{byte(i)}, 20_000))
			})
			if err != nil || ctx.Err() != nil {
				wrote <- err
				return
			}
		}
	}()
	for range 20 {
		if is, knows, err := FormatInUse(dir); is != knows || err != nil {
			t.Errorf("while it is written it says %d of %d, %v", is, knows, err)
		}
	}
	stop()
	programs.Must(t, <-wrote)
	if files := programs.Got(os.ReadDir(dir))(t); len(files) != 1 {
		t.Errorf("there are %v", files)
	}
	programs.Must(t, s.Close())
	if is, knows, err := Format(dir); is != knows || err != nil {
		t.Errorf("of a new one it says %d of %d, %v", is, knows, err)
	}
}

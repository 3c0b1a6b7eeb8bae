package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
	"porchlight/test/programs"
)

// mostNotices is how many notices are kept.
const mostNotices = maxNotices

func openDir(t *testing.T, dir string, opts ...Option) *Store {
	t.Helper()
	s := programs.Got(Open(dir, opts...))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func change(t *testing.T, s *Store, c AppChange) []agentapi.Notice {
	t.Helper()
	return programs.Got(s.ChangeApp(c))(t)
}

// An approval that ends comes back whole, and a version that knows no ends finds a request
// in its place: it must not take it for an approval without an end.
func TestAnApprovalThatEndsIsARequestToEarlierVersions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 18, 0, 0, 0, time.UTC)
	app := App{
		ID: "id1", Name: "notes", Label: "Notes", LocalPort: 8080, Status: agentapi.StatusLive, Listener: agentapi.Listener{Program: "python3"},
		RequestedAt: at, ApprovedAt: &at, Paused: true, Key: "key", Ends: &Ends{At: at, Passed: time.Hour}, Options: agentapi.AppOptions{H2C: true},
	}
	dir := t.TempDir()
	s := openDir(t, dir)
	change(t, s, AppChange{Name: "notes", App: &app})
	earlier := map[string]App{}
	programs.Must(t, s.view(func(tx *boltfile.Tx) error { return getNamed(tx.Bucket([]byte("apps")), earlier) }))
	want := App{Name: "notes", Label: "Notes", LocalPort: 8080, Status: agentapi.StatusPending, Listener: app.Listener, RequestedAt: at}
	if d := cmp.Diff(want, earlier["notes"]); d != "" {
		t.Errorf("an earlier version reads (-want +got)\n%s", d)
	}
	programs.Must(t, s.Close())
	s = openDir(t, dir)
	if d := cmp.Diff(app, programs.Got(s.Apps())(t).Apps["notes"]); d != "" {
		t.Errorf("this one reads (-want +got)\n%s", d)
	}
	app.Ends, app.TCP = nil, true // nor may it send HTTP to what is reached by TCP
	change(t, s, AppChange{Name: "notes", App: &app})
	earlier = map[string]App{}
	programs.Must(t, s.view(func(tx *boltfile.Tx) error { return getNamed(tx.Bucket([]byte("apps")), earlier) }))
	if d := cmp.Diff(want, earlier["notes"]); d != "" {
		t.Errorf("of one reached by TCP an earlier version reads (-want +got)\n%s", d)
	}
	if d := cmp.Diff(app, programs.Got(s.Apps())(t).Apps["notes"]); d != "" {
		t.Errorf("of one reached by TCP this one reads (-want +got)\n%s", d)
	}
	app.TCP, app.Container = false, &agentapi.Container{Name: "web", ImageID: "aa"} // nor take any other for a container
	change(t, s, AppChange{Name: "notes", App: &app})
	earlier = map[string]App{}
	programs.Must(t, s.view(func(tx *boltfile.Tx) error { return getNamed(tx.Bucket([]byte("apps")), earlier) }))
	if d := cmp.Diff(want, earlier["notes"]); d != "" {
		t.Errorf("of a container an earlier version reads (-want +got)\n%s", d)
	}
	if d := cmp.Diff(app, programs.Got(s.Apps())(t).Apps["notes"]); d != "" {
		t.Errorf("of a container this one reads (-want +got)\n%s", d)
	}
	app.Container = nil
	change(t, s, AppChange{Name: "notes", App: &app})
	earlier = map[string]App{}
	programs.Must(t, s.view(func(tx *boltfile.Tx) error { return getNamed(tx.Bucket([]byte("apps")), earlier) }))
	if d := cmp.Diff(app, earlier["notes"]); d != "" {
		t.Errorf("without an end an earlier version reads (-want +got)\n%s", d)
	}
}

// TestAppsSurviveReopening writes each kind of record and reads it back from a
// second Store.
func TestAppsSurviveReopening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	app := App{
		ID: "id1", Name: "notes", Label: "Notes", LocalPort: 8080, Status: agentapi.StatusLive,
		Listener:    agentapi.Listener{PID: 7, Program: "python3", User: "ada"},
		RequestedAt: at, ApprovedAt: &at,
	}
	request := App{Name: "wiki", Label: "Wiki", LocalPort: 81, Status: agentapi.StatusPending, Quiet: true, RequestedAt: at}
	denial := Denial{Count: 2, At: at, Muted: true}
	notice := agentapi.Notice{At: at, Kind: "renamed", App: "notes", Text: "Jottings is now called Notes."}

	s := openDir(t, dir)
	change(t, s, AppChange{Name: "notes", App: &app, Notices: []agentapi.Notice{notice}})
	change(t, s, AppChange{Name: "wiki", App: &request, Denial: &denial})
	change(t, s, AppChange{Name: "gone", App: &app})
	change(t, s, AppChange{Name: "gone"})
	programs.Must(t, s.Close())

	got := programs.Got(openDir(t, dir).Apps())(t)
	notice.ID = 1
	want := Apps{
		Apps:    map[string]App{"notes": app, "wiki": request},
		Denials: map[string]Denial{"wiki": denial},
		Notices: []agentapi.Notice{notice},
		Formers: map[string][]string{},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("after reopening (-want +got):\n%s", d)
	}
}

// TestNoticesAreBounded fills the notices beyond their bound and reopens the
// store on the way: IDs never repeat, and the newest stay.
func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const total = mostNotices + 30
	s := openDir(t, dir)
	var notices []agentapi.Notice
	for i := range total {
		if i == total/2 {
			programs.Must(t, s.Close())
			s = openDir(t, dir)
		}
		name := fmt.Sprintf("app%d", i)
		notices = change(t, s, AppChange{Name: name, Notices: []agentapi.Notice{{Kind: "renamed", App: name}}})
	}
	if len(notices) != mostNotices {
		t.Fatalf("%d notices are kept, want %d", len(notices), mostNotices)
	}
	for i, n := range notices {
		if want := uint64(total - mostNotices + 1 + i); n.ID != want || n.App != fmt.Sprintf("app%d", want-1) {
			t.Fatalf("notice %d is %+v, want ID %d", i, n, want)
		}
	}
}

// TestNoticeReplacesItsKind: an app that changes again and again keeps one
// notice of each kind, so it cannot push out what is told of the others.
func TestNoticeReplacesItsKind(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	change(t, s, AppChange{Name: "quiet", Notices: []agentapi.Notice{{Kind: "renamed", App: "quiet"}}})
	var notices []agentapi.Notice
	for range 2 * mostNotices {
		notices = change(t, s, AppChange{Name: "noisy", Notices: []agentapi.Notice{
			{Kind: "renamed", App: "noisy"}, {Kind: "port-changed", App: "noisy"},
		}})
	}
	var got []string
	for _, n := range notices {
		got = append(got, fmt.Sprint(n.ID, " ", n.App, " ", n.Kind))
	}
	want := []string{"1 quiet renamed", fmt.Sprint(4*mostNotices, " noisy renamed"), fmt.Sprint(4*mostNotices+1, " noisy port-changed")}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("notices (-want +got):\n%s", d)
	}
}

// TestOneCommitForEachEvent: an event that touches an app, its denial and the
// notices is one transaction, so that no crash can part them.
func TestOneCommitForEachEvent(t *testing.T) {
	t.Parallel()
	var seen []bool
	s := openDir(t, t.TempDir(), ObserveCommits(func(committing bool) { seen = append(seen, committing) }))
	change(t, s, AppChange{
		Name: "notes", App: &App{Name: "notes"}, Denial: &Denial{Count: 1},
		Notices: []agentapi.Notice{{Kind: "renamed", App: "notes"}, {Kind: "port-changed", App: "notes"}},
	})
	if d := cmp.Diff([]bool{true, false}, seen); d != "" {
		t.Errorf("commits begun and ended (-want +got):\n%s", d)
	}
}

// TestDamagedRecordIsNamed: an unreadable record is an error that says which,
// never an app silently missing.
func TestDamagedRecordIsNamed(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{"apps", "denials", "notices"} {
		t.Run(string(bucket), func(t *testing.T) {
			t.Parallel()
			s := openDir(t, t.TempDir())
			err := s.update(func(tx *boltfile.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte("notes"), []byte(`{"at`)) })
			programs.Must(t, err)
			if _, err := s.Apps(); err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("reading a damaged record gives %v", err)
			}
		})
	}
}

// TestClosedStoreRefuses: what cannot be stored is an error, and not stored.
func TestClosedStoreRefuses(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	programs.Must(t, s.Close())
	if _, err := s.ChangeApp(AppChange{Name: "notes", App: &App{}}); err == nil {
		t.Error("a closed store took an app")
	}
	if _, err := s.Apps(); err == nil {
		t.Error("a closed store was read")
	}
}

func TestDatabaseIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	openDir(t, dir)
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, FileName): 0o600} {
		info := programs.Got(os.Stat(path))(t)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

// The former apps of a name are kept, the latest of them, whatever else is not.
func TestFormers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	for i := range maxFormers + 2 {
		programs.Got(s.ChangeApp(AppChange{Name: "notes", Former: fmt.Sprint("id-", i)}))(t)
		programs.Got(s.ChangeApp(AppChange{Name: "wiki"}))(t)
	}
	programs.Must(t, s.Close())
	all, err := openDir(t, dir).Apps()
	if err != nil || len(all.Formers) != 1 || len(all.Formers["notes"]) != maxFormers || all.Formers["notes"][0] != "id-2" {
		t.Errorf("%v, %v", all.Formers, err)
	}
}

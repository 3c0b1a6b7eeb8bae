package engine

import (
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// A yes counts for what was shown: the label, the port, the program and its user.
// Each differs once, while the request itself stays the same; the sentence says
// what is there now, and looking again shows it.
func TestApprovingWhatIsThereNow(t *testing.T) {
	t.Parallel()
	node := agentapi.Listener{PID: 9, Program: "node", User: "ada", UserID: "1000"}
	for what, tt := range map[string]struct {
		asked, then agentapi.Listener
		dead        bool   // nobody listens when the owner says yes
		says        string // in the refusal; empty: approved
	}{
		"as shown":                  {asked: ada, then: ada},
		"restarted":                 {asked: ada, then: agentapi.Listener{PID: 99, Program: "python3", User: "ada", UserID: "1000"}},
		"another program":           {asked: ada, then: node, says: "now it is node, run by ada."},
		"root's":                    {asked: ada, then: root, says: "now it is python3, run by root."},
		"gone":                      {asked: ada, dead: true},
		"another's, as shown":       {asked: eve, then: eve},
		"another's for another's":   {asked: eve, then: mallet, says: "mallet"},
		"not known yet which":       {asked: agentapi.Listener{User: "ada", UserID: "1000"}, then: node},
		"not known yet which, root": {asked: agentapi.Listener{User: "ada", UserID: "1000"}, then: root, says: "run by root"},
		"unseen, as shown":          {asked: unseen, then: unseen},
		"the owner's for unseen":    {asked: unseen, then: ada},
		"another's for unseen":      {asked: unseen, then: eve, says: "eve"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := openDesk(t)
			d.now = tt.asked
			d.publish(t, agentapi.StatusPending)
			if tt.asked.Program != "" {
				d.lookNow()
			}
			shown := agentapi.SeenOf(d.apps.OwnerApps(nil)[0])
			d.now, d.dead = tt.then, tt.dead
			_, err := d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: &shown})
			if tt.says == "" {
				programs.Must(t, err)
				return
			}
			if agentapi.CodeOf(err) != agentapi.CodeConflict || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("%v does not say %q", err, tt.says)
			}
			if app := d.apps.OwnerApps(nil)[0]; app.Status != agentapi.StatusPending || app.Listener != tt.then {
				t.Fatalf("looking again shows %+v", app)
			}
			shown = agentapi.SeenOf(d.apps.OwnerApps(nil)[0])
			programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: &shown})))
		})
	}
}

// What was not shown is not what is approved, also when the request changed to it
// before the look: the listener kept by then is the new one already.
func TestApprovingAfterTheRequestChangedHands(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.dead = true
	d.publish(t, agentapi.StatusPending)
	shown := agentapi.SeenOf(d.apps.OwnerApps(nil)[0])
	d.dead, d.now = false, eve
	d.publish(t, agentapi.StatusPending)
	if _, err := d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: &shown}); agentapi.CodeOf(err) != agentapi.CodeConflict || !strings.Contains(err.Error(), "eve") {
		t.Errorf("nobody was shown: %v", err)
	}
	// An older client looked at neither program nor user.
	programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: &agentapi.Seen{Label: "Notes", LocalPort: 8000}})))
}

// Finding the program may take long; the answer does not. What was shown and is
// not found has to be looked at again.
func TestApprovingDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.publish(t, agentapi.StatusPending)
	d.lookNow()
	shown := agentapi.SeenOf(d.apps.OwnerApps(nil)[0])
	slow := make(chan struct{})
	t.Cleanup(func() { close(slow) })
	d.cfg.Listener = func(upstream.Target, int) agentapi.Listener { <-slow; return agentapi.Listener{} }
	d.apps.lookFor = time.Millisecond
	if _, err := d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: &shown}); agentapi.CodeOf(err) != agentapi.CodeConflict || !strings.Contains(err.Error(), "a program of the user ada") {
		t.Fatalf("%v", err)
	}
	shown = agentapi.SeenOf(d.apps.OwnerApps(nil)[0])
	programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: &shown})))
}

// Approved for the owner alone, an app has another id: whatever anybody was given
// belongs to the one before, whose connections are closed.
func TestApprovingForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	ask := true
	d.cfg.AskAgain = func() bool { return ask }
	alone := func() {
		t.Helper()
		programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{Alone: true})))
	}
	d.publish(t, agentapi.StatusPending)
	alone() // the first time it is everybody's way
	first := d.row().ID
	programs.Must(t, second(d.apps.ChangeOptions(t.Context(), "notes", to(agentapi.AppOptions{Forwarded: true}))))
	moved := agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 9000}
	programs.Must(t, second(d.apps.Publish(t.Context(), Caller{}, moved)))
	alone()
	app := d.row()
	if app.ID == first || app.ID == "" || app.Status != agentapi.StatusLive || app.LocalPort != 9000 || !app.Options.Forwarded {
		t.Errorf("asked again: %+v", app)
	}
	if _, there := d.apps.ByID(first); there {
		t.Error("the id before is still one of an app")
	}
	// On already, it is taken from everybody as well.
	was := app.ID
	alone()
	if app = d.row(); app.ID == was || app.Status != agentapi.StatusLive {
		t.Errorf("while on: %+v", app)
	}
	if n := len(d.gone); n == 0 || d.gone[n-1] != was {
		t.Errorf("closed %v, and not %s", d.gone, was)
	}
	// Without it the people are kept.
	moved.LocalPort = 9001
	programs.Must(t, second(d.apps.Publish(t.Context(), Caller{}, moved)))
	programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
	if again := d.row(); again.ID != app.ID {
		t.Errorf("approved for all: %s, before %s", again.ID, app.ID)
	}
}

// The owner reads who asks where it is another user of this computer, while they
// have to decide; of their own programs they read nothing.
func TestAskersAreNamed(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.cfg.UserName = func(id string) string { return map[string]string{"1001": "eve"}[id] }
	for name, by := range map[string]Caller{
		"own": {}, "eves": {UserID: "1001", Stranger: true}, "hidden": {Stranger: true}, "trusted": {UserID: "1001"},
	} {
		programs.Must(t, second(d.apps.Publish(t.Context(), by, agentapi.PublishRequest{Name: name, Label: name, LocalPort: 8000})))
	}
	for _, app := range d.apps.OwnerApps(nil) {
		if want := map[string]string{"own": "", "eves": "eve", "hidden": "somebody unknown", "trusted": "eve"}[app.Name]; app.AskedBy != want {
			t.Errorf("%s is asked for by %q, want %q", app.Name, app.AskedBy, want)
		}
	}
	programs.Must(t, second(d.apps.Approve(t.Context(), "eves", agentapi.Approval{})))
	for _, app := range d.apps.OwnerApps(nil) {
		if app.Name == "eves" && app.AskedBy != "" {
			t.Errorf("approved, it is asked for by %q", app.AskedBy)
		}
	}
}

// Program and user are those that the system tells, and what a coding agent calls itself
// is read as what it is: a few letters on one line, that end no quotation. They are there
// while the owner is asked, and not for what nobody asked for.
func TestWhatAsksIsTold(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	by := Caller{Process: func() procinfo.Process {
		return procinfo.Process{PID: 7, Program: "porchlight", User: "ada", UserID: "1000"}
	}}
	req := agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000}
	asks := func() agentapi.Asks {
		t.Helper()
		app := d.apps.OwnerApps(nil)[0]
		if app.Asks == nil {
			return agentapi.Asks{}
		}
		return *app.Asks
	}
	for claim, want := range map[string]string{
		"": "", "claude-code": "claude-code", "Visual Studio Code": "Visual Studio Code", "@scope/agent_1.2+b": "@scope/agent_1.2+b", "Übung 日本": "Übung 日本",
		" \t a\n\nb ": "a b", "a\u202eb\u2066c": "abc", "\u200b": "?", "\u3164": "?", "a\x1b[31mb": "a??31mb", "x”. Asked for by Notes": "x?. Asked for by Notes", "<b>a</b>": "?b?a?/b?",
		strings.Repeat("a", 40): strings.Repeat("a", 40), strings.Repeat("a", 60000): strings.Repeat("a", 39) + "…", "\xff": "?", "😀": "?",
	} {
		req.Assistant = claim
		programs.Must(t, second(d.apps.Publish(t.Context(), by, req)))
		if got := asks(); got != (agentapi.Asks{Program: "porchlight", User: "ada", Assistant: want}) {
			t.Errorf("%.40q: %+v, want %q", claim, got, want)
		}
	}
	req.Assistant = "claude-code"
	programs.Must(t, second(d.apps.Publish(t.Context(), by, req)))
	d.lookNow() // who listens is no other request
	if asks().Assistant != "claude-code" {
		t.Errorf("looked at: %+v", asks())
	}
	programs.Must(t, second(d.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000})))
	if asks() != (agentapi.Asks{}) {
		t.Errorf("asked for by another: %+v", asks())
	}
	programs.Must(t, second(d.apps.Publish(t.Context(), by, req)))
	programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
	if asks() != (agentapi.Asks{}) || d.row().Asks != nil {
		t.Errorf("approved: %+v", asks())
	}
	d.now = eve
	d.apps.Welcomes("notes", upstream.Target{Port: 8000}, agentapi.Listener{})
	if app := d.apps.OwnerApps(nil)[0]; app.Status != agentapi.StatusPending || app.Asks != nil {
		t.Errorf("another user's program was found: %+v", app)
	}
}

package engine

import (
	"errors"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/test/programs"
)

// modelled is a program as the model knows it.
type modelled struct {
	of  string // its app
	pid int
}

// TestRegistryMatchesTheModel runs any sequence of calls and of time passing,
// and compares every count with a map of deadlines.
func TestRegistryMatchesTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		r := NewRegistry(RegistryConfig{Open: immortal, Now: func() time.Time { return now }})
		until := map[modelled]time.Time{} // the model
		appIDs := rapid.SampledFrom([]string{"com.example.notes", "com.example.wiki", "org.example.nikki-2"})
		pids := rapid.IntRange(1001, 1003)
		draw := func(t *rapid.T) agentapi.RegisterRequest {
			return agentapi.RegisterRequest{AppID: appIDs.Draw(t, "appId"), PID: pids.Draw(t, "pid")}
		}
		by := func(pid int) func() procinfo.Process {
			return func() procinfo.Process { return procinfo.Process{PID: pid} }
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				req := draw(t)
				until[modelled{req.AppID, req.PID}] = now.Add(agentapi.ReapAfter)
				got, err := r.Register(Caller{}, req, by(req.PID))
				if err != nil || got.Registrants != len(until) || !r.Admits(got.Capability) {
					t.Fatalf("%+v, %v, want %d registrants", got, err, len(until))
				}
			},
			"heartbeat": func(t *rapid.T) {
				req := draw(t)
				key := modelled{req.AppID, req.PID}
				_, known := until[key]
				if _, err := r.Heartbeat(Caller{}, req); (err == nil) != known {
					t.Fatalf("known %v, and answered %v", known, err)
				}
				if known {
					until[key] = now.Add(agentapi.ReapAfter)
				}
			},
			"deregister": func(t *rapid.T) {
				req := draw(t)
				ofApp := func(k modelled, _ time.Time) bool { return k.of == req.AppID }
				key := modelled{req.AppID, req.PID}
				if _, own := until[key]; own {
					delete(until, key)
				} else {
					maps.DeleteFunc(until, ofApp)
				}
				if got, err := r.Deregister(Caller{}, req.AppID, by(req.PID)); err != nil || got.Registrants != len(until) {
					t.Fatalf("%+v, %v, want %d registrants", got, err, len(until))
				}
			},
			"time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
				maps.DeleteFunc(until, func(_ modelled, end time.Time) bool { return !end.After(now) })
				r.sweep()
			},
			"": func(t *rapid.T) {
				got := map[modelled]bool{}
				for _, row := range r.Registrants() {
					got[modelled{row.AppID, row.PID}] = true
				}
				for key := range until {
					if !got[key] {
						t.Fatalf("%+v is missing", key)
					}
				}
				if len(got) != len(until) || r.Count() != len(until) {
					t.Fatalf("%d registrants, want %d", len(got), len(until))
				}
			},
		})
	})
}

// TestCannotWatch: where the system offers no way to watch a process, or hides
// who calls, heartbeats alone decide.
func TestCannotWatch(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		open   error
		caller procinfo.Process
		stays  bool
	}{
		"a system without processes to watch":  {errors.ErrUnsupported, procinfo.Process{}, true},
		"a caller who is hidden, in a sandbox": {procinfo.ErrGone, procinfo.Process{User: "maya"}, true},
		"a pid that nobody has":                {procinfo.ErrGone, procinfo.Process{PID: 7, User: "maya"}, false},
		"a pid that nobody has, on macOS, say": {procinfo.ErrGone, procinfo.Process{}, false},
	} {
		r, _ := attach(t, RegistryConfig{Open: func(int) (procinfo.Handle, error) { return nil, tt.open }})
		req := agentapi.RegisterRequest{AppID: "com.example.notes", PID: 4711}
		got, err := r.Register(Caller{}, req, func() procinfo.Process { return tt.caller })
		if err != nil || got.Registrants != 1 {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		if !tt.stays {
			awaitCount(t, r, 0)
		} else if _, err := r.Heartbeat(Caller{}, req); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Weakness I10: every new registration looked through all processes of the
// computer. Checked: who was found only later is noted then, and is whom the
// registration is for where they call themselves so.
func TestI10IdentifiedLater(t *testing.T) {
	t.Parallel()
	unknown := func() procinfo.Process { return procinfo.Process{User: "maya"} }
	const gone = procinfo.MaxPID
	me := os.Getpid()
	for what, tt := range map[string]struct {
		claimed int
		calls   procinfo.Process
		watched []int // in turn
		stays   bool
	}{
		"the claimed process":            {me, procinfo.Process{PID: me, Program: "notes"}, []int{me}, true},
		"another one, for the claimed":   {me, procinfo.Process{PID: 1, Program: "curl"}, []int{me}, true},
		"another one, for one gone":      {gone, procinfo.Process{PID: me, Program: "curl"}, []int{gone, gone}, false},
		"one that is not found":          {me, procinfo.Process{}, []int{me}, true},
		"one not found, for one unknown": {gone, procinfo.Process{}, []int{gone}, true},
	} {
		var watched []int
		r, _ := attach(t, RegistryConfig{Open: func(pid int) (procinfo.Handle, error) {
			watched = append(watched, pid)
			if pid == gone {
				return nil, procinfo.ErrGone
			}
			return immortal(pid)
		}})
		req := agentapi.RegisterRequest{AppID: "com.example.notes", PID: tt.claimed}
		programs.Got(r.Register(Caller{}, req, unknown))(t)
		if _, err := r.Heartbeat(Caller{}, req); err != nil {
			t.Fatalf("%s: before it was looked for: %v", what, err)
		}
		r.Identify(Caller{}, req, tt.calls)
		if !slices.Equal(watched, tt.watched) {
			t.Errorf("%s: watched %v, want %v", what, watched, tt.watched)
		}
		if !tt.stays {
			awaitCount(t, r, 0)
		} else if got := r.Registrants(); len(got) != 1 || got[0].CallerPID != tt.calls.PID || got[0].Program != tt.calls.Program || got[0].User != "maya" {
			t.Errorf("%s: %+v", what, got)
		}
		r.Identify(Caller{}, agentapi.RegisterRequest{AppID: "com.example.gone", PID: 1}, tt.calls)
		if n := r.Count(); n > 1 {
			t.Errorf("%s: one that has gone is back", what)
		}
	}
}

// TestAppOf names the app of a process, by its own pid or as the one that called
// for it; of several the newest.
func TestAppOf(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	r := NewRegistry(RegistryConfig{Open: immortal, Now: func() time.Time { now = now.Add(time.Second); return now }})
	for _, app := range []struct {
		id  string
		pid int
	}{{"old", 1001}, {"new", 1001}, {"other", 1002}} {
		by := func() procinfo.Process { return procinfo.Process{PID: app.pid + 1000} }
		programs.Got(r.Register(Caller{}, agentapi.RegisterRequest{AppID: app.id, PID: app.pid}, by))(t)
	}
	var got []string
	for _, pid := range []int{1001, 2001, 1002, 2002, 3, 0} {
		got = append(got, r.AppOf(pid))
	}
	if want := []string{"new", "new", "other", "other", "", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

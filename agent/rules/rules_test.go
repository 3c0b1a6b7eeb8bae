package rules_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/rules"
	"porchlight/agent/store"
)

func open(t *testing.T, dir string, log ...slog.Handler) (*rules.Rules, *access.Access, *store.Store, *int) {
	t.Helper()
	cfg := rules.Config{Away: func() bool { return true }}
	if len(log) > 0 {
		cfg.Log = slog.New(log[0])
	}
	db, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	a, err := access.New(access.Config{Store: db})
	if err != nil {
		t.Fatal(err)
	}
	changes := new(int)
	cfg.Store, cfg.Access, cfg.OnChange = db, a, func() { *changes++ }
	r, err := rules.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r, a, db, changes
}

// Settings are checked, stored, in force at once and again after a restart.
func TestSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, a, db, changes := open(t, dir)
	if got := fmt.Sprintf("%+v", r.Settings()); got != "{FailStaticHours:24 AskAgain:false TrustEverybody:false Quiet:[]}" || a.FailStatic() != 24*time.Hour {
		t.Errorf("at first: %s, %v", got, a.FailStatic())
	}
	for what, bad := range map[string]agentapi.Settings{
		"negative hours":     {FailStaticHours: -1},
		"more than a day":    {FailStaticHours: 25},
		"an empty kind":      {Quiet: []string{""}},
		"a kind with spaces": {Quiet: []string{"port changed"}},
		"a long kind":        {Quiet: []string{strings.Repeat("a", 41)}},
		"many kinds":         {Quiet: strings.Fields(kinds(51))},
	} {
		if _, err := r.SetSettings(bad); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if *changes != 0 || a.FailStatic() != 24*time.Hour {
		t.Errorf("refusals changed something: %d, %v", *changes, a.FailStatic())
	}
	want := "{FailStaticHours:3 AskAgain:true TrustEverybody:true Quiet:[access request]}"
	got, err := r.SetSettings(agentapi.Settings{FailStaticHours: 3, AskAgain: true, TrustEverybody: true, Quiet: []string{"request", "access", "request"}})
	if err != nil || fmt.Sprintf("%+v", got) != want || a.FailStatic() != 3*time.Hour || *changes != 1 {
		t.Errorf("%+v, %v, in force %v, %d changes", got, err, a.FailStatic(), *changes)
	}
	got.Quiet[0] = "not mine to change"
	db.Close()
	r, a, _, _ = open(t, dir)
	if got := fmt.Sprintf("%+v", r.Settings()); got != want || a.FailStatic() != 3*time.Hour {
		t.Errorf("after a restart: %s, %v", got, a.FailStatic())
	}
	if got, err = r.SetSettings(agentapi.Settings{}); err != nil || got.Quiet == nil || a.FailStatic() != access.MinFailStatic {
		t.Errorf("zero hours: %+v, %v, %v", got, err, a.FailStatic())
	}
}

func kinds(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "kind-%d ", i)
	}
	return b.String()
}

// When the disk fails, what closes is closed and what opens stays closed, and
// the sentences say so; the log says why.
func TestDarkWithoutADisk(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	r, a, db, changes := open(t, t.TempDir(), slog.NewTextHandler(&log, nil))
	if closed, err := r.GoDark(); err != nil || !closed.OK || r.DarkSince() == nil || *changes != 1 {
		t.Fatalf("%+v, %v", closed, err)
	}
	db.Close()
	if err := r.LightUp(); agentapi.CodeOf(err) != agentapi.CodeInternal || a.DarkSince() == nil || !strings.Contains(err.Error(), "stays closed") {
		t.Errorf("%v", err)
	}
	if _, err := r.GoDark(); agentapi.CodeOf(err) != agentapi.CodeInternal || !strings.Contains(err.Error(), "after a restart") {
		t.Errorf("%v", err)
	}
	if n := strings.Count(log.String(), "database not open"); n != 2 {
		t.Errorf("the log gives the cause %d times, want 2: %s", n, log.String())
	}
	if _, err := r.SetSettings(agentapi.Settings{FailStaticHours: 1}); err == nil || a.FailStatic() != 24*time.Hour {
		t.Errorf("settings that were not kept are in force: %v", err)
	}
}

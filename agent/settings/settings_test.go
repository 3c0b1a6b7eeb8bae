package settings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/settings"
	"porchlight/agent/store"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

func open(t *testing.T, dir string, changes *broadcast.Signal) (*settings.Settings, *store.Store) {
	t.Helper()
	db := programs.Got(store.Open(dir))(t)
	t.Cleanup(func() { db.Close() })
	s := programs.Got(settings.New(db, changes, nil))(t)
	return s, db
}

// Settings are checked, stored, in force at once and again after a restart.
func TestSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var changes broadcast.Signal
	changed, cancel := changes.Subscribe()
	defer cancel()
	s, db := open(t, dir, &changes)
	const first = "{FailStaticHours:24 AskAgain:false TrustEverybody:false Probe:true Requests:true Titles:true StrangersKnock:false TellOff:true DisplayName: Language: UpdateAddress: UpdateKey: ClientHosts:[] Containers: Notify:everything Quiet:[]}"
	if got := fmt.Sprintf("%+v", s.Get()); got != first {
		t.Errorf("at first: %s", got)
	}
	for what, bad := range map[string]agentapi.Settings{
		"negative hours":            {FailStaticHours: -1},
		"more than a day":           {FailStaticHours: 25},
		"a name that is an address": {DisplayName: "maya@example.com"},
		"a name of two lines":       {DisplayName: "Maya\r\nBcc: eve"},
		"a name that turns around":  {DisplayName: "Maya\u202e"},
		"a language of none":        {Language: "xx"},
		"an address without a key":  {UpdateAddress: "https://porch.example/update.json"},
		"a key without an address":  {UpdateKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
		"an address without TLS":    {UpdateAddress: "http://porch.example/update.json", UpdateKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
		"none with a key":           {UpdateAddress: agentapi.NoAddress, UpdateKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
		"a short key":               {UpdateAddress: "https://porch.example/update.json", UpdateKey: "AAAA"},
		"a locale":                  {Language: "de_DE.UTF-8"},
		"a long name":               {DisplayName: strings.Repeat("é", 61)},
		"no host":                   {ClientHosts: []string{"https://claude.ai"}},
		"a host of this computer":   {ClientHosts: []string{"notes.maya.localhost"}},
		"many hosts":                {ClientHosts: strings.Fields(strings.ReplaceAll(kinds(101), " ", ".example "))},
		"no whole path":             {Containers: "docker.sock"},
		"an engine elsewhere":       {Containers: "tcp://192.0.2.1:2375"},
		"a path that turns around":  {Containers: "/run/\u202edocker.sock"},
		"a path beyond a socket's":  {Containers: "/" + strings.Repeat("a", 107)},
		"an empty kind":             {Quiet: []string{""}},
		"a kind with spaces":        {Quiet: []string{"port changed"}},
		"a long kind":               {Quiet: []string{strings.Repeat("a", 41)}},
		"many kinds":                {Quiet: strings.Fields(kinds(51))},
	} {
		if _, err := s.Change(func(s *agentapi.Settings) { *s = bad }); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := fmt.Sprintf("%+v", s.Get()); got != first || len(changed) != 0 {
		t.Errorf("refusals changed something: %s, %d", got, len(changed))
	}
	want := "{FailStaticHours:3 AskAgain:true TrustEverybody:true Probe:false Requests:false Titles:false StrangersKnock:true TellOff:true DisplayName:Maya Language:de UpdateAddress: UpdateKey: ClientHosts:[claude.ai vscode.dev] Containers:/run/docker.sock Notify: Quiet:[access request]}"
	got, err := s.Change(func(s *agentapi.Settings) {
		*s = agentapi.Settings{FailStaticHours: 3, AskAgain: true, TrustEverybody: true, StrangersKnock: true, TellOff: true, DisplayName: " Maya ", Language: "de", ClientHosts: []string{"vscode.dev", "claude.ai", "claude.ai"}, Containers: "unix:///run/docker.sock", Quiet: []string{"request", "access", "request"}}
	})
	if err != nil || fmt.Sprintf("%+v", got) != want || s.FailStatic() != 3*time.Hour || len(changed) != 1 {
		t.Errorf("%+v, %v, %d told", got, err, len(changed))
	}
	got.Quiet[0] = "not mine to change"
	db.Close()
	if _, err := s.Change(func(s *agentapi.Settings) { s.AskAgain = false }); err == nil || fmt.Sprintf("%+v", s.Get()) != want {
		t.Errorf("settings that were not kept are in force: %v", err)
	}
	s, _ = open(t, dir, nil)
	if got := fmt.Sprintf("%+v", s.Get()); got != want {
		t.Errorf("after a restart: %s", got)
	}
	if got, err = s.Change(func(s *agentapi.Settings) { *s = agentapi.Settings{} }); err != nil || got.Quiet == nil {
		t.Errorf("zero hours: %+v, %v", got, err)
	}
}

func kinds(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "kind-%d ", i)
	}
	return b.String()
}

// A level is what a list of quiet kinds means, and nothing that is kept: a list of before
// stays as it is, and a level that is chosen becomes its list.
func TestLevelOfNotifications(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, db := open(t, dir, nil)
	reopen := func() {
		db.Close()
		s, db = open(t, dir, nil)
	}
	shown := func(want string) {
		t.Helper()
		if got := fmt.Sprintf("%s %v", s.Get().Notify, s.Get().Quiet); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	change := func(to func(*agentapi.Settings)) error {
		_, err := s.Change(to)
		return err
	}
	shown("everything []")
	for _, one := range []struct {
		to   func(*agentapi.Settings)
		want string
	}{
		{func(s *agentapi.Settings) { s.Quiet = []string{"request", "access"} }, " [access request]"},
		{func(s *agentapi.Settings) { s.AskAgain = true }, " [access request]"},
		{func(s *agentapi.Settings) { s.Notify = agentapi.NotifyWaiting }, "waiting [approved capability changed ended invitation visit]"},
		{func(s *agentapi.Settings) { s.Notify = agentapi.NotifyNothing }, "nothing [approved capability changed connection ended invitation visit]"},
		{func(s *agentapi.Settings) { s.Notify = "" }, "nothing [approved capability changed connection ended invitation visit]"},
		{func(s *agentapi.Settings) { s.Notify, s.Quiet = agentapi.NotifyEverything, []string{"access"} }, " [access]"},
		{func(s *agentapi.Settings) { s.Notify = agentapi.NotifyEverything }, "everything []"},
	} {
		if err := change(one.to); err != nil {
			t.Error(err)
		}
		shown(one.want)
		reopen()
		shown(one.want)
		if kept := programs.Got(db.Settings())(t); kept.Notify != agentapi.DefaultSettings().Notify {
			t.Errorf("the level %s is kept", kept.Notify)
		}
	}
	if err := change(func(s *agentapi.Settings) { s.Notify = "loud" }); agentapi.CodeOf(err) != agentapi.CodeInvalid {
		t.Errorf("a level there is not: %v", err)
	}
	shown("everything []")
}

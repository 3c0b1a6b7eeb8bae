package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

const bob = "bob@example.com"

// publishing runs an app and has it approved.
func (s shell) publishing(name, label string, handler http.Handler) *httptest.Server {
	s.t.Helper()
	app, port := anApp(s.t, handler)
	s.ok("publish", name, "--label", label, "--port", port)
	s.ok("approve", name)
	return app
}

// TestPeopleShapes is the contract of --json for people, grants and engine, told
// as one person's story.
func TestPeopleShapes(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.NotFoundHandler())
	s.publishing("wiki", "Wiki, ours", http.NotFoundHandler())
	var invitation map[string]any
	s.json(&invitation, "people", "invite", bob, "--app", "Notes", "--app", "Wiki, ours")
	if invitation["email"] != bob || invitation["status"] != "pending" || !strings.HasPrefix(fmt.Sprint(invitation["url"]), "https://notes.") {
		t.Errorf("invite: %v", invitation)
	}
	var account agentapi.Account
	s.json(&account, "account")
	row := func() agentapi.Person {
		t.Helper()
		var people agentapi.People
		s.json(&people, "people")
		if people.Name != account.Name || !slices.Equal(people.PublishedApps, []string{"Notes", "Wiki, ours"}) || people.Members[0].Role != "owner" {
			t.Errorf("people: %+v", people)
		}
		for _, p := range people.Members {
			if p.Email == bob {
				return p
			}
		}
		t.Fatalf("bob is not among %+v", people.Members)
		return agentapi.Person{}
	}
	id := row().AccountID
	var changed agentapi.PersonChanged
	for _, step := range []struct {
		args   []string
		status string
		apps   string
	}{
		{[]string{"withdraw", bob, "--app", "Notes"}, "pending", "[Wiki, ours]"},
		{[]string{"grant", id, "--app", "Notes"}, "pending", "[Notes Wiki, ours]"},
		{[]string{"withdraw", id, "--app", "Notes"}, "pending", "[Wiki, ours]"},
		{[]string{"remove", strings.ToUpper(bob)}, "revoked", "[Wiki, ours]"},
	} {
		s.json(&changed, append([]string{"people"}, step.args...)...)
		if !changed.OK || changed.Person.AccountID != id || changed.Person.Status != step.status {
			t.Errorf("%v: %+v", step.args, changed)
		}
		if p := row(); p.Status != step.status || fmt.Sprint(p.Apps) != step.apps {
			t.Errorf("after %v: %+v, want %s with %s", step.args, p, step.status, step.apps)
		}
	}
	var raw struct{ Members []map[string]any }
	s.json(&invitation, "people", "invite", bob, "--app", "Notes", "--app", "Wiki, ours")
	s.json(&changed, "people", "grant", id, "--app", "Notes", "--until", "2h")
	s.json(&raw, "people")
	until, _ := raw.Members[1]["until"].(map[string]any)
	if at, err := time.Parse(time.RFC3339, fmt.Sprint(until["Notes"])); len(until) != 1 || err != nil || time.Until(at) > 2*time.Hour+time.Second {
		t.Errorf("until: %v", raw.Members[1])
	}
	if fmt.Sprint(raw.Members[1]["apps"]) != "[Notes Wiki, ours]" {
		t.Errorf("apps: %v", raw.Members[1])
	}
	var grants []agentapi.Grant
	s.json(&grants, "grants")
	if grants == nil || len(grants) != 0 {
		t.Errorf("grants: %v", grants)
	}
	running := programs.Got(agentapi.ReadRunning(s.dir))(t)
	programs.Got(agentapi.New(running.API).Register(t.Context(), agentapi.RegisterRequest{AppID: "com.example.notes", PID: os.Getpid()}))(t)
	var engine struct {
		Registrants int
		Registered  []agentapi.Registrant
	}
	s.json(&engine, "engine")
	if engine.Registrants != 1 || len(engine.Registered) != 1 || engine.Registered[0].AppID != "com.example.notes" || engine.Registered[0].PID != os.Getpid() {
		t.Errorf("engine: %+v", engine)
	}
}

// TestPeopleWords: without --json, and the ways it can be refused.
func TestPeopleWords(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	absent := shell{t, t.TempDir()}
	s.publishing("notes", "Notes", http.NotFoundHandler())
	for _, step := range []struct {
		in   shell
		args string
		code int
		want string
	}{
		{s, "people", 0, "Nobody else yet"},
		{s, "people list", 0, "owner"},
		{s, "people invite bob@example.com --app Notes", 0, "bob@example.com is invited to Notes, at https://notes."},
		{s, "people", 0, "invited"},
		{s, "people withdraw bob@example.com --app Notes", 0, "cannot open Notes any more"},
		{s, "people grant bob@example.com --app Notes", 0, "bob@example.com may open Notes, once they have clicked"},
		{s, "people grant bob@example.com --app Notes --until 90m", 0, "bob@example.com may open Notes until t"}, // oday or tomorrow
		{s, "people grant bob@example.com --app Notes --until 2099-01-31T18:00:00Z", commandline.ExitRefused, "ten years"},
		{s, "people", 0, "Notes until t"},
		{s, "people grant bob@example.com --app Notes --until never", 0, "bob@example.com may open Notes, once they have clicked"},
		{s, "people invite bob@example.com --app Notes --until 90m", 0, "bob@example.com is invited to Notes until to"},
		{s, "people remove bob@example.com", 0, "bob@example.com is removed"},
		{s, "people grant bob@example.com --app Notes", 0, "but is removed: invite"},
		{s, "people list", 0, "removed"},
		{s, "grants", 0, "No remote client"},
		{s, "grants list", 0, "No remote client"},
		{s, "engine", 0, "Registered apps: 0"},
		{s, "people --help", 0, "porchlight people invite bob@example.com --app Notes --app Wiki"},
		{s, "grants revoke --help", 0, "porchlight grants revoke ID"},

		{s, "people invite carl@example.com --app notes", 0, "carl@example.com is invited to Notes, at"}, // by its name
		{s, "people withdraw carl@example.com --app NOTES", 0, "carl@example.com cannot open Notes any more"},
		{s, "people invite bob --app Notes", commandline.ExitRefused, "address"},
		{s, "people invite bob@example.com --app Diary", commandline.ExitRefused, "Diary"},
		{s, "people grant nobody --app Notes", commandline.ExitRefused, "not on the list"},
		{s, "people remove nobody@example.com", commandline.ExitRefused, "not on the list"},
		{s, "grants revoke abcdefghijklmnopqrstuvwxyz", commandline.ExitRefused, "has no connection here"},
		{s, "grants revoke nobody@example.com", commandline.ExitRefused, "has no connection here"},
		{s, "grants revoke Nothing", commandline.ExitRefused, "has no connection here"},
		{absent, "people invite bob@example.com", commandline.ExitUsage, "--app"},
		{absent, "people invite bob@example.com --app Notes --until soon", commandline.ExitUsage, "--until"},
		{absent, "people invite bob@example.com --app Notes --until=", commandline.ExitUsage, "--until"},
		{absent, "people grant bob@example.com --app Notes --until -3h", commandline.ExitUsage, "--until"},
		{absent, "people withdraw bob@example.com --app Notes --until 3h", commandline.ExitUsage, "--until"},
		{absent, "people invite", commandline.ExitUsage, "EMAIL"},
		{absent, "people grant bob@example.com", commandline.ExitUsage, "--app"},
		{absent, "people withdraw", commandline.ExitUsage, "ID"},
		{absent, "people remove", commandline.ExitUsage, "ID"},
		{absent, "people dance", commandline.ExitUsage, "dance"},
		{absent, "grants revoke", commandline.ExitUsage, "ID"},
		{absent, "grants dance", commandline.ExitUsage, "dance"},
		{absent, "people", commandline.ExitNotRunning, "not running"},
		{absent, "people remove bob@example.com", commandline.ExitNotRunning, "not running"},
		{absent, "grants", commandline.ExitNotRunning, "not running"},
		{absent, "engine --api 127.0.0.1:1", commandline.ExitNotRunning, "not running"},
	} {
		step.in.wants(step.code, step.want, strings.Fields(step.args)...)
	}
}

// Weakness: somebody who mistyped an app was told that there is none of that name, and had
// to look up what there is.
// Checked: every command that takes a label names the approved apps, five at most, and no
// request.
func TestUnknownAppNamesThoseServed(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	refused := func(want string) {
		t.Helper()
		for _, command := range []string{
			"people invite bob@example.com --app Diary", "people invite bob@example.com lena@example.com --app Diary",
			"people withdraw x --app Diary", "passwords add Diary --name laptop",
		} {
			if code, out, errs := s.run(strings.Fields(command)...); code != commandline.ExitRefused || out != "" || !strings.HasSuffix(errs, `This computer serves no app called "Diary". `+want+"\n") {
				t.Errorf("%s: exit %d, want %q\n%s%s", command, code, want, out, errs)
			}
		}
	}
	_, port := anApp(t, http.NotFoundHandler())
	s.ok("publish", "later", "--label", "Later", "--port", port)
	refused("It serves none yet. See: porchlight apps")
	s.publishing("notes", "Notes", http.NotFoundHandler())
	s.publishing("wiki", "Wiki, ours", http.NotFoundHandler())
	refused(`It serves "Notes" and "Wiki, ours".`)
	for _, name := range []string{"a", "b", "c", "d"} {
		s.publishing(name, "App "+name, http.NotFoundHandler())
	}
	refused(`It serves "App a", "App b", "App c", "App d" and 2 more. See: porchlight apps`)
}

// Weakness: a program that asked under a label took that word from the owner's app of that
// name; and where one app's label was another's name, one of the two was chosen silently.
// Checked: a request takes no word, two apps that a word may mean are both named and neither
// is given, and the address of each tells them apart.
func TestAppCalledByOneWord(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("wiki", "Team pages", http.NotFoundHandler())
	_, port := anApp(t, http.NotFoundHandler())
	s.ok("publish", "other", "--label", "wiki", "--port", port)
	s.wants(0, bob+" is invited to Team pages, at https://wiki.", "people", "invite", bob, "--app", "wiki")
	s.wants(0, bob+" cannot open Team pages any more", "people", "withdraw", bob, "--app", "wiki")

	s.publishing("journal", "Wiki", http.NotFoundHandler())
	var account agentapi.Account
	s.json(&account, "account")
	both := fmt.Sprintf(`"wiki" may mean "Team pages" at wiki.%s, or "Wiki" at journal.%[1]s. Name it by its address.`, account.Host)
	s.wants(commandline.ExitRefused, both, "people", "invite", bob, "--app", "wiki")
	s.wants(commandline.ExitRefused, both, "people", "grant", bob, "--app", "wiki")
	s.wants(commandline.ExitRefused, both, "people", "withdraw", bob, "--app", "wiki")
	s.wants(commandline.ExitRefused, both, "passwords", "add", "wiki", "--name", "laptop")
	s.wants(0, "may open Team pages", "people", "grant", bob, "--app", "wiki."+account.Host)
	s.wants(0, "address: https://journal.", "people", "grant", bob, "--app", "https://journal."+account.Host+"/")
	s.wants(0, "may open Wiki", "people", "grant", bob, "--app", "Wiki")
	s.wants(0, "cannot open Wiki any more", "people", "withdraw", bob, "--app", "journal")
	s.wants(0, "address:   https://journal.", "passwords", "add", "journal."+account.Host, "--name", "laptop")
}

// TestIDOfAnAddress: an address that began anew is the person who is there now.
func TestIDOfAnAddress(t *testing.T) {
	t.Parallel()
	gone := agentapi.Person{AccountID: "gone", Email: bob, Status: agentapi.PersonRemoved}
	here := agentapi.Person{AccountID: "here", Email: bob, Status: agentapi.PersonActive}
	for _, tt := range []struct {
		members []agentapi.Person
		want    string
	}{
		{[]agentapi.Person{gone, here}, "here"},
		{[]agentapi.Person{here, gone}, "here"},
		{[]agentapi.Person{gone}, "gone"},
		{nil, ""},
	} {
		if id := idOf(tt.members, strings.ToUpper(bob)); id != tt.want {
			t.Errorf("%+v: %q, want %q", tt.members, id, tt.want)
		}
	}
}

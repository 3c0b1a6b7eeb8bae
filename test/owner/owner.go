// Package owner has computers of owners as tests of the owner's screen show them: calm,
// crowded, hostile. Whoever imports it has its times of day in UTC.
package owner

import (
	"fmt"
	"strings"
	"time"

	"porchlight/agent/agentapi"
)

func init() { time.Local = time.UTC } // menu and notifications tell times of day

// Noon is when all of it is.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Account is that of a computer that is connected to none.
func Account() agentapi.Account {
	return agentapi.Account{Connected: true, Local: true, Name: "maya", Host: "maya.localhost:8443", URL: "https://maya.localhost:8443", AuthURL: "https://control.localhost:8443"}
}

// Pending is an app that waits for the owner, and Live one that was approved.
func Pending(name, label string, port int) agentapi.OwnerApp {
	return agentapi.OwnerApp{
		AppSummary:  agentapi.AppSummary{Name: name, Label: label, LocalPort: port, Status: agentapi.StatusPending},
		Listener:    agentapi.Listener{PID: 4711, Program: "python3", User: "maya"},
		RequestedAt: Noon,
	}
}

func Live(name, label string, port int) agentapi.OwnerApp {
	a := Pending(name, label, port)
	a.Status, a.Host = agentapi.StatusLive, name+".maya.localhost:8443"
	a.URL = "https://" + a.Host
	approved := Noon
	a.ApprovedAt, a.Lit = &approved, true
	return a
}

// With changes an app.
func With(a agentapi.OwnerApp, change func(*agentapi.OwnerApp)) agentapi.OwnerApp {
	change(&a)
	a.Lit = a.Status == agentapi.StatusLive && !a.Paused && a.Ailment == ""
	return a
}

// Everyday is how things are with an owner who has a few apps.
func Everyday() agentapi.OwnerState {
	return agentapi.OwnerState{Account: Account(), Here: 3, Apps: []agentapi.OwnerApp{
		With(Live("draft", "Blog draft", 4321), func(a *agentapi.OwnerApp) { a.Paused = true }),
		With(Live("home", "Home Assistant", 8123), func(a *agentapi.OwnerApp) { a.Ailment = "not answering" }),
		With(Live("notes", "Notes", 3000), func(a *agentapi.OwnerApp) {
			a.Connections = 4
			a.Here = []string{"carla.nunes@example.org", "maya@example.com"}
			a.OpenTo, a.OpenToCount = []string{"bob@example.com", "carla.nunes@example.org"}, 2
		}),
		Pending("paperless", "Paperless", 8010),
		Live("photos", "Photos", 2342),
		With(Live("recipes", "Recipes", 9000), func(a *agentapi.OwnerApp) { a.Status, a.Host, a.URL = agentapi.StatusStopped, "", "" }),
	}, Grants: []agentapi.Grant{
		{ID: "g1", ClientName: "Pocket Notes", Email: "bob@example.com", CallsToday: 12, LastCall: Noon},
		{ID: "g2", ClientName: "Backup script", ClientHost: "backup.example", Email: "maya@example.com"},
	}}
}

// Crowded has more of everything than the menu lists.
func Crowded() agentapi.OwnerState {
	s := agentapi.OwnerState{Account: Account(), Here: 900}
	var emails []string
	for i := range agentapi.MaxNamed {
		emails = append(emails, fmt.Sprintf("person%02d@example.com", i))
	}
	for i := range 300 {
		a := Pending(fmt.Sprintf("req%03d", i), fmt.Sprintf("Request %03d", i), 7000+i)
		a.RequestedAt = Noon.Add(-time.Duration(i) * time.Minute) // the last one waits longest
		s.Apps = append(s.Apps, a)
	}
	for i := range 200 {
		s.Apps = append(s.Apps, With(Live(fmt.Sprintf("app%03d", i), fmt.Sprintf("App %03d", i), 6000+i), func(a *agentapi.OwnerApp) {
			if i == 0 {
				a.Here, a.OpenTo, a.OpenToCount = emails, emails, 5000
			}
		}))
	}
	for i := range 40 {
		s.Grants = append(s.Grants, agentapi.Grant{ID: fmt.Sprintf("g%02d", i), ClientName: fmt.Sprintf("Client %02d", i), Email: "bob@example.com"})
	}
	return s
}

// Hostile is what programs and people call themselves to confuse a menu.
func Hostile() agentapi.OwnerState {
	return agentapi.OwnerState{Account: Account(), Apps: []agentapi.OwnerApp{
		With(Pending("long", strings.Repeat("Very long ", 10), 8010), func(a *agentapi.OwnerApp) { a.Listener = agentapi.Listener{} }),
		With(Pending("rtl", "מחברת", 8011), func(a *agentapi.OwnerApp) { a.Listener.User = "" }),
		With(Pending("ctl", "one\ntwo\x1b[31m", 8012), func(a *agentapi.OwnerApp) { a.Listener.Program = "a\nb" }),
		With(Live("amp", "R&D_notes <b>", 8013), func(a *agentapi.OwnerApp) {
			a.OpenTo, a.OpenToCount = []string{strings.Repeat("x", 60) + "@example.com", "מאיה@example.com"}, 2
		}),
	}, Grants: []agentapi.Grant{
		{ID: "g1", ClientName: strings.Repeat("Client ", 20), Email: strings.Repeat("y", 60) + "@example.com"},
		{ID: "g2", ClientName: "<b>قارئ</b>", Email: "bob@example.com"},
	}}
}

// Change changes a state.
func Change(s agentapi.OwnerState, fn func(*agentapi.OwnerState)) agentapi.OwnerState {
	fn(&s)
	return s
}

// Peopled is Everyday with people: some may open Notes, one knocks, two and a
// connected app are here; and so many more than these.
func Peopled(more int) (s agentapi.OwnerState, people []agentapi.Person, visitors []agentapi.Visitor) {
	s = Everyday()
	s.Account.Email = "maya@example.com"
	s.Knocks = []agentapi.Knock{{ID: "k1", AccountID: "dora", Email: "dora@example.org", App: "Notes", At: Noon.Add(-time.Minute)}}
	s.Groups = []agentapi.Group{
		{ID: "family", Name: "Family", Apps: []string{"Notes"}, Until: map[string]time.Time{"Notes": Noon.Add(36 * time.Hour)}},
		{ID: "friends", Name: "Friends", Apps: []string{}},
	}
	people = []agentapi.Person{
		{Email: "maya@example.com", AccountID: "maya", Role: agentapi.RoleOwner, Status: agentapi.PersonActive, Apps: []string{"Notes", "Photos"}},
		{Email: "anna@example.com", AccountID: "anna", Role: "member", Status: agentapi.PersonActive, Apps: []string{"Photos"}},
		{Email: "bob@example.com", AccountID: "bob", Role: "member", Status: agentapi.PersonActive, Apps: []string{"Notes"}, Until: map[string]time.Time{"Notes": Noon.Add(36 * time.Hour)}},
		{Email: "carla.nunes@example.org", AccountID: "carla", Role: "member", Status: agentapi.PersonActive, Apps: []string{"Notes"}},
		{Email: "kenji.watanabe@example.jp", AccountID: "kenji", Role: "member", Status: agentapi.PersonPending, Apps: []string{"Notes"}},
		{Email: "gone@example.com", AccountID: "gone", Role: "member", Status: agentapi.PersonRemoved},
	}
	for i := range more {
		email := fmt.Sprintf("person%03d@example.com", i)
		people = append(people, agentapi.Person{Email: email, AccountID: email, Role: "member", Status: agentapi.PersonActive, Apps: []string{}})
		if i < 40 {
			visitors = append(visitors, agentapi.Visitor{AccountID: email, Email: email, Apps: []string{"Notes"}, Connections: 1})
		}
	}
	visitors = append(visitors,
		agentapi.Visitor{AccountID: "maya", Email: "maya@example.com", You: true, GrantID: "g2", ClientName: "Backup script", Apps: []string{"Photos"}, Connections: 1},
		agentapi.Visitor{AccountID: "carla", Email: "carla.nunes@example.org", Apps: []string{"Notes"}, Connections: 4},
		agentapi.Visitor{AccountID: "anna", Email: "anna@example.com", Apps: []string{"Notes", "Photos"}, Connections: 2},
	)
	return s, people, visitors
}

// Doing is a live app from which something keeps visitors, or nothing.
func Doing(name, ailment string) agentapi.OwnerApp {
	return With(Live(name, "App "+name, 3000), func(a *agentapi.OwnerApp) { a.Ailment, a.HealthDetail = ailment, "It is "+ailment+"." })
}

// State has these apps, and no more.
func State(apps ...agentapi.OwnerApp) agentapi.OwnerState {
	return agentapi.OwnerState{Account: Account(), Apps: apps}
}

// Silence is what is wrong with an agent that does not answer.
const Silence = "Porchlight is not answering. Its process may be stopped or busy. This is how things were."

package desktop

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/ownersecret"
	"porchlight/desktop/language"
	"porchlight/desktop/menu"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/internal/words"
	"porchlight/test/owner"
	"porchlight/test/programs"
)

// TestEverythingIsSaid has the menu and the notifications speak the pseudo-locale, in
// which no letter of ours is plain: what has a plain vowel and came from nowhere else was
// never said through the catalogue. It changes the process' language, so it runs beside
// no other test.
func TestEverythingIsSaid(t *testing.T) {
	defer language.Speak(language.Spoken().Tag())
	language.Speak(words.Pseudo.Tag())
	state := owner.Everyday()
	state.Apps = append(state.Apps, hasChanged(), ofAnotherUser(), owner.With(owner.Live("x", "X", 9), func(a *agentapi.OwnerApp) { a.Ailment = "speaks HTTPS" }))
	state = language.InWords(state)
	state.Users = []agentapi.LocalUser{{ID: "33", Name: "www-data", Standing: agentapi.UserAsks}}
	people := menu.Picture{Now: owner.Noon, Share: menu.Offer{Port: 8000, Program: "python3"}}
	people.OwnerState, people.People, people.Visitors = owner.Peopled(20)
	people.OwnerState.Apps, people.Users = append(people.Apps, state.Apps[len(state.Apps)-3:]...), state.Users
	until := owner.Noon.Add(30 * time.Hour)
	dark := owner.Change(state, func(s *agentapi.OwnerState) { s.DarkSince = &until })
	away := owner.Change(state, func(s *agentapi.OwnerState) { s.AccessUntil = &until })

	said := []string{}
	pictures := []menu.Picture{people, {OwnerState: state, AtLogin: true}, {OwnerState: dark}, {OwnerState: away}, {OwnerState: agentapi.OwnerState{Account: owner.Account()}}, {OwnerState: state, Secret: ownersecret.ErrUnavailable}, {OwnerState: state, Secret: ownersecret.ErrLocked}}
	for _, p := range pictures {
		p.Now = owner.Noon
		m := menu.Draw(p)
		said = append(said, textsOf(m.Lines)...)
	}
	for _, n := range notesOf(people) {
		said = append(said, n.Title, n.Body)
		for _, b := range n.Buttons {
			said = append(said, b.Text)
		}
	}
	for _, v := range []verbs.Verb{verbs.Copy, verbs.Approve, verbs.Deny, verbs.Open, verbs.Pause, verbs.Resume, verbs.Revoke, verbs.AllowUser, verbs.RevokeGrant, verbs.Undo, verbs.Answer, verbs.Disconnect, verbs.Remove, verbs.Give, verbs.Dark, verbs.Light, verbs.SecretFile, verbs.Login} {
		said = append(said, failed(v))
	}
	for _, err := range []error{errSilent, fmt.Errorf("around: %w", errSilent), agentapi.Errorf(agentapi.CodeConflict, "%q is paused. Resume it first.", "Notes"), words.Errorf("Porchlight cannot start: %w", errors.New("0x7"))} {
		said = append(said, language.Sentence(err))
	}
	given := stringsIn(t, people, state)
	for _, text := range said {
		if plain := without(given, text); regexp.MustCompile(`[aeiou]`).MatchString(plain) {
			t.Errorf("%q was not said: %q", text, plain)
		}
	}
	if len(said) < 300 {
		t.Errorf("only %d texts were looked at", len(said))
	}
}

func hasChanged() agentapi.OwnerApp {
	return owner.With(owner.Pending("wiki", "Wiki", 7000), func(a *agentapi.OwnerApp) {
		a.ApprovedAt, a.ApprovedListener, a.Listener = &owner.Noon, &agentapi.Listener{User: "maya"}, agentapi.Listener{User: "eve", Program: "nc"}
		a.OpenTo, a.OpenToCount = []string{"bob@example.com"}, 3
	})
}

func ofAnotherUser() agentapi.OwnerApp {
	return owner.With(owner.Pending("todo", "Todo", 7001), func(a *agentapi.OwnerApp) {
		a.AskedBy, a.Listener, a.Asks = "www-data", agentapi.Listener{User: "www-data"}, &agentapi.Asks{Assistant: "???"}
	})
}

// notesOf are notifications of every kind.
func notesOf(p menu.Picture) (all []notes.Note) {
	p.Notices = []agentapi.Notice{
		{ID: 1, At: owner.Noon, Kind: agentapi.NoticeEnded, Ended: &agentapi.EndedShare{Email: "bob@example.com", AccountID: "bob", Apps: []string{"Notes"}, Until: owner.Noon, Closed: 2}},
		{ID: 2, At: owner.Noon, Kind: agentapi.NoticeFirstVisit, Visitor: &agentapi.FirstVisit{Email: "bob@example.com", AccountID: "bob", App: "Notes"}},
	}
	for i, kind := range []string{agentapi.NoticeAccepted, agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityWithdrawn, agentapi.ActivityRemoved, agentapi.NoticeUser} {
		p.Notices = append(p.Notices, agentapi.Notice{ID: uint64(i + 3), At: owner.Noon, Kind: kind})
	}
	for i := range p.Grants {
		p.Grants[i].CreatedAt = owner.Noon
	}
	for _, server := range []string{"https://porch.example", "own"} {
		now := owner.Noon
		a := notes.NewAnnouncer(notes.Told{Server: server}, func() time.Time { return now })
		all = append(all, a.Next(p.OwnerState, func() []string { return nil }).Show...)
		p.Trouble = words.Pseudo.Say("The server does not know this computer any more. Connect it again.")
		a.Next(p.OwnerState, func() []string { return nil })
		now = now.Add(2 * time.Minute)
		all = append(all, a.Next(p.OwnerState, func() []string { return nil }).Show...)
	}
	for _, n := range p.Notices { // together they are told as one
		s := p.OwnerState
		s.Notices = []agentapi.Notice{n}
		all = append(all, notes.NewAnnouncer(notes.Told{}, func() time.Time { return owner.Noon }).Next(s, func() []string { return nil }).Show...)
	}
	for _, app := range p.Apps { // and so are requests
		s := p.OwnerState
		s.Apps = []agentapi.OwnerApp{app}
		all = append(all, notes.NewAnnouncer(notes.Told{}, time.Now).Next(s, func() []string { return nil }).Show...)
	}
	for _, k := range p.Knocks {
		s := p.OwnerState
		s.Knocks = []agentapi.Knock{k}
		all = append(all, notes.NewAnnouncer(notes.Told{}, time.Now).Next(s, func() []string { return nil }).Show...)
	}
	for _, closed := range []agentapi.Closed{{}, {Closed: 1, Milliseconds: 400}, {Closed: 2, Milliseconds: 3}} {
		all = append(all, notes.Ended(verbs.Action{Verb: verbs.Dark}, "", closed), notes.Ended(verbs.Action{Verb: verbs.Pause, Label: "Notes"}, "", closed))
	}
	return all
}

func textsOf(lines []menu.Line) (out []string) {
	for _, l := range lines {
		if l.Text != "" {
			out = append(append(out, l.Text), textsOf(l.Sub)...)
		}
	}
	return out
}

// stringsIn are all texts of a picture, the longest first.
func stringsIn(t *testing.T, p menu.Picture, s agentapi.OwnerState) (out []string) {
	t.Helper()
	raw := programs.Got(json.Marshal([]any{p.OwnerState, p.People, p.Visitors, p.Share, s}))(t)
	for _, m := range regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(string(raw), -1) {
		out = append(out, m[1])
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(out)
}

// without is a text without what was given to it, and without hosts.
func without(given []string, text string) string {
	for _, one := range given {
		if len(one) > 2 {
			text = strings.ReplaceAll(text, one, "")
		}
	}
	return regexp.MustCompile(`[\w-]+(\.[\w-]+)+(:\d+)?`).ReplaceAllString(text, "")
}

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
	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
	"porchlight/internal/words"
)

// TestEverythingIsSaid has the menu and the notifications speak the pseudo-locale, in
// which no letter of ours is plain: what has a plain vowel and came from nowhere else was
// never said through the catalogue. It changes the process' language, so it runs beside
// no other test.
func TestEverythingIsSaid(t *testing.T) {
	defer language.Speak(language.Spoken().Tag())
	language.Speak(words.Pseudo.Tag())
	state := everyday()
	state.Apps = append(state.Apps, hasChanged(), ofAnotherUser(), with(live("x", "X", 9), func(a *agentapi.OwnerApp) { a.Health = agentapi.HealthHTTPS }))
	state.Users = []agentapi.LocalUser{{ID: "33", Name: "www-data", Standing: agentapi.UserAsks}}
	people := peopled(20)
	people.OwnerState.Apps, people.Users = append(people.Apps, state.Apps[len(state.Apps)-3:]...), state.Users
	until := noon.Add(30 * time.Hour)
	dark := change(state, func(s *agentapi.OwnerState) { s.DarkSince = &until })
	away := change(state, func(s *agentapi.OwnerState) { s.AccessUntil = &until })

	said := []string{}
	for _, m := range []menu{drawn(people), menuOf(state, true), menuOf(dark, false), menuOf(away, false), menuOf(agentapi.OwnerState{Account: account()}, false), menuWithout(state, errNoKeychain), menuWithout(state, errLockedKeychain)} {
		said = append(said, textsOf(m.lines)...)
	}
	for _, n := range notesOf(people) {
		said = append(said, n.title, n.body)
		for _, b := range n.buttons {
			said = append(said, b.text)
		}
	}
	for _, v := range []verbs.Verb{verbs.Copy, verbs.Approve, verbs.Deny, verbs.Open, verbs.Pause, verbs.Resume, verbs.Revoke, verbs.AllowUser, verbs.RevokeGrant, verbs.Undo, verbs.Answer, verbs.Disconnect, verbs.Remove, verbs.Give, verbs.Dark, verbs.Light, verbs.SecretFile, verbs.Login} {
		said = append(said, failed(v))
	}
	for _, err := range []error{errSilent, errNoKeychain, fmt.Errorf("around: %w", errLockedKeychain), agentapi.Errorf(agentapi.CodeConflict, "%q is paused. Resume it first.", "Notes"), words.Errorf("Porchlight cannot start: %w", errors.New("0x7"))} {
		said = append(said, language.ErrorInWords(err).Error())
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
	return with(pending("wiki", "Wiki", 7000), func(a *agentapi.OwnerApp) {
		a.ApprovedAt, a.ApprovedListener, a.Listener = &noon, &agentapi.Listener{User: "maya"}, agentapi.Listener{User: "eve", Program: "nc"}
		a.OpenTo, a.OpenToCount = []string{"bob@example.com"}, 3
	})
}

func ofAnotherUser() agentapi.OwnerApp {
	return with(pending("todo", "Todo", 7001), func(a *agentapi.OwnerApp) { a.AskedBy, a.Listener = "www-data", agentapi.Listener{User: "www-data"} })
}

// notesOf are notifications of every kind.
func notesOf(p picture) (all []note) {
	p.Notices = []agentapi.Notice{
		{ID: 1, At: noon, Kind: agentapi.NoticeEnded, Ended: &agentapi.EndedShare{Email: "bob@example.com", AccountID: "bob", Apps: []string{"Notes"}, Until: noon, Closed: 2}},
		{ID: 2, At: noon, Kind: agentapi.NoticeFirstVisit, Visitor: &agentapi.FirstVisit{Email: "bob@example.com", AccountID: "bob", App: "Notes"}},
	}
	for i, kind := range []string{agentapi.NoticeAccepted, agentapi.ActivityInvited, agentapi.ActivityGiven, agentapi.ActivityWithdrawn, agentapi.ActivityRemoved, agentapi.NoticeUser} {
		p.Notices = append(p.Notices, agentapi.Notice{ID: uint64(i + 3), At: noon, Kind: kind})
	}
	for i := range p.Grants {
		p.Grants[i].CreatedAt = noon
	}
	for _, server := range []string{"https://porch.example", "own"} {
		now := noon
		a := newAnnouncer(told{server: server}, func() time.Time { return now })
		all = append(all, a.next(p.OwnerState, func() quiet { return nil }).show...)
		p.Trouble = words.Pseudo.Say("The server does not know this computer any more. Connect it again.")
		a.next(p.OwnerState, func() quiet { return nil })
		now = now.Add(2 * lasting)
		all = append(all, a.next(p.OwnerState, func() quiet { return nil }).show...)
	}
	for _, n := range p.Notices { // together they are told as one
		s := p.OwnerState
		s.Notices = []agentapi.Notice{n}
		all = append(all, newAnnouncer(told{}, func() time.Time { return noon }).next(s, func() quiet { return nil }).show...)
	}
	for _, app := range p.Apps {
		all = append(all, requestNote(app, p.Account.Host))
	}
	for _, k := range p.Knocks {
		all = append(all, knockNote(k))
	}
	for _, closed := range []agentapi.Closed{{}, {Closed: 1, Milliseconds: 400}, {Closed: 2, Milliseconds: 3}} {
		all = append(all, ended(verbs.Action{Verb: verbs.Dark}, "", closed), ended(verbs.Action{Verb: verbs.Pause, Label: "Notes"}, "", closed))
	}
	return all
}

func textsOf(lines []line) (out []string) {
	for _, l := range lines {
		if l.text != "" {
			out = append(append(out, l.text), textsOf(l.sub)...)
		}
	}
	return out
}

// stringsIn are all texts of a picture, the longest first.
func stringsIn(t *testing.T, p picture, s agentapi.OwnerState) (out []string) {
	t.Helper()
	raw, err := json.Marshal([]any{p.OwnerState, p.people, p.visitors, p.share, s})
	if err != nil {
		t.Fatal(err)
	}
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

package main

import (
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// TestInviteShapes: one address answers as it always did; several answer for each; and
// the link of an invitation is another than the mailed one.
func TestInviteShapes(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.NotFoundHandler())
	s.ok("settings", "--display-name", "Maya")
	var all agentapi.Invitations
	s.json(&all, "people", "invite", bob, "lena@example.com", "BOB@example.com", "--app", "Notes", "--line", "Have a look.", "--until", "2h")
	if len(all.Invitations) != 2 {
		t.Fatalf("%+v", all)
	}
	for _, one := range all.Invitations {
		if one.Status != "pending" || one.Error != "" || one.AccountID == "" || !strings.HasPrefix(one.URL, "https://notes.") || !strings.Contains(one.Link.URL, "/i/") {
			t.Errorf("%+v", one)
		}
	}
	var one agentapi.Invited
	s.json(&one, "people", "invite", "carl@example.com", "--app", "Notes", "--no-mail")
	if one.Email != "carl@example.com" || one.Link == nil {
		t.Errorf("%+v", one)
	}
	var link, again agentapi.InvitationLink
	s.json(&link, "people", "link", "carl@example.com")
	s.json(&again, "people", "link", one.AccountID)
	if link != *one.Link || again != link {
		t.Errorf("the link is %+v, then %+v, of %+v", link, again, one)
	}
	var mails []agentapi.Mail
	s.json(&mails, "outbox")
	if len(mails) != 2 {
		t.Fatalf("%d mails: %+v", len(mails), mails)
	}
	for _, m := range mails {
		if !strings.HasPrefix(m.Subject, "Maya (") || !strings.Contains(m.Text, "Maya wrote:\n> Have a look.") || strings.Contains(m.Text, "/i/") {
			t.Errorf("%s\n%s", m.Subject, m.Text)
		}
	}
	// What the owner decided is in the activity, whoever was asked for at once.
	var lines []agentapi.Activity
	s.json(&lines, "activity")
	invited := 0
	for _, line := range lines {
		if line.Kind == agentapi.ActivityInvited {
			invited++
		}
	}
	if invited != 3 {
		t.Errorf("%d lines tell of invitations: %+v", invited, lines)
	}
}

func TestInviteWords(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	absent := shell{t, t.TempDir()}
	s.publishing("notes", "Notes", http.NotFoundHandler())
	many := strings.TrimSpace(strings.Repeat("a@example.com ", agentapi.MaxInvited+1))
	for _, step := range []struct {
		in   shell
		args string
		code int
		want string
	}{
		{s, "people invite bob@example.com lena@example.com --app Notes", 0, "lena@example.com is invited to Notes, at https://notes."},
		{s, "people invite nobody lena@example.com --app Notes", commandline.ExitRefused, "nobody is not invited: That does not look like"},
		{s, "people invite nobody lena@example.com --app Notes", commandline.ExitRefused, "1 of 2 addresses could not be invited"},
		{s, "people invite nobody --app Notes --no-mail", commandline.ExitRefused, "That does not look like"},
		{s, "people invite ann@example.com --app Notes --no-mail", 0, "Their link, which signs nobody in: https://control.localhost:"},
		{s, "people link ann@example.com", 0, "/i/"},
		{s, "people link ann@example.com", 0, "signs nobody in"},
		{s, "people link nobody@example.com", commandline.ExitRefused, "not on the list"},
		{s, "people link owner@root.localhost", commandline.ExitRefused, ""},
		{s, "people invite bob@example.com --app Notes --line see.evil.example", commandline.ExitRefused, "web or mail address"},
		{s, "people invite bob@example.com lena@example.com --app Diary", commandline.ExitRefused, "Diary"},
		{s, "settings --display-name maya@example.com", commandline.ExitRefused, "neither an @ nor a dot"},
		{absent, "people invite " + many + " --app Notes", commandline.ExitUsage, "at most 50"},
		{absent, "people invite --app Notes", commandline.ExitUsage, "EMAIL"},
		{absent, "people link", commandline.ExitUsage, "ID"},
	} {
		code, out, errs := step.in.run(strings.Fields(step.args)...)
		if code != step.code || !strings.Contains(out+errs, step.want) {
			t.Errorf("%s: exit %d, want %d with %q\n%s%s", step.args, code, step.code, step.want, out, errs)
		}
	}
}

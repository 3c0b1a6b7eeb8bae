package people_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Several addresses at once give access as single invitations do: what was taken away
// before is given again, and what each was invited to is in the activity.
func TestInviteAll(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	programs.Got(r.owner.ChangeSettings(t.Context(), map[string]any{"displayName": "Maya"}))(t)
	id := r.invited(t, true, "Notes")
	programs.Got(r.owner.RemoveHeld(t.Context(), agentapi.RemoveRequest{AccountID: id, HoldSeconds: 60}))(t)
	before := r.mails(t)
	made, err := r.owner.InviteAll(t.Context(), agentapi.InvitationsRequest{
		Emails: []string{bobMail, "nobody", "lena@example.com"}, Apps: []string{"Notes"}, Line: "Have a look.", Until: "2h",
	})
	if err != nil || len(made.Invitations) != 3 || made.Invitations[1].Error == "" || made.Invitations[1].Link != nil {
		t.Fatalf("%+v, %v", made, err)
	}
	for _, i := range []int{0, 2} {
		one := made.Invitations[i]
		link, err := r.owner.InvitationLink(t.Context(), one.AccountID)
		if one.Error != "" || one.Status != agentapi.PersonPending || err != nil || one.Link == nil || link != *one.Link {
			t.Errorf("%+v, %+v, %v", one, link, err)
		}
		people, err := r.owner.People(t.Context())
		at := slices.IndexFunc(people.Members, func(p agentapi.Person) bool { return p.AccountID == one.AccountID })
		if err != nil || at < 0 || people.Members[at].Status != agentapi.PersonPending || people.Members[at].Until["Notes"].IsZero() {
			t.Errorf("%s is %d of %+v, %v", one.Email, at, people, err)
		}
	}
	if n := r.mails(t) - before; n != 2 {
		t.Errorf("%d mails", n)
	}
	// A program neither sets nor sees the line and the name.
	capability := r.capability(t)
	got := r.call(t, http.MethodPost, "/people/invite", `{"email":"carl@example.com","apps":["Notes"],"line":"Buy this","name":"Your bank","displayName":"Your bank"}`, capability)
	if got.status != http.StatusOK {
		t.Fatalf("HTTP %d %v", got.status, got.body)
	}
	mails, err := r.outbox.List(t.Context(), 1)
	if err != nil || mails[0].To != "carl@example.com" {
		t.Fatalf("the mail of a program's invitation is %+v, %v", mails, err)
	}
	for _, theirs := range []string{"Maya", "bank", "Buy this"} {
		if strings.Contains(mails[0].Subject+mails[0].Text, theirs) {
			t.Errorf("the mail of a program's invitation has %q:\n%s", theirs, mails[0].Text)
		}
	}
	for _, path := range []string{"/people/invitations", "/people/link"} {
		if got := r.call(t, http.MethodPost, path, `{}`, capability); got.status != http.StatusNotFound {
			t.Errorf("%s: HTTP %d for a program", path, got.status)
		}
	}
}

package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
)

func TestInvitationNames(t *testing.T) {
	t.Parallel()
	name := newInvitationName()
	path := InvitationPath(name)
	if len(path) != len("/i/aaaa-aaaa-aaaa-aaaa") {
		t.Errorf("%q leads to %q", name, path)
	}
	typed := strings.TrimPrefix(path, PathInvitationName)
	for _, typed := range []string{typed, name, strings.ToUpper(typed)} {
		if got, ok := ParseInvitationName(typed); got != name || !ok {
			t.Errorf("%q is read as %q, %v", typed, got, ok)
		}
	}
	for _, typed := range []string{"", "-", typed + "a", typed[:len(typed)-1], "aaaa-aaaa-aaaa-aaa1", "aaaa/aaaa/aaaa/aaaa", "aaaaaaaaaaaaaaaé", strings.Repeat("-", 200)} {
		if got, ok := ParseInvitationName(typed); ok {
			t.Errorf("%q is read as %q", typed, got)
		}
	}
}

func (b *bench) inviteAll(e controlapi.Enrolled, all controlapi.Invitations) []controlapi.InvitationMade {
	b.t.Helper()
	return ok[controlapi.InvitationsMade](b.t)(b.People.InviteAll(b.t.Context(), e.Computer.ID, all)).Invitations
}

func nameOf(t *testing.T, l controlapi.InvitationLink) string {
	t.Helper()
	_, typed, _ := strings.Cut(l.URL, PathInvitationName)
	name, ok := ParseInvitationName(typed)
	if !ok {
		t.Fatalf("the link is %q", l.URL)
	}
	return name
}

// The owner's budget holds over single invitations and several at once: those beyond
// it are told so, and leave nothing behind.
func TestInviteAllSpendsTheBudget(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	var emails []string
	for n := range 48 {
		emails = append(emails, fmt.Sprintf("p%d@example.com", n))
	}
	for _, one := range b.inviteAll(e, controlapi.Invitations{Emails: emails, Apps: []string{"app1"}}) {
		if one.Refused != nil {
			t.Fatalf("%+v", one)
		}
	}
	b.invite(e, "app1")
	rows := b.rows("")
	made := b.inviteAll(e, controlapi.Invitations{Emails: []string{"q0@example.com", "q1@example.com", "q2@example.com"}, Apps: []string{"app1"}, NoMail: true})
	if made[0].Refused != nil || len(made) != 3 {
		t.Fatalf("%+v", made)
	}
	for _, one := range made[1:] {
		if one.Refused == nil || one.Refused.Code != controlapi.CodeTooMany || one.Person != nil || one.Link != nil {
			t.Errorf("beyond the budget: %+v", one)
		}
		if _, err := b.Accounts.ByEmail(t.Context(), one.Email); !IsRefusal(err, controlapi.CodeNotFound) {
			t.Errorf("%s has an account: %v", one.Email, err)
		}
	}
	// Of the first of them: account and its three indexes, person, membership, invitation, its
	// name and index, and what its address has spent, of all and of invitations.
	if more := b.rows("") - rows; more != 11 {
		t.Errorf("%d rows more", more)
	}
	b.clock.Add(24*time.Hour + time.Minute)
	for _, one := range b.inviteAll(e, controlapi.Invitations{Emails: []string{"q1@example.com"}, Apps: []string{"app1"}}) {
		if one.Refused != nil {
			t.Errorf("a day later: %+v", one)
		}
	}
}

// An invitation without a mail writes the same, and its link works by the code.
func TestInviteWithoutMail(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	e := b.owner()
	b.apps(e, "app1")
	made := b.inviteAll(e, controlapi.Invitations{Emails: []string{bob}, Apps: []string{"app1"}, NoMail: true, Line: "Have a look."})[0]
	if len(b.mails()) != 0 || made.Person.Status != controlapi.PersonPending {
		t.Fatalf("%d mails, %+v", len(b.mails()), made)
	}
	name := nameOf(t, *made.Link)
	seen := ok[NamedInvitation](t)(b.People.LookAtNamed(t.Context(), name, "", ""))
	if seen.Proven || seen.Email+seen.Line+seen.Root != "" || seen.Apps != nil || !seen.Until.IsZero() || seen.Owner != e.Email {
		t.Errorf("without a proof: %+v", seen)
	}
	browser := ok[string](t)(b.BeginNamed(t.Context(), name, Browser{Client: home}))
	b.until("the mail", func() bool { return len(b.mails()) == 1 })
	m := b.mails()[0]
	if m.To != bob {
		t.Fatalf("the code went to %s", m.To)
	}
	in := ok[SignedIn](t)(b.SignIn.WithCode(t.Context(), browser, codeLine.FindStringSubmatch(m.Text)[1], home))
	if in.ReturnTo != InvitationPath(name) || in.Account.Email != bob {
		t.Errorf("signed in: %+v", in)
	}
	seen = ok[NamedInvitation](t)(b.People.LookAtNamed(t.Context(), name, in.Account.ID, ""))
	if !seen.Proven || seen.Email != bob || seen.Line != "Have a look." || len(seen.Apps) != 1 {
		t.Errorf("with a proof: %+v", seen)
	}
	for _, account := range []string{"", e.AccountID} {
		_, err := b.People.AcceptNamed(t.Context(), name, account)
		wantRefusal(t, err, controlapi.CodeForbidden)
	}
	if got := ok[Accepted](t)(b.People.AcceptNamed(t.Context(), name, in.Account.ID)); got.Token != "" || !strings.HasPrefix(got.Host, "notes.") {
		t.Errorf("accepted: %+v", got)
	}
	_, err := b.People.AcceptNamed(t.Context(), name, in.Account.ID)
	wantRefusal(t, err, controlapi.CodeNotFound)
	_, err = b.People.Link(t.Context(), e.Computer.ID, controlapi.LinkWanted{AccountID: in.Account.ID})
	wantRefusal(t, err, controlapi.CodeInvalid)
	b.clock.Add(invitationLife + overKept + time.Hour)
	if n := b.rows("used-invitation/") + b.rows("invitation-name/"); n != 0 {
		t.Errorf("%d rows of a used invitation are kept for ever", n)
	}
}

// unnamed stores an open invitation as it was before there were names.
func (b *bench) unnamed(token string) {
	b.t.Helper()
	hash := hashOf(purposeInvitation, token)
	b.change(func(tx *txn) {
		row, _ := get[invitation](tx, keyInvitation(hash))
		tx.delete(keyInvitationName(row.Name))
		row.Name = ""
		tx.put(keyInvitation(hash), row, invitationLife)
	})
}

// The link of the newest invitation is told again as long as it is open. One from
// before there were links gets one.
func TestInvitationLink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	p, token := b.invite(e, "app1")
	first := ok[controlapi.InvitationLink](t)(b.People.Link(t.Context(), e.Computer.ID, controlapi.LinkWanted{AccountID: p.AccountID}))
	if again := ok[controlapi.InvitationLink](t)(b.People.Link(t.Context(), e.Computer.ID, controlapi.LinkWanted{AccountID: p.AccountID})); again != first {
		t.Errorf("%v, then %v", first, again)
	}
	b.unnamed(token)
	named := ok[controlapi.InvitationLink](t)(b.People.Link(t.Context(), e.Computer.ID, controlapi.LinkWanted{AccountID: p.AccountID}))
	if named.URL == first.URL || !named.Until.Equal(first.Until) {
		t.Errorf("the old one's link is %+v, of before %+v", named, first)
	}
	ok[NamedInvitation](t)(b.People.LookAtNamed(t.Context(), nameOf(t, named), "", ""))
	b.clock.Add(time.Hour)
	newest := *b.inviteAll(e, controlapi.Invitations{Emails: []string{bob}, Apps: []string{"app1"}})[0].Link
	if got := ok[controlapi.InvitationLink](t)(b.People.Link(t.Context(), e.Computer.ID, controlapi.LinkWanted{AccountID: p.AccountID})); got != newest {
		t.Errorf("the newest is %v, and told %v", newest, got)
	}
	// Using the mailed link of the newest uses its other address up.
	ok[Accepted](t)(b.People.AcceptInvitation(t.Context(), b.invitation(bob), "", home))
	_, err := b.People.LookAtNamed(t.Context(), nameOf(t, newest), "", "")
	wantRefusal(t, err, controlapi.CodeNotFound)
	for _, who := range []string{e.AccountID, "nobody"} {
		_, err = b.People.Link(t.Context(), e.Computer.ID, controlapi.LinkWanted{AccountID: who})
		wantRefusal(t, err, controlapi.CodeInvalid)
	}
	ok[controlapi.Person](t)(b.People.Remove(t.Context(), e.Computer.ID, controlapi.Remove{AccountID: p.AccountID}))
	_, err = b.People.Link(t.Context(), e.Computer.ID, controlapi.LinkWanted{AccountID: p.AccountID})
	wantRefusal(t, err, controlapi.CodeInvalid)
	_, err = b.People.LookAtNamed(t.Context(), nameOf(t, named), "", "")
	wantRefusal(t, err, controlapi.CodeNotFound)
	_, err = b.BeginNamed(t.Context(), nameOf(t, named), Browser{Client: home})
	wantRefusal(t, err, controlapi.CodeNotFound)
}

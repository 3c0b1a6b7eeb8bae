package control

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

// ended looks for what is to end, as runEnds does.
func (b *bench) ended() {
	b.t.Helper()
	programs.Got(b.People.endDue(b.t.Context()))(b.t)
}

func rfc(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// dated is a computer with two apps and a member who has an app password for the
// first, which ends in an hour.
func dated(t *testing.T, change ...func(*Config)) (b *bench, id, account string) {
	t.Helper()
	b = newBench(t, change...)
	e := b.owner()
	b.apps(e, "app1", "app2")
	id = e.Computer.ID
	bob := b.joined(id, "bob@example.com", "app1", "app2")
	_, hash := newPassword()
	row := appPassword{ID: anID(), AccountID: bob.ID, AppID: "app1", Name: "phone", Hash: hash, InvitedAt: b.rowOf(id, bob.ID).InvitedAt}
	b.keep(keyPassword(id, bob.ID, row.ID), row)
	ok[controlapi.Person](t)(b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: bob.ID, App: "app1", Granted: true, Until: rfc(b.now().Add(time.Hour))}))
	return b, id, bob.ID
}

func (b *bench) passwords(id string) int {
	b.t.Helper()
	return len(ok[controlapi.Snapshot](b.t)(b.Agents.Snapshot(b.t.Context(), id)).Passwords)
}

// Weakness: a program that takes an app away and gives it again made a share endless that
// the owner had ended.
// Checked: it comes back until then, also after a removal and an invitation; what the
// owner does with it, and the end itself, settle it.
func TestAProgramKeepsTheOwnersEnds(t *testing.T) {
	t.Parallel()
	b, id, account := dated(t)
	end := b.rowOf(id, account).Until["app1"]
	ctx := t.Context()
	is := func(what string, until time.Time, apps ...string) {
		t.Helper()
		p := b.rowOf(id, account)
		if !slices.Equal(p.Apps, apps) || !p.Until["app1"].Equal(until) || len(p.Until) != map[bool]int{true: 0, false: 1}[until.IsZero()] {
			t.Errorf("%s: %+v, want %v until %v", what, p, apps, until)
		}
	}
	withdraw := func() {
		ok[controlapi.Person](t)(b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: account, App: "app1", Program: true}))
	}
	give := func() {
		ok[controlapi.Person](t)(b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: account, App: "app1", Granted: true, Program: true}))
	}
	invite := func(program bool) {
		email := b.rowOf(id, account).Email
		ok[controlapi.Person](t)(b.People.Invite(ctx, id, controlapi.Invite{Email: email, Apps: []string{"app1"}, Program: program, Until: map[bool]string{true: "never"}[program]}))
	}
	withdraw()
	withdraw()
	is("withdrawn", time.Time{}, "app2")
	ok[controlapi.Person](t)(b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: account, App: "app2", Granted: true, Program: true}))
	give()
	is("given again", end, "app1", "app2")
	if b.rows("ends/") != 1 || len(b.rowOf(id, account).Kept) != 0 {
		t.Errorf("indexed %d, kept %v", b.rows("ends/"), b.rowOf(id, account).Kept)
	}
	withdraw()
	invite(true)
	is("withdrawn and invited", end, "app1", "app2")
	ok[controlapi.Person](t)(b.People.Remove(ctx, id, controlapi.Remove{AccountID: account, Program: true}))
	invite(true)
	is("removed and invited", end, "app1")

	withdraw()
	ok[controlapi.Person](t)(b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: account, App: "app1", Granted: true}))
	is("given by the owner", time.Time{}, "app1")
	withdraw()
	give()
	is("given for ever, as the owner had", time.Time{}, "app1")

	ok[controlapi.Person](t)(b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: account, App: "app1", Granted: true, Until: end.Format(time.RFC3339)}))
	withdraw()
	ok[controlapi.Person](t)(b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: account, App: "app1"}))
	give()
	is("taken away by the owner too", time.Time{}, "app1")

	ok[controlapi.Person](t)(b.People.SetAccess(ctx, id, controlapi.SetAccess{AccountID: account, App: "app1", Granted: true, Until: end.Format(time.RFC3339)}))
	withdraw()
	b.clock.Add(2 * time.Hour)
	b.clock.Add(-2 * time.Hour) // and a clock that was ahead settles nothing
	b.ended()
	give()
	is("after a clock that was ahead", end, "app1")
	withdraw()
	b.clock.Add(2 * time.Hour)
	give()
	is("when the end is over", time.Time{}, "app1")
}

// What has ended has left the row, so that a node of an earlier version sees it too;
// the password opens nothing, and is gone when the app is given again.
func TestAnEndLeavesTheRow(t *testing.T) {
	t.Parallel()
	b, id, account := dated(t)
	b.clock.Add(time.Hour - 2*time.Second)
	b.ended()
	if p := b.rowOf(id, account); len(p.Apps) != 2 || b.passwords(id) != 1 || b.rows("ends/") != 1 {
		t.Fatalf("before the end: %+v", p)
	}
	b.clock.Add(3 * time.Second)
	// Read before anybody looked, it has ended already.
	s := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), id))
	if !slices.ContainsFunc(s.People, func(p controlapi.Person) bool { return p.AccountID == account && len(p.Apps) == 1 }) || len(s.Passwords) != 0 {
		t.Errorf("the snapshot has %+v", s)
	}
	b.ended()
	p := b.rowOf(id, account)
	if !slices.Equal(p.Apps, []string{"app2"}) || len(p.Until) != 0 || p.Ended["app1"].IsZero() || p.Status != controlapi.PersonActive {
		t.Errorf("after the end: %+v", p)
	}
	if b.rows("ends/") != 0 || b.rows("ended/") != 1 {
		t.Errorf("indexed: %d, %d", b.rows("ends/"), b.rows("ended/"))
	}
	if list := ok[[]controlapi.PasswordInfo](t)(b.Passwords.OfComputer(t.Context(), id)); len(list) != 0 {
		t.Errorf("passwords %+v", list)
	}
	ok[controlapi.Person](t)(b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: account, App: "app1", Granted: true}))
	if p := b.rowOf(id, account); len(p.Apps) != 2 || len(p.Until)+len(p.Ended) != 0 || b.passwords(id) != 0 || b.rows("ended/") != 0 {
		t.Errorf("given again: %+v with %d passwords", p, b.passwords(id))
	}
}

// Weakness: a clock that is wrongly ahead ends what is to go on.
// Checked: once it is right again, the share is back with its end and its passwords.
func TestAClockThatWasAheadEndsNothing(t *testing.T) {
	t.Parallel()
	b, id, account := dated(t)
	before := b.rowOf(id, account)
	b.clock.Add(20 * 24 * time.Hour)
	b.ended()
	if p := b.rowOf(id, account); len(p.Apps) != 1 {
		t.Fatalf("ahead: %+v", p)
	}
	b.clock.Add(-20 * 24 * time.Hour)
	b.ended()
	p := b.rowOf(id, account)
	if !slices.Equal(p.Apps, before.Apps) || !sameEnds(p.Until, before.Until) || len(p.Ended) != 0 || b.passwords(id) != 1 {
		t.Errorf("right again: %+v, want %+v, with %d passwords", p, before, b.passwords(id))
	}
	if b.rows("ends/") != 1 || b.rows("ended/") != 0 {
		t.Errorf("indexed: %d, %d", b.rows("ends/"), b.rows("ended/"))
	}
}

// What ended long ago is forgotten, with what it left behind.
func TestEndedSharesAreForgotten(t *testing.T) {
	t.Parallel()
	b, id, account := dated(t)
	b.clock.Add(2 * time.Hour)
	b.ended()
	b.clock.Add(endedFor)
	b.ended()
	p := b.rowOf(id, account)
	if len(p.Ended) != 0 || !slices.Equal(p.Apps, []string{"app2"}) || b.rows("ended/") != 0 || b.rows(keyPersonPasswords(id, account)) != 0 {
		t.Errorf("left behind: %+v, %d passwords", p, b.rows(keyPersonPasswords(id, account)))
	}
}

// A node of an earlier version writes a row without the ends it does not know: the
// index ends the share all the same.
func TestAnEndOutlivesAnEarlierNode(t *testing.T) {
	t.Parallel()
	b, id, account := dated(t)
	edit(b, keyPerson(id, account), func(p *person) { p.Until = nil })
	b.clock.Add(2 * time.Hour)
	b.ended()
	if p := b.rowOf(id, account); !slices.Equal(p.Apps, []string{"app2"}) || b.rows("ends/") != 0 {
		t.Errorf("%+v", p)
	}
}

// What is given again between the look at what is to end and the ending stays: the end
// that was seen is not its end any more.
func TestGivenAgainAsItEnds(t *testing.T) {
	t.Parallel()
	b, id, account := dated(t)
	b.clock.Add(2 * time.Hour)
	look := ok[endsLook](t)(b.People.lookAtEnds(t.Context()))
	if len(look.due) != 1 {
		t.Fatalf("due: %+v", look.due)
	}
	ok[controlapi.Person](t)(b.People.SetAccess(t.Context(), id, controlapi.SetAccess{AccountID: account, App: "app1", Granted: true, Until: controlapi.UntilNever}))
	b.change(func(tx *txn) { tx.carryOut(look.due[0]) })
	if p := b.rowOf(id, account); !slices.Equal(p.Apps, []string{"app1", "app2"}) || len(p.Until)+len(p.Ended) != 0 {
		t.Errorf("given for ever, it ended: %+v", p)
	}
}

// Nothing of an end outlives its app, its person or its computer.
func TestEndsGoWithWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	for what, gone := range map[string]func(b *bench, id, account string) error{
		"the app": func(b *bench, id, _ string) error {
			return b.Agents.PutApps(b.t.Context(), id, controlapi.Apps{Apps: []controlapi.App{{ID: "app2", Name: "app2", Label: "app2", Live: true}}})
		},
		"a withdrawal": func(b *bench, id, account string) error {
			_, err := b.People.SetAccess(b.t.Context(), id, controlapi.SetAccess{AccountID: account, App: "app1"})
			return err
		},
		"a removal, and another invitation": func(b *bench, id, account string) error {
			if _, err := b.People.Remove(b.t.Context(), id, controlapi.Remove{AccountID: account}); err != nil {
				return err
			}
			_, err := b.People.Invite(b.t.Context(), id, controlapi.Invite{Email: "bob@example.com", Apps: []string{"app1"}})
			return err
		},
		"the computer": func(b *bench, id, _ string) error {
			return b.Computers.Remove(b.t.Context(), b.owner().AccountID, "maya")
		},
	} {
		for _, over := range []bool{false, true} {
			t.Run(fmt.Sprint(what, ", ended ", over), func(t *testing.T) {
				t.Parallel()
				b, id, account := dated(t)
				if over {
					b.clock.Add(2 * time.Hour)
					b.ended()
				}
				programs.Must(t, gone(b, id, account))
				if b.rows("ends/")+b.rows("ended/") != 0 {
					t.Errorf("indexed: %d, %d", b.rows("ends/"), b.rows("ended/"))
				}
				b.clock.Add(3 * time.Hour)
				b.ended()
			})
		}
	}
}

// The owner's window says a refusal in its language, also one that names a time.
func TestPastEndIsRefusedInEveryLanguage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 9, 5, 0, 0, time.UTC)
	_, err := parseUntil("2026-11-28T10:05:00+01:00", now)
	refusal, ok := errors.AsType[*controlapi.Error](err)
	if !ok {
		t.Fatalf("an end that is now: %v", err)
	}
	for language, want := range map[words.Language]string{
		words.English: "The end of a share has to be later than now. The server's clock says 09:05 on 28 November 2026 (UTC).",
		words.German:  "Eine Freigabe muss später enden als jetzt. Die Uhr des Servers zeigt 09:05 am 28. November 2026 (UTC).",
	} {
		if said := language.Tell(refusal.Sentence()); said != want {
			t.Errorf("%s: %q, want %q", language.Name(), said, want)
		}
	}
	if said := words.English.Tell(refusal.Sentence()); refusal.Message != said {
		t.Errorf("the message %q is another than %q", refusal.Message, said)
	}
}

package control

import (
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// amongOthers is a bench of a service on the internet: under localhost every name goes.
func amongOthers(c *Config) {
	c.Domain, c.AuthHost, c.PublicPort = "porch.example", "control.porch.example", 443
}

// Weakness: a computer called mail, wpad or login is taken by programs and people
// for the service's own, and one called xn--… is shown as other letters. Checked:
// no new computer gets such a name, nothing is left of the attempt, and a computer
// that has one keeps it.
func TestNamesOfServices(t *testing.T) {
	t.Parallel()
	b := newBench(t, amongOthers)
	for name := range strings.FieldsSeq(`postmaster abuse hostmaster webmaster info support sales noc security ftp
		mail mail2 smtp imap pop pop3 mx mx1 ns ns1 dns wpad autodiscover autoconfig isatap mta-sts localhost broadcasthost
		relay relay1 relay12 node node2
		login signin admin api auth oauth account accounts static cdn status help root ssl tls
		xn--mya-hoa xn-- ab--c 12--`) {
		_, err := b.Computers.Ensure(t.Context(), "maya@example.com", name)
		if !IsRefusal(err, controlapi.CodeInvalid) || !strings.Contains(err.Error(), "Choose another") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := b.rows("account/"); n != 0 {
		t.Errorf("%d accounts were made", n)
	}
	for _, name := range []string{"maya", "mailbox", "nas1", "relay-1", "nodered", "a-b", "a-", "abc---b", "x-n--y", "mx-5", "information"} {
		if _, err := b.Computers.Ensure(t.Context(), "maya@example.com", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	// As a store written before has it.
	e := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", "mine"))
	edit(b, keyComputer(e.Computer.ID), func(c *computer) { c.Name = "mail" })
	b.keep(keyComputerName("mail"), e.Computer.ID)
	if again, err := b.Computers.Ensure(t.Context(), "maya@example.com", "mail"); err != nil || again.Computer.ID != e.Computer.ID {
		t.Errorf("a computer that has such a name lost it: %+v, %v", again, err)
	}
	if err := b.ValidShortName("mail"); err != nil {
		t.Errorf("visitors of a computer that has such a name are refused: %v", err)
	}
}

// A name is refused where its owner chooses it, too, and the code can be used for
// another one.
func TestEnrolmentRefusesNames(t *testing.T) {
	t.Parallel()
	b := newBench(t, amongOthers)
	maya := ok[Account](t)(b.Accounts.Ensure(t.Context(), "maya@example.com"))
	session := b.newSession(maya)
	started := ok[controlapi.EnrolStarted](t)(b.Enrolment.Begin(t.Context(), controlapi.EnrolRequest{Platform: "linux"}, home))
	_, err := b.Enrolment.Confirm(t.Context(), session, started.UserCode, "wpad", false, home)
	wantRefusal(t, err, controlapi.CodeInvalid)
	if done := ok[Confirmed](t)(b.Enrolment.Confirm(t.Context(), session, started.UserCode, "nas", false, home)); done.Computer.Name != "nas" {
		t.Errorf("confirmed %+v", done)
	}
}

// Weakness: a name somebody gave up could be taken by anybody at once, with
// everything browsers still held of it. Checked: only the account that had it may
// take it for ninety days; whoever takes it later is told that it was another's,
// also after it went to and fro.
func TestFreedNameIsKeptBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, amongOthers)
	take := func(email string) (controlapi.Enrolled, error) { return b.Computers.Ensure(t.Context(), email, "nest") }
	remove := func(e controlapi.Enrolled) {
		t.Helper()
		programs.Must(t, b.Computers.Remove(t.Context(), e.AccountID, "nest"))
	}
	maya := ok[controlapi.Enrolled](t)(take("maya@example.com"))
	remove(maya)

	_, err := take("bob@example.com")
	wantRefusal(t, err, controlapi.CodeInvalid)
	if until := b.clock.Now().Add(keepName).Format("2 January 2006"); !strings.Contains(err.Error(), until) {
		t.Errorf("it is not said until when: %v", err)
	}
	again := ok[controlapi.Enrolled](t)(take("maya@example.com"))
	if again.Computer.Former || again.Computer.ID == maya.Computer.ID {
		t.Errorf("its own account got %+v", again.Computer)
	}
	if n := b.rows("kept-name/"); n != 0 {
		t.Errorf("%d names are kept back while the name is in use", n)
	}
	remove(again)

	b.clock.Add(keepName - time.Minute)
	_, err = take("bob@example.com")
	wantRefusal(t, err, controlapi.CodeInvalid)
	b.clock.Add(time.Minute)
	bob := ok[controlapi.Enrolled](t)(take("bob@example.com"))
	snapshot := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), bob.Computer.ID))
	if !bob.Computer.Former || !snapshot.Computer.Former {
		t.Errorf("bob is not told that the name was another's: %+v", snapshot.Computer)
	}
	remove(bob)
	if e := ok[controlapi.Enrolled](t)(take("bob@example.com")); !e.Computer.Former {
		t.Error("after bob took it anew the name counts as always bob's")
	}
}

// What was freed before this was known is free.
func TestNameOfUnknownPastIsFree(t *testing.T) {
	t.Parallel()
	b := newBench(t, amongOthers)
	maya := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", "nest"))
	programs.Must(t, b.Computers.Remove(t.Context(), maya.AccountID, "nest"))
	b.drop(keyFormerName("nest"))
	if e := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "nest")); e.Computer.Former {
		t.Errorf("got %+v", e.Computer)
	}
}

// The names of a removed account are kept back as well. Made again for the same
// address, it may take them, but it is another account: its visitors' browsers
// hold what was not its own.
func TestNamesOfRemovedAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t, amongOthers)
	ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", "nest"))
	programs.Must(t, b.Accounts.Remove(t.Context(), "maya@example.com"))
	_, err := b.Computers.Ensure(t.Context(), "bob@example.com", "nest")
	wantRefusal(t, err, controlapi.CodeInvalid)
	if e := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", "nest")); !e.Computer.Former {
		t.Errorf("the new account got %+v", e.Computer)
	}
}

// Making and removing computers does not use up everybody's names: beyond a
// bound a name is free at once, but still known to have been another's.
func TestKeptNamesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, amongOthers)
	var name string
	for i := range maxKeptNames + 1 {
		name = "nest-" + strings.Repeat("x", i+1)
		e := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "maya@example.com", name))
		programs.Must(t, b.Computers.Remove(t.Context(), e.AccountID, name))
	}
	_, err := b.Computers.Ensure(t.Context(), "bob@example.com", "nest-x")
	wantRefusal(t, err, controlapi.CodeInvalid)
	if e := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", name)); !e.Computer.Former {
		t.Errorf("got %+v", e.Computer)
	}
}

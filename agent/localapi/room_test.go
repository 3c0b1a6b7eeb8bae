package localapi

import (
	"cmp"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/people"
	"porchlight/agent/procinfo"
	"porchlight/agent/store"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

// mostOfUser is how many connections another user has.
const mostOfUser = maxConnsOfUser

// S9: while too many changes wait that can be undone and that the owner has not
// seen, programs change nothing more, and none of them is lost.
func TestS9ChangesWaitForTheOwner(t *testing.T) {
	t.Parallel()
	control := &plane{row: ben}
	r := startWith(t, func(r *rig) { r.control = control })
	r.approved(t, "notes", "Notes")
	ctx, owner := t.Context(), r.owner()
	change := func(i int) error {
		control.row.Apps = nil
		by := people.Actor{Name: words.Of("program %s", fmt.Sprint(i)), Process: fmt.Sprint(i)}
		_, err := r.people.SetAccess(ctx, by, agentapi.AccessRequest{AccountID: "b2", App: "Notes", Granted: true})
		return err
	}
	for i := range store.MaxUndos {
		if err := change(i); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	given := slices.Clone(control.row.Apps)
	for range 3 {
		if err := change(1000); agentapi.CodeOf(err) != agentapi.CodeTooMany || len(control.row.Apps) != 0 {
			t.Fatalf("with no room: %v, %v", err, control.row.Apps)
		}
	}
	if _, err := owner.SetAccess(ctx, agentapi.AccessRequest{AccountID: "b2", App: "Notes", Granted: true}); err != nil {
		t.Errorf("the owner changes what they like: %v", err)
	}
	state, err := owner.State(ctx)
	if err != nil || len(state.Notices) != store.MaxUndos || state.NoticesSeen != 0 || state.Notices[0].Text != "program 0 let ben@example.net open Notes." {
		t.Fatalf("%d notices, %d seen, %v", len(state.Notices), state.NoticesSeen, err)
	}
	for i := range 3 { // what takes away needs no room, and buries nothing
		control.row.Apps = slices.Clone(given)
		by := people.Actor{Name: words.Of("program %s", fmt.Sprint(i)), Process: fmt.Sprint(i)}
		if _, err := r.people.SetAccess(ctx, by, agentapi.AccessRequest{AccountID: "b2", App: "Notes"}); err != nil || len(control.row.Apps) != 0 {
			t.Errorf("taking away with no room: %v, %v", err, control.row.Apps)
		}
	}
	state, err = owner.State(ctx)
	if err != nil || len(state.Notices) != store.MaxUndos+3 || state.Notices[0].Text != "program 0 let ben@example.net open Notes." {
		t.Fatalf("%d notices, %v", len(state.Notices), err)
	}
	newest := state.Notices[len(state.Notices)-1].ID
	if err := owner.SeeNotices(ctx, newest+1); agentapi.CodeOf(err) != agentapi.CodeNotFound {
		t.Errorf("seeing what is not there: %v", err)
	}
	programs.Must(t, owner.SeeNotices(ctx, newest))
	if err := change(1001); err != nil {
		t.Errorf("after the owner looked: %v", err)
	}
	r.end()
	r.serve(t)
	if state, err := r.owner().State(ctx); err != nil || state.NoticesSeen != newest {
		t.Errorf("after a restart %d is seen, %v", state.NoticesSeen, err)
	}
}

// TestRoomOfOtherUsers: of the connections beyond the first few, one other user has a
// part and all other users together have one; the owner's programs have the rest.
func TestRoomOfOtherUsers(t *testing.T) {
	t.Parallel()
	e := (&Server{}).newEntry(nil)
	var last *called
	enter := func(user procinfo.Process, n int) (in int) {
		for range n {
			c := &called{user: func() procinfo.Process { return user }}
			if e.enter(c) {
				in, last = in+1, c
			}
		}
		return in
	}
	enter(ownUser, crowded)
	for user, want := range []int{mostOfUser, mostOfUser, mostOfUser, 0} {
		if in := enter(procinfo.Process{UserID: fmt.Sprint("user ", user)}, mostOfUser+1); in != want {
			t.Errorf("user %d has %d connections, want %d", user, in, want)
		}
	}
	last.leave()
	if in := enter(procinfo.Process{UserID: "user 4"}, 2); in != 1 {
		t.Errorf("%d connections in the place of one", in)
	}
	if in := enter(ownUser, 100); in != 100 {
		t.Errorf("the owner's programs have %d more, want 100", in)
	}
}

// endless is a listener to which somebody comes whenever it is asked.
type endless struct {
	net.Listener
	came atomic.Int64
}

func (l *endless) Accept() (net.Conn, error) {
	l.came.Add(1)
	near, _ := net.Pipe()
	return near, nil
}

// TestFilesOfTheAPI: of each listener there are 512 connections; who comes next waits
// until one is closed.
func TestFilesOfTheAPI(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]func(net.Listener) net.Listener{
		"open tier":  func(l net.Listener) net.Listener { return (&Server{}).newEntry(l).Listener },
		"owner tier": func(l net.Listener) net.Listener { return newOwnerEntry(l) },
	} {
		synctest.Test(t, func(t *testing.T) {
			const most = 512
			last := new(endless)
			l := entry(last)
			var first net.Conn
			for range most {
				c := programs.Got(l.Accept())(t)
				first = cmp.Or(first, c)
			}
			go func() { _, _ = l.Accept() }() // it never fails
			synctest.Wait()
			if n := last.came.Load(); n != most {
				t.Errorf("%s: %d connections, want %d", name, n, most)
			}
			first.Close()
			synctest.Wait()
			if n := last.came.Load(); n != most+1 {
				t.Errorf("%s: %d connections after one was closed, want %d", name, n, most+1)
			}
		})
	}
}

// TestRefusedChangesTakeNothing: a program that may change nothing for now takes
// nothing of what all programs have, nor, where all have had theirs, of its own. A gift
// that is refused takes nothing of what all have.
func TestRefusedChangesTakeNothing(t *testing.T) {
	t.Parallel()
	a := &API{paces: newPaces()}
	for i := range 2 * pacePrograms.Size {
		by := people.Actor{Process: fmt.Sprint("refused ", i)}
		if _, err := a.paced(httptest.NewRequest("GET", "/", nil), by, func() (any, error) { return nil, invalid("No.") }); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Fatal(err)
		}
	}
	tries := func(process string) (changes int) {
		for range 100 {
			if a.slowChange(people.Actor{Process: process}) == nil {
				changes++
			}
		}
		return changes
	}
	for _, process := range []string{"a", "b"} {
		if n := tries(process); n < paceProgram.Size {
			t.Errorf("program %s changed %d times, want %d", process, n, paceProgram.Size)
		}
	}
	tries("c") // all have had theirs
	for range paceProgram.Size {
		a.paces.all.GiveBack(struct{}{})
	}
	if n := tries("c"); n < paceProgram.Size {
		t.Errorf("program c changed %d times, want %d", n, paceProgram.Size)
	}
}

// TestPaces: so much at once, and so much more as time goes on, as docs/writing-an-app.md
// tells apps.
func TestPaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &API{paces: newPaces()}
		gives := func(processes ...string) (n int) {
			for _, process := range processes {
				for a.slowChange(people.Actor{Process: process}) == nil {
					n++
				}
			}
			return n
		}
		asks := func() (n int) {
			for a.paces.strangers.Take(time.Now(), "1001") == 0 {
				n++
			}
			return n
		}
		for _, c := range []struct {
			pass         time.Duration
			one, all, of int // what one program gives, all programs, and one user asks
		}{{0, 30, 60, 200}, {10 * time.Second, 5, 10, 200}, {time.Hour, 30, 60, 200}, {time.Second, 0, 1, 20}} {
			time.Sleep(c.pass)
			one := gives("a")
			if all := one + gives("b", "c"); one != c.one || all != c.all {
				t.Errorf("after %v one program let %d in, want %d, and all %d, want %d", c.pass, one, c.one, all, c.all)
			}
			if n := asks(); n != c.of {
				t.Errorf("after %v a user's programs asked %d times, want %d", c.pass, n, c.of)
			}
		}
	})
}

//go:build unix

package proxy

import (
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"porchlight/test/programs"
)

// connected is a connection of a pool, and its other end.
func connected(t *testing.T, of *kept) (ours *appConn, theirs net.Conn) {
	t.Helper()
	conn, theirs := programs.Connected(t)
	return newAppConn(conn, of), theirs
}

// unused has it be one that was put away so long ago.
func (c *appConn) unused(long time.Duration) { c.since = time.Now().Add(-long) }

// TestAppConnsAreBounded: what is idle for too long is closed, more than fits is
// closed at once, and the timer ends with the last of them.
func TestAppConnsAreBounded(t *testing.T) {
	t.Parallel()
	a := newAppConns(maxIdleConns)
	of := func() *kept { return a.of(pool{app: "id-notes"}) }
	open := func() (ours *appConn, theirs net.Conn) { return connected(t, of()) }
	closed := func(theirs net.Conn) {
		t.Helper()
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("not closed: %v", err)
		}
	}

	keeps := func(conns ...*appConn) {
		for _, c := range conns {
			a.put(c, true)
		}
	}
	idles := func() (n int, ends bool) { return a.count, a.sweep != nil }

	old, oldTheirs := open()
	young, _ := open()
	keeps(old, young)
	old.unused(maxIdleTime)
	a.closeOld()
	closed(oldTheirs)
	if n, ends := idles(); n != 1 || !ends {
		t.Fatalf("%d idle, timer %v", n, ends)
	}
	if got := a.idle(of(), "", true); got != young {
		t.Fatal("the young one is not kept")
	}
	if a.idle(of(), "", true) != nil {
		t.Fatal("one more than there is")
	}
	unknown := a.of(pool{app: "id-other"})
	a.closeOld()
	if _, ends := idles(); ends || !unknown.gone || young.kept.gone {
		t.Errorf("timer %v with nothing idle; of one app nothing is known (%v), and that another keeps connections open is (%v)", ends, unknown.gone, !young.kept.gone)
	}
	lost, lostTheirs := open()
	lost.kept = unknown
	keeps(lost)
	closed(lostTheirs)

	stale, staleTheirs := open()
	keeps(stale)
	stale.unused(maxIdleTime)
	if a.idle(of(), "", true) != nil {
		t.Error("one that was idle for too long is used")
	}
	closed(staleTheirs)

	for range maxIdlePerApp {
		c, _ := open()
		keeps(c)
	}
	more, moreTheirs := open()
	keeps(more)
	closed(moreTheirs)
	if n, _ := idles(); n != maxIdlePerApp {
		t.Errorf("%d idle", n)
	}
	a.closeIdle()
	if n, ends := idles(); n != 0 || len(a.kept) != 0 || ends {
		t.Errorf("%d idle, timer %v", n, ends)
	}
}

// What another program took before says nothing of the one that listens now, and is not
// kept; and a connection that was seen open for no time at all says nothing.
func TestWhatIsKnownOfAnApp(t *testing.T) {
	t.Parallel()
	a := newAppConns(maxIdleConns)
	k := a.of(pool{app: "id-notes"})
	open := func(by uint64) (ours *appConn, theirs net.Conn) {
		ours, theirs = connected(t, k)
		a.took(ours, by)
		return ours, theirs
	}
	former, _ := open(1)
	kept, keptTheirs := open(1)
	a.put(kept, true)
	now, _ := open(2)
	if _, err := keptTheirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || a.count != 0 {
		t.Errorf("what the former one took is kept: %v", err)
	}
	a.hasClosed(former)
	if a.put(former, true); k.closes || a.count != 0 {
		t.Errorf("of the former one: it closes %v, and %d are kept", k.closes, a.count)
	}
	a.put(now, false)
	now.unused(time.Millisecond)
	if k.learn() && time.Since(now.since) < asNewSeen {
		t.Error("it was seen open for a millisecond")
	}
	now.unused(asNewSeen)
	if !k.learn() {
		t.Error("it was seen open for long enough")
	}
	if a.hasClosed(now); k.learn() {
		t.Error("it has closed one")
	}
	a.closeIdle()
}

// What could not be sent at all may go out on another connection, whatever it is.
func TestNothingSentIsNotQuiet(t *testing.T) {
	t.Parallel()
	c, _ := connected(t, new(kept))
	programs.Must(t, c.Conn.(interface{ CloseWrite() error }).CloseWrite())
	if !c.quiet.mayTrade(c.Conn) || !c.quiet.is(c.Conn) {
		t.Fatal("nothing has come, and it is not quiet")
	}
	if asked, _, err := c.quiet.exchange([]byte("x"), make([]byte, 1)); asked != 0 || !errors.Is(err, errNotQuiet) {
		t.Errorf("%d bytes were sent: %v", asked, err)
	}
}

// The room that an answer of very many fields took is not kept with its connection.
func TestLargeHeadersAreNotKept(t *testing.T) {
	t.Parallel()
	for n, kept := range map[int]bool{mostFields: true, mostFields + 1: false} {
		c := new(appConn)
		h := c.header()
		for i := range n {
			h[strconv.Itoa(i)] = []string{"x"}
		}
		c.forget()
		if len(c.fields) != 0 || (c.fields != nil) != kept {
			t.Errorf("%d fields: kept is %v", n, c.fields != nil)
		}
	}
}

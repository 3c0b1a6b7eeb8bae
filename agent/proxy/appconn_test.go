//go:build unix

package proxy

import (
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// TestAppConnsAreBounded: what is idle for too long is closed, more than fits is
// closed at once, and the timer ends with the last of them.
func TestAppConnsAreBounded(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	programs.Must(t, err)
	defer ln.Close()
	a := newAppConns(maxIdleConns)
	of := func() *kept {
		return a.of(pool{app: "id-notes", at: upstream.Target{Port: ln.Addr().(*net.TCPAddr).Port}})
	}
	open := func() (ours *appConn, theirs net.Conn) {
		t.Helper()
		conn, err := net.Dial("tcp", ln.Addr().String())
		programs.Must(t, err)
		ours = newAppConn(conn, of())
		if theirs, err = ln.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { theirs.Close() })
		return ours, theirs
	}
	closed := func(theirs net.Conn) {
		t.Helper()
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("not closed: %v", err)
		}
	}

	old, oldTheirs := open()
	young, _ := open()
	a.put(old)
	a.put(young)
	old.since = time.Now().Add(-maxIdleTime)
	a.closeOld()
	closed(oldTheirs)
	if a.count != 1 || a.sweep == nil {
		t.Fatalf("%d idle, timer %v", a.count, a.sweep)
	}
	if got := a.take(of()); got != young {
		t.Fatal("the young one is not kept")
	}
	if a.take(of()) != nil {
		t.Fatal("one more than there is")
	}
	a.closeOld()
	if a.sweep != nil || !young.kept.gone {
		t.Error("the timer runs with nothing idle")
	}
	lost, lostTheirs := open()
	lost.kept = young.kept
	a.put(lost)
	closed(lostTheirs)

	stale, staleTheirs := open()
	a.put(stale)
	stale.since = time.Now().Add(-maxIdleTime)
	if a.take(of()) != nil {
		t.Error("one that was idle for too long is used")
	}
	closed(staleTheirs)

	for range maxIdlePerApp {
		c, _ := open()
		a.put(c)
	}
	more, moreTheirs := open()
	a.put(more)
	closed(moreTheirs)
	if a.count != maxIdlePerApp {
		t.Errorf("%d idle", a.count)
	}
	a.closeIdle()
	if a.count != 0 || len(a.kept) != 0 || a.sweep != nil {
		t.Errorf("%d idle, timer %v", a.count, a.sweep)
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

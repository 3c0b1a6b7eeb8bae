package procinfo

import (
	"math"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// nowhere is where a socket is that no process shows.
var nowhere place

// listening is the socket of a new listener of this process.
func listening(t *testing.T) (Socket, net.Listener) {
	t.Helper()
	ln := listen(t, "tcp4", "127.0.0.1:0")
	s := ListenerSocket(IPv4, ln.Addr().(*net.TCPAddr).Port)
	if s.Inode == 0 || s.UserID != self() {
		t.Fatalf("our own listener is %+v", s)
	}
	return s, ln
}

func walks() int {
	find.mu.Lock()
	defer find.mu.Unlock()
	return find.walks
}

// TestKnownDoesNotWalk: on the way of a request all processes are never looked
// through. It runs alone, for walks are counted.
func TestKnownDoesNotWalk(t *testing.T) {
	s, ln := listening(t)
	before := walks()
	if got := s.Remembered(); got.PID != 0 || got.Program != "" || got.UserID != self() || got.User == "" {
		t.Errorf("not looked for yet: %+v", got)
	}
	if got := s.Remembered(-1, 0, 1, 1<<31); got.PID != 0 {
		t.Errorf("with hints that are wrong: %+v", got)
	}
	if got := s.Remembered(1, os.Getpid()); got.PID != os.Getpid() || got.Program == "" {
		t.Errorf("with a hint: %+v", got)
	}
	if got := s.Remembered(); got.PID != os.Getpid() {
		t.Errorf("once it is known: %+v", got)
	}
	if got := s.Find(); got.PID != os.Getpid() {
		t.Errorf("Find, once it is known: %+v", got)
	}
	if walked := walks() - before; walked != 0 {
		t.Errorf("all processes were looked through %d times", walked)
	}
	ln.Close()
	listening(t) // which gets the number of the file that was closed
	if got := s.Remembered(); got.PID != 0 {
		t.Errorf("a closed socket is had by %+v", got)
	}
}

// TestWalkOnce: many who look for one socket at once, and again, walk once; also
// where no process shows it.
func TestWalkOnce(t *testing.T) {
	here, _ := listening(t)
	for what, c := range map[string]struct {
		socket Socket
		pid    int
	}{
		"ours":    {here, os.Getpid()},
		"nowhere": {Socket{User: here.User, UserID: here.UserID, Inode: math.MaxUint32 + uint64(rand.Uint32())}, 0},
	} {
		before := walks()
		var looking sync.WaitGroup
		for range maxWaiting / 2 {
			looking.Go(func() {
				for range 3 {
					if got := c.socket.Find(); got.PID != c.pid || got.User != here.User {
						t.Errorf("%s: %+v", what, got)
					}
				}
			})
		}
		looking.Wait()
		if walked := walks() - before; walked != 1 {
			t.Errorf("%s: all processes were looked through %d times, want once", what, walked)
		}
	}
}

// TestOnlyTheUsersProcesses are looked into: a socket another user made is not
// looked for in ours.
func TestOnlyTheUsersProcesses(t *testing.T) {
	t.Parallel()
	s, _ := listening(t)
	s.UserID = "4294967294"
	if got, _ := lookInto(os.Getpid(), s, math.MaxInt, time.Time{}); got != nowhere {
		t.Errorf("found at %+v", got)
	}
	if got, _ := lookThrough(s, time.Now().Add(time.Minute)); got != nowhere {
		t.Errorf("found at %+v", got)
	}
}

// TestWalkEnds: a walk is bounded in time, what it did not come to is not taken
// for nowhere, and beyond a number nobody waits for one.
func TestWalkEnds(t *testing.T) {
	t.Parallel()
	s, _ := listening(t)
	if at, all := lookThrough(s, time.Now().Add(-time.Second)); at != nowhere || all {
		t.Errorf("with no time left: found at %+v, looked through all: %v", at, all)
	}
	if at, whole := lookInto(os.Getpid(), s, 0, time.Time{}); at != nowhere || whole {
		t.Errorf("with no file to look at: found at %+v, whole: %v", at, whole)
	}
	var f finder
	f.waiting.Store(maxWaiting)
	if f.walk(s) || f.walks != 0 {
		t.Error("one more waits")
	}
	f.waiting.Store(0)
	if !f.walk(s) || f.walks != 1 || f.waiting.Load() != 0 {
		t.Errorf("not found in %d walks, with %d waiting", f.walks, f.waiting.Load())
	}
	for i := range uint64(2 * maxPlaces) {
		f.remember(Socket{Inode: i}, nowhere)
	}
	if len(f.places) > maxPlaces {
		t.Errorf("%d places are remembered", len(f.places))
	}
}

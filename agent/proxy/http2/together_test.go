package http2

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/limits"
)

// Weakness: a hundred visitors who came at once each woke the processor a minute later,
// by the deadline of what was written last. Checked: who begins to wait within some
// seconds waits until one moment, and never for longer than was said.
func TestTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		moments := map[time.Time]bool{}
		for range 100 {
			wait := together(time.Minute)
			if wait > time.Minute || wait < 55*time.Second {
				t.Errorf("waits for %v", wait)
			}
			moments[time.Now().Add(wait)] = true
			time.Sleep(40 * time.Millisecond)
		}
		if len(moments) != 1 {
			t.Errorf("they wake up at %d moments", len(moments))
		}
	})
}

// Weakness: that moment was checked, but not that the deadlines of writes are at it.
// Checked: a hundred connections that write within four seconds have one deadline, when
// they greet and when they write again later, and none is further off than a write may take.
func TestWriteDeadlinesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Handler: http.NotFoundHandler(), Broken: func(what any) { t.Errorf("broken: %v", what) }})
		visitors := make([]net.Conn, 100)
		set := make([]*deadlines, len(visitors))
		one := func(when string, write func(i int)) {
			t.Helper()
			moments := map[time.Time]bool{}
			for i := range visitors {
				write(i)
				synctest.Wait()
				at := set[i].last
				if ahead := time.Until(at); ahead > limits.WriteStall || ahead < limits.WriteStall*3/4 {
					t.Errorf("%s: a write may take %v", when, ahead)
				}
				moments[at] = true
				time.Sleep(40 * time.Millisecond)
			}
			if len(moments) != 1 {
				t.Errorf("%s: the deadlines are at %d moments", when, len(moments))
			}
		}
		one("greeting", func(i int) {
			theirs, ours := net.Pipe()
			visitors[i], set[i] = ours, &deadlines{Conn: theirs}
			go s.NewConn(context.Background(), set[i]).Serve()
			go io.Copy(io.Discard, ours)
			io.WriteString(ours, frames.ClientPreface)
			frames.NewFramer(ours, nil).WriteSettings()
		})
		time.Sleep(limits.WriteStall/2 - 4*time.Second) // in whole steps of five seconds, as they began
		one("later", func(i int) { frames.NewFramer(visitors[i], nil).WritePing(false, [8]byte{}) })
		s.Close()
		for _, conn := range visitors {
			conn.Close()
		}
	})
}

// deadlines is a connection of which is known until when a write may take.
type deadlines struct {
	net.Conn
	last time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.last = at
	return d.Conn.SetWriteDeadline(at)
}

// Weakness: a panic while the greeting is made left mu locked, and the connection waited
// for it for ever. Checked: the connection ends, and the fault is told.
func TestFaultInTheGreeting(t *testing.T) {
	t.Parallel()
	told := 0
	s := New(Config{Handler: http.NotFoundHandler(), Broken: func(any) { told++ }})
	theirs, ours := net.Pipe()
	defer ours.Close()
	c := s.NewConn(context.Background(), theirs)
	c.write = nil // which cannot be
	c.Serve()
	if _, err := ours.Read(make([]byte, 1)); err != io.EOF || told != 1 {
		t.Errorf("%d faults are told, and the visitor meets %v", told, err)
	}
}

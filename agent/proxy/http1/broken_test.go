package http1

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// faulty is a visitor's connection that panics in one of its methods once a request is
// under way.
type faulty struct {
	net.Conn
	under             atomic.Bool
	inRead, inSetting bool
}

func (f *faulty) Read(p []byte) (int, error) {
	if f.inRead && f.under.Load() {
		panic("a fault in Read")
	}
	return f.Conn.Read(p)
}

func (f *faulty) SetReadDeadline(t time.Time) error {
	if f.inSetting && f.under.Load() {
		panic("a fault in SetReadDeadline")
	}
	return f.Conn.SetReadDeadline(t)
}

func (f *faulty) ConnectionState() (state tls.ConnectionState) { return state }
func (f *faulty) CloseWrite() error                            { return nil }
func (f *faulty) Abort()                                       { f.Conn.Close() }
func (f *faulty) WriteBoth(a, b []byte) error {
	if _, err := f.Write(a); err != nil {
		return err
	}
	_, err := f.Write(b)
	return err
}

const plainGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// Weakness: what looks after a long request runs on goroutines of its own, where a panic
// ended the agent.
// Checked: it ends that connection and its request, is told, and the next one is served.
func TestFaultsBesideARequest(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(*faulty){
		"who follows the visitor": func(f *faulty) { f.inRead = true },
		"the clock":               func(f *faulty) { f.inSetting = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var under *faulty
				told := 0
				s := New(Config{Broken: func(any) { told++ }, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if under != nil {
						under.under.Store(true)
						<-r.Context().Done()
						under.under.Store(false) // or the end of the request fails, too
					}
				})})
				visit := func(f *faulty, mine net.Conn) (got []byte) {
					go s.Serve(context.Background(), f)
					go io.WriteString(mine, plainGet)
					got = make([]byte, 1<<10)
					n, _ := mine.Read(got)
					return got[:n]
				}
				mine, theirs := net.Pipe()
				under = &faulty{Conn: theirs}
				plant(under)
				if got := visit(under, mine); len(got) > 0 || told != 1 {
					t.Errorf("%d faults are told; the visitor got %q", told, got)
				}
				synctest.Wait()
				under = nil
				mine, theirs = net.Pipe()
				if got := visit(&faulty{Conn: theirs}, mine); len(got) == 0 || told != 1 {
					t.Errorf("afterwards: %d faults are told; the visitor got %q", told, got)
				}
				mine.Close()
				if err := s.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The clock itself meets a fault: nobody's connection ends, and the next request has it
// run again.
func TestFaultOfTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := 0
		s := New(Config{Broken: func(any) { told++ }})
		s.conns[nil] = struct{}{} // which cannot be
		s.clock.now()
		time.Sleep(time.Second)
		synctest.Wait()
		if told != 1 {
			t.Errorf("%d faults are told", told)
		}
		delete(s.conns, nil)
		before := s.clock.now()
		time.Sleep(time.Second)
		synctest.Wait()
		if s.clock.tick.Load() <= before || told != 1 {
			t.Errorf("the clock stands at %d, after %d; %d faults are told", s.clock.tick.Load(), before, told)
		}
	})
}

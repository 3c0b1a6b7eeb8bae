package http2_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/http2"
	"porchlight/agent/proxy/limits"
	"porchlight/test/programs"
)

// inTime runs a test on both ways, or on ours alone, where an hour passes in no time. The
// visitor's connection takes nothing that is not read.
func inTime(t *testing.T, ways []string, silent bool, h http.Handler, test func(t *testing.T, v *visitor), settings ...frames.Setting) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				theirs, ours := net.Pipe()
				stop := serve(t, way, address{theirs}, h)
				v := visit(t, ours, silent, settings...)
				test(t, v)
				ours.Close()
				stop()
			})
		})
	}
}

// address is a connection with one that looks like a visitor's.
type address struct{ net.Conn }

func (address) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234} }

// endsAfter says that the connection ends, and when.
func (v *visitor) endsAfter(least, most time.Duration) {
	v.t.Helper()
	begun := time.Now()
	for range v.frames {
	}
	if took := time.Since(begun); took < least || took > most {
		v.t.Errorf("the connection ended after %v, want %v to %v", took, least, most)
	}
}

var both = []string{own, gos}

func slow(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// A visitor who is not there any more: nothing answers our PING.
func TestSilentVisitor(t *testing.T) {
	t.Parallel()
	inTime(t, both, false, http.HandlerFunc(slow), func(t *testing.T, v *visitor) {
		v.ask(1, "GET", "/", true)
		v.endsAfter(limits.PingAfter+limits.PingTimeout, limits.PingAfter+limits.PingTimeout+time.Second)
	})
}

// One who answers keeps what takes long; one who asks for nothing does not stay.
func TestIdle(t *testing.T) {
	t.Parallel()
	inTime(t, both, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(10 * time.Minute)
	}), func(t *testing.T, v *visitor) {
		begun := time.Now()
		v.ask(1, "GET", "/", true)
		answered := false
		for f := range v.frames {
			switch f := f.(type) {
			case *frames.PingFrame:
				v.WritePing(true, f.Data)
			case *headFrame:
				answered = true
				begun = time.Now()
			case *frames.GoAwayFrame:
				if took := time.Since(begun); took < limits.Idle || took > limits.Idle+time.Second || f.ErrCode != frames.ErrCodeNo {
					t.Errorf("goodbye after %v: %v", took, f)
				}
			}
		}
		if !answered {
			t.Error("no answer")
		}
	})
}

// Who says nothing, not all of the greeting, or not all of a header block.
func TestSlowBeginnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ways []string
		send func(conn net.Conn)
		most time.Duration
	}{
		"nothing":      {[]string{own}, func(net.Conn) {}, limits.HeaderTimeout},
		"half a hello": {[]string{own}, func(c net.Conn) { io.WriteString(c, frames.ClientPreface[:20]) }, limits.HeaderTimeout},
		"no settings":  {both, func(c net.Conn) { io.WriteString(c, frames.ClientPreface) }, limits.FirstSettings},
		"half a block": {both, func(c net.Conn) {
			io.WriteString(c, frames.ClientPreface)
			f := frames.NewFramer(c, nil)
			f.WriteSettings()
			f.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
		}, limits.HeaderTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, way := range c.ways {
				synctest.Test(t, func(t *testing.T) {
					theirs, ours := net.Pipe()
					stop := serve(t, way, address{theirs}, http.NotFoundHandler())
					go c.send(ours)
					begun := time.Now()
					io.Copy(io.Discard, ours)
					most := c.most
					if way == gos { // it asks for a sign of life, which cannot come within a block
						most = max(most, limits.PingAfter+limits.PingTimeout)
					}
					if took := time.Since(begun); took > most+2*time.Second {
						t.Errorf("%s: it ended after %v, want %v", way, took, most)
					}
					ours.Close()
					stop()
				})
			}
		})
	}
}

// Who still sends when the answer is whole is told to stop a moment later, and not at all
// where that was all; what comes meanwhile is dropped, up to the stream's window.
func TestEarlyAnswerLingers(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		inTime(t, []string{own}, false, http.HandlerFunc(forbidden), func(t *testing.T, v *visitor) {
			begun := time.Now()
			v.ask(1, "POST", "/", false)
			v.head(1)
			v.WriteData(1, false, make([]byte, 10_000))
			v.WriteData(1, ends, make([]byte, 10_000))
			time.Sleep(limits.Parting)
			v.ask(3, "GET", "/", true)
			for f := range v.frames {
				switch f := f.(type) {
				case *frames.RSTStreamFrame:
					if f.ErrCode != frames.ErrCodeNo || ends {
						t.Errorf("%v, where the visitor had ended: %v", f, ends)
					}
					ends = true
				case *headFrame:
					if took := time.Since(begun); !ends || took < limits.Lingering || f.StreamID != 3 {
						t.Errorf("after %v: %v; the visitor was told: %v", took, f, ends)
					}
					return
				}
			}
			t.Error("the connection ended")
		})
	}
}

// Access that ends cuts a stream off whoever waits: for the window, for its turn, for a
// write that does not end, for the body.
func TestDeadlinesCutOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		window uint32
		silent bool
		pings  int
	}{
		"no window":         {0, false, 0},
		"window used up":    {100_000, false, 0},
		"nothing is read":   {1 << 20, true, 0},
		"nor by us":         {1 << 20, true, limits.ControlFrames/2 + 1}, // whose answers wait
		"connection's used": {1 << 20, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var freed time.Duration
			cut := make(chan http.ResponseWriter, 1)
			done := make(chan time.Time, 1)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				cut <- w
				defer func() { done <- time.Now() }()
				flood(w, r)
			})
			synctest.Test(t, func(t *testing.T) {
				cut, done = make(chan http.ResponseWriter, 1), make(chan time.Time, 1)
				theirs, ours := net.Pipe()
				stop := serve(t, own, address{theirs}, h)
				var v *visitor
				if c.silent {
					v = visitUnread(t, ours, c.window)
				} else {
					v = visit(t, ours, false, frames.Setting{ID: frames.SettingInitialWindowSize, Val: c.window})
				}
				v.ask(1, "GET", "/", true)
				rc := http.NewResponseController(<-cut)
				synctest.Wait()
				for range c.pings {
					v.WritePing(false, [8]byte{})
				}
				synctest.Wait()
				begun := time.Now()
				rc.SetReadDeadline(time.Unix(1, 0))
				rc.SetWriteDeadline(time.Unix(1, 0))
				freed = (<-done).Sub(begun)
				ours.Close()
				stop()
			})
			if freed > limits.CutOff {
				t.Errorf("the handler was free after %v", freed)
			}
		})
	}
}

// A body that does not come is not waited for beyond the deadline, and no longer once
// there is none.
func TestReadDeadline(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		rc.SetReadDeadline(time.Now().Add(limits.BodyTimeout))
		if r.URL.Path == "/app" {
			rc.SetReadDeadline(time.Time{})
		}
		_, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	inTime(t, both, false, h, func(t *testing.T, v *visitor) {
		v.ask(1, "POST", "/ours", false)
		v.ask(3, "POST", "/app", false)
		if status := v.head(1).value(":status"); status != "408" {
			t.Error(status)
		}
		time.Sleep(limits.BodyTimeout)
		v.WriteData(3, true, []byte("late"))
		if status := v.head(3).value(":status"); status != "200" {
			t.Error(status)
		}
	})
}

// A panic of the handler is told, and ends the connection.
func TestPanicIsTold(t *testing.T) {
	t.Parallel()
	ours, theirs := programs.Connected(t)
	told := make(chan any, 1)
	stop := serve(t, own, theirs, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/meant" {
			panic(http.ErrAbortHandler)
		}
		panic("what is this")
	}), func(c *http2.Config) { c.Broken = func(what any) { told <- what } })
	defer stop()
	defer ours.Close()
	v := visit(t, ours, false)
	v.ask(1, "GET", "/meant", true)
	if code := v.reset(1); code != frames.ErrCodeInternal {
		t.Error(code)
	}
	v.ask(3, "GET", "/", true)
	for range v.frames { // to the end
	}
	if what := <-told; what != "what is this" {
		t.Error(what)
	}
}

// One who asks for nothing is not asked for a sign of life either: a hundred of them
// would wake the computer up three times a second.
func TestIdleIsNotPinged(t *testing.T) {
	t.Parallel()
	inTime(t, []string{own}, false, http.NotFoundHandler(), func(t *testing.T, v *visitor) {
		v.ask(1, "GET", "/", true)
		begun := time.Now()
		for f := range v.frames {
			switch f.(type) {
			case *frames.PingFrame:
				t.Errorf("a PING after %v", time.Since(begun))
			case *frames.GoAwayFrame:
				if took := time.Since(begun); took < limits.Idle || took > limits.Idle+time.Second {
					t.Errorf("goodbye after %v", took)
				}
			}
		}
	})
}

// One who was idle for a while and then asks is asked for that sign as soon as any other.
func TestSilentVisitorWhoWasIdle(t *testing.T) {
	t.Parallel()
	inTime(t, []string{own}, false, http.HandlerFunc(slow), func(t *testing.T, v *visitor) {
		time.Sleep(limits.PingAfter + 10*time.Second)
		v.ask(1, "GET", "/", true)
		v.endsAfter(limits.PingAfter+limits.PingTimeout, limits.PingAfter+limits.PingTimeout+time.Second)
	})
}

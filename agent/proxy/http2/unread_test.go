package http2_test

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/limits"
)

// flood answers with more than any window.
func flood(w http.ResponseWriter, _ *http.Request) {
	for piece := make([]byte, 1<<20); ; {
		if _, err := w.Write(piece); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// A visitor who opens no window any more loses the stream.
func TestStalledStream(t *testing.T) {
	t.Parallel()
	ours := func(w http.ResponseWriter, r *http.Request) {
		w.(interface{ DropHead() }).DropHead()
		flood(w, r)
	}
	for _, c := range []struct {
		first uint32
		h     http.HandlerFunc
		after time.Duration
	}{
		{0, flood, limits.Stall},
		{1000, flood, limits.Stall},
		{1 << 20, flood, limits.Stall}, // that of the connection is what is used up
		{0, ours, limits.StallOurs},
		{1000, ours, limits.StallOurs},
	} {
		inTime(t, []string{own}, false, c.h, func(t *testing.T, v *visitor) {
			begun := time.Now()
			v.ask(1, "GET", "/", true)
			for f := range v.frames {
				if ping, ok := f.(*frames.PingFrame); ok {
					v.WritePing(true, ping.Data)
				}
				if r, ok := f.(*frames.RSTStreamFrame); ok {
					if took := time.Since(begun); took < c.after || took > c.after+time.Second || r.ErrCode != frames.ErrCodeCancel {
						t.Errorf("after %v: %v", took, r)
					}
					return
				}
			}
			t.Error("it is not reset")
		}, frames.Setting{ID: frames.SettingInitialWindowSize, Val: c.first})
	}
}

// A visitor who reads nothing at all loses the connection.
func TestWriteStall(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(v *visitor) error{
		"an answer": func(v *visitor) error {
			time.Sleep(10 * time.Second)
			return v.WriteWindowUpdate(0, 1)
		},
		// The clock stands while anybody has something to do, so the visitor rests now and then.
		"answers to PINGs": func(v *visitor) error {
			time.Sleep(time.Millisecond)
			return v.WritePing(false, [8]byte{})
		},
		"answers to SETTINGS": func(v *visitor) error {
			time.Sleep(time.Millisecond)
			return v.WriteSettings()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ways := both
			if name == "answers to SETTINGS" {
				ways = []string{own} // net/http answers many at once, and takes them for ever
			}
			inTime(t, ways, true, http.HandlerFunc(flood), func(t *testing.T, v *visitor) {
				begun := time.Now()
				for err := v.ask(1, "GET", "/", true); err == nil && time.Since(begun) < time.Hour; {
					err = send(v) // until the other side is closed
				}
				if took := time.Since(begun); took > 2*limits.WriteStall {
					t.Errorf("it ended after %v", took)
				}
			})
		})
	}
}

// A visitor who is refused and reads nothing is gone a moment later.
func TestRefusedAndSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := net.Pipe()
		stop := serve(t, own, address{theirs}, http.NotFoundHandler())
		v := visitUnread(t, ours, 0)
		time.Sleep(limits.PingAfter - time.Second) // the last write was long ago
		begun := time.Now()
		v.WriteData(1, true, nil) // of a stream that never was
		for err := error(nil); err == nil; {
			time.Sleep(time.Second / 10)
			err = v.WritePing(true, [8]byte{})
		}
		if took := time.Since(begun); took > 3*limits.Parting {
			t.Errorf("it ended after %v", took)
		}
		ours.Close()
		stop()
	})
}

// visitUnread greets, and reads what comes before an answer only.
func visitUnread(t *testing.T, conn net.Conn, window uint32) *visitor {
	greeted := make(chan struct{})
	go func() {
		defer close(greeted)
		f := frames.NewFramer(nil, conn)
		for range 3 { // SETTINGS, a window, the answer to ours
			f.ReadFrame()
		}
	}()
	v := visit(t, conn, true, frames.Setting{ID: frames.SettingInitialWindowSize, Val: window})
	<-greeted
	return v
}

// A short answer is one write, and many that are ready together are few.
func TestWritesAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := net.Pipe()
		counted := &writes{Conn: address{theirs}}
		stop := serve(t, own, counted, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Write(bytes.Repeat([]byte("x"), 1000))
		}))
		v := visit(t, ours, false)
		synctest.Wait()
		before := counted.n
		for i := range 10 {
			id := uint32(2*i + 1)
			v.ask(id, "GET", "/", true)
			if v.head(id); len(v.body(id)) != 1000 {
				t.Error("not all came")
			}
		}
		if n := counted.n - before; n != 10 {
			t.Errorf("10 answers were %d writes", n)
		}
		ours.Close()
		stop()
	})
}

type writes struct {
	net.Conn
	n, longest int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	w.longest = max(w.longest, len(p))
	return w.Conn.Write(p)
}

// Weakness: header blocks need no window, so one who asks and reads nothing could have
// us keep any number of answers without a body.
// Checked: what waits to be written is a buffer and one head, and all comes in the end.
func TestHeadsUnread(t *testing.T) {
	t.Parallel()
	const asked, size = 200, 9000 // in the code of HPACK, 7/8 of it
	big := strings.Repeat("v", size)
	for name, h := range map[string]func(w http.ResponseWriter, late chan struct{}){
		"a redirect": func(w http.ResponseWriter, _ chan struct{}) {
			w.Header().Set("Location", big)
			w.WriteHeader(http.StatusFound)
		},
		"early hints": func(w http.ResponseWriter, _ chan struct{}) {
			w.Header().Set("Link", big)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
		},
		"trailers": func(w http.ResponseWriter, late chan struct{}) {
			w.Header().Set("Trailer", "X-Late")
			w.(http.Flusher).Flush()
			<-late
			w.Header().Set("X-Late", big)
		},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					theirs, ours := net.Pipe()
					counted := &writes{Conn: address{theirs}}
					late := make(chan struct{})
					stop := serve(t, own, counted, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { h(w, late) }))
					v := visitUnread(t, ours, 0)
					for i := range asked {
						v.ask(uint32(2*i+1), method, "/", true)
					}
					synctest.Wait()
					close(late)
					synctest.Wait()
					go v.readAll()
					for ended := 0; ended < asked; {
						f, ok := <-v.frames
						if !ok {
							t.Fatalf("%d of %d answers: %v", ended, asked, v.err)
						}
						if f.Header().Flags.Has(frames.FlagDataEndStream) {
							ended++
						}
					}
					if counted.longest > 64<<10+size {
						t.Errorf("%d bytes waited", counted.longest)
					}
					ours.Close()
					stop()
				})
			})
		}
	}
}

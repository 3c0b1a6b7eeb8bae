package http2_test

import (
	"bytes"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	frames "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/agent/proxy/limits"
)

// The server's end waits for no visitor who does not read, whoever writes to it and
// whether or not we still read.
func TestCloseWaitsForNoWrite(t *testing.T) {
	t.Parallel()
	for name, pings := range map[string]int{"we read": 0, "we do not": limits.ControlFrames/2 + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				theirs, ours := net.Pipe()
				stop := serve(t, own, address{theirs}, http.HandlerFunc(flood))
				v := visitUnread(t, ours, 1<<20)
				v.ask(1, "GET", "/", true)
				synctest.Wait()
				for range pings {
					v.WritePing(false, [8]byte{})
				}
				synctest.Wait()
				begun := time.Now()
				stop()
				if took := time.Since(begun); took > limits.CutOff {
					t.Errorf("it took %v", took)
				}
				ours.Close()
			})
		})
	}
}

// Weakness: streams that wait for the connection's window, which never opens, and are
// reset.
// Checked: nothing holds their requests any more.
func TestResetWhileQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := net.Pipe()
		var mu sync.Mutex
		var requests []weak.Pointer[http.Request]
		stop := serve(t, own, address{theirs}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			requests = append(requests, weak.Make(r))
			mu.Unlock()
			flood(w, r)
		}))
		v := visit(t, ours, false, frames.Setting{ID: frames.SettingInitialWindowSize, Val: 1 << 20})
		const asked = 40
		for i := range asked {
			id := uint32(2*i + 1)
			v.ask(id, "GET", "/", true)
			synctest.Wait() // it waits, the first one after all that the window lets through
			v.WriteRSTStream(id, frames.ErrCodeCancel)
			synctest.Wait()
		}
		runtime.GC()
		held := 0
		for _, r := range requests {
			if r.Value() != nil {
				held++
			}
		}
		if len(requests) != asked || held > asked/4 {
			t.Errorf("%d of %d requests are held", held, len(requests))
		}
		ours.Close()
		stop()
	})
}

// inUse is the memory of this process that something holds.
func inUse() int64 {
	for range 3 { // what is in a pool goes with the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Checked: what a long header list took, or a long field that came in parts, is not kept for
// the connection's life.
func TestLongListsAreForgotten(t *testing.T) { // alone, for it measures the memory of all
	const conns, most = 20, 200 << 10
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	start := []string{":method", "HEAD", ":scheme", "https", ":authority", "a", ":path", "/", "a"}
	for what, all := range map[string][]byte{
		"a list":  append(encode(append(start, "")...), bytes.Repeat([]byte{0xbe}, 25_000)...),
		"a field": encode(append(start, strings.Repeat("~", limits.String-1))...),
	} {
		var visitors []*visitor
		for range conns {
			visitors = append(visitors, meet(t, own, h))
		}
		before := inUse()
		for _, v := range visitors {
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: all[:limits.Frame], EndStream: true})
			for part := range slices.Chunk(all[limits.Frame:], limits.Frame) {
				v.WriteContinuation(1, len(part) < limits.Frame, part)
			}
			v.WritePing(false, [8]byte{1})
			answered, ponged := false, false
			for !answered || !ponged {
				switch f := (<-v.frames).(type) {
				case nil:
					t.Fatal(v.err)
				case *headFrame:
					answered = true
					if status := f.value(":status"); status != "431" {
						t.Fatal(status)
					}
				case *frames.PingFrame:
					ponged = true
				}
			}
		}
		if each := (inUse() - before) / conns; each > most {
			t.Errorf("%s: a connection keeps %d bytes, want %d at most", what, each, most)
		}
		runtime.KeepAlive(visitors)
	}
}

// encode is the header block of a connection's first request.
func encode(fields ...string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // into memory
	}
	return block.Bytes()
}

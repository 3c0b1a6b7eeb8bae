package http2_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/limits"
)

var discard = log.New(io.Discard, "", 0)

// counting is a handler that counts how many run at a time, each until release.
type counting struct {
	running, most atomic.Int64
	release       chan struct{}
}

func (c *counting) ServeHTTP(http.ResponseWriter, *http.Request) {
	n := c.running.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	<-c.release // whatever becomes of the stream
	c.running.Add(-1)
}

// check says how many ran, and lets them go.
func (c *counting) check(t *testing.T) {
	t.Helper()
	if most := c.most.Load(); most > limits.Streams {
		t.Errorf("%d handlers ran at a time, want no more than %d", most, limits.Streams)
	}
}

// Weakness: "rapid reset" (CVE-2023-44487): a stream that is reset at once is not one
// of those that are open, and its work goes on.
// Weakness: "made you reset" (CVE-2025-8671): the same by mistakes that have the server
// reset the stream.
// Checked: no more handlers run than streams may be open, and the connection ends.
func TestResets(t *testing.T) {
	t.Parallel()
	for name, provoke := range map[string]func(v *visitor, id uint32) error{
		"by the visitor":       func(v *visitor, id uint32) error { return v.WriteRSTStream(id, frames.ErrCodeCancel) },
		"window beyond all":    func(v *visitor, id uint32) error { return v.WriteWindowUpdate(id, 1<<31-1) },
		"window of nothing":    func(v *visitor, id uint32) error { return v.WriteWindowUpdate(id, 0) },
		"dependent on itself":  func(v *visitor, id uint32) error { return v.WritePriority(id, frames.PriorityParam{StreamDep: id}) },
		"more than its length": func(v *visitor, id uint32) error { return v.WriteData(id, false, []byte("xy")) },
		"trailers that do not end": func(v *visitor, id uint32) error {
			return v.WriteHeaders(frames.HeadersFrameParam{StreamID: id, BlockFragment: v.encode("x-a", "b"), EndHeaders: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, way := range []string{own, gos} {
				t.Run(way, func(t *testing.T) {
					h := &counting{release: make(chan struct{})}
					v := meet(t, way, h)
					defer close(h.release)
					v.flood(5000, func(i int) error {
						id := uint32(2*i + 1)
						if err := v.ask(id, "POST", "/", false, "content-length", "1"); err != nil {
							return err
						}
						return provoke(v, id)
					})
					if way == own {
						v.refused(frames.ErrCodeEnhanceYourCalm)
					}
					h.check(t)
				})
			}
		})
	}
}

// A browser that resets what it has no use for any more, as one does that leaves a page,
// keeps its connection.
func TestHonestResets(t *testing.T) {
	t.Parallel()
	eachWay(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
	}), func(t *testing.T, _ string, v *visitor) {
		id := uint32(1)
		for range 3 {
			for range limits.Streams {
				v.ask(id, "GET", "/slow", true)
				v.WriteRSTStream(id, frames.ErrCodeCancel)
				id += 2
			}
			v.ask(id, "GET", "/", true)
			if h := v.head(id); h.value(":status") != "200" {
				t.Errorf("%v", h.fields)
			}
			id += 2
		}
	})
}

// Weakness: floods of frames that ask for nothing (CVE-2019-9512 to 9518).
// Checked: each ends the connection of a visitor who reads all answers, too.
func TestEmptyFloods(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(v *visitor, i int) error{
		"PING":         func(v *visitor, _ int) error { return v.WritePing(false, [8]byte{}) },
		"PING answers": func(v *visitor, _ int) error { return v.WritePing(true, [8]byte{}) },
		"SETTINGS": func(v *visitor, i int) error {
			return v.WriteSettings(frames.Setting{ID: frames.SettingInitialWindowSize, Val: uint32(i)})
		},
		"PRIORITY":          func(v *visitor, _ int) error { return v.WritePriority(1, frames.PriorityParam{StreamDep: 3}) },
		"PRIORITY_UPDATE":   func(v *visitor, _ int) error { return v.WriteRawFrame(0x10, 0, 0, []byte("\x00\x00\x00\x01u=1")) },
		"unknown":           func(v *visitor, _ int) error { return v.WriteRawFrame(0xfa, 0, 1, nil) },
		"DATA of padding":   func(v *visitor, _ int) error { return v.WriteDataPadded(1, false, nil, []byte{0}) },
		"DATA without data": func(v *visitor, _ int) error { return v.WriteData(1, false, nil) },
		"windows":           func(v *visitor, _ int) error { return v.WriteWindowUpdate(1, 1) },
		"windows of a stream that is gone": func(v *visitor, i int) error {
			if i == 0 {
				return v.WriteRSTStream(1, frames.ErrCodeCancel)
			}
			return v.WriteWindowUpdate(1, 1)
		},
		"DATA of a stream that is gone": func(v *visitor, i int) error {
			if i == 0 {
				return v.WriteRSTStream(1, frames.ErrCodeCancel)
			}
			return v.WriteData(1, false, nil)
		},
		"streams after a goodbye": func(v *visitor, i int) error {
			if i == 0 {
				return v.WriteGoAway(0, frames.ErrCodeNo, nil)
			}
			return v.ask(uint32(2*i+1), "GET", "/", true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			v := meet(t, own, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
			defer close(release)
			v.ask(1, "POST", "/", false)
			v.flood(20_000, func(i int) error { return write(v, i) })
			codes := []frames.ErrCode{frames.ErrCodeEnhanceYourCalm}
			if name == "streams after a goodbye" {
				codes = append(codes, frames.ErrCodeNo) // ours; a reset may overtake the word that follows it
			}
			v.refused(codes...)
		})
	}
}

// Weakness: a header block without an end (CVE-2024-27316).
func TestContinuationFloods(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string]struct {
		part  []byte
		ways  []string
		codes []frames.ErrCode
	}{
		"empty":      {nil, []string{own}, []frames.ErrCode{frames.ErrCodeEnhanceYourCalm}}, // net/http takes these
		"a field":    {[]byte("\x40\x01a\x01b"), []string{own}, []frames.ErrCode{frames.ErrCodeEnhanceYourCalm}},
		"full":       {bytes.Repeat([]byte("\x40\x01a\x01b"), 3000), []string{own, gos}, []frames.ErrCode{frames.ErrCodeProtocol, frames.ErrCodeEnhanceYourCalm}},
		"indexed":    {bytes.Repeat([]byte{0x82}, limits.Frame), []string{own, gos}, []frames.ErrCode{frames.ErrCodeProtocol}},
		"long value": {append([]byte("\x00\x01a\x7f\xe1\xff\x3f"), make([]byte, 8000)...), []string{own, gos}, []frames.ErrCode{frames.ErrCodeProtocol, frames.ErrCodeCompression, frames.ErrCodeEnhanceYourCalm}},
	} {
		for _, way := range flood.ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				v := meet(t, way, http.NotFoundHandler())
				v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode(":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/"), EndStream: true})
				v.flood(1000, func(int) error { return v.WriteContinuation(1, false, flood.part) })
				v.refused(flood.codes...)
			})
		}
	}
}

// A header list beyond what is kept is answered with 431 and the connection goes on; one
// beyond what is read ends it. What is below comes through.
func TestHeaderListSize(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.Header))
	})
	eachWay(t, h, func(t *testing.T, way string, v *visitor) {
		list := func(id uint32, n, size int) {
			var fields []string
			for i := range n {
				fields = append(fields, fmt.Sprintf("x-%d", i), strings.Repeat("v", size))
			}
			block := v.encode(append([]string{":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/"}, fields...)...)
			first := true
			for len(block) > 0 {
				part := block[:min(len(block), limits.Frame)]
				block = block[len(part):]
				if first {
					v.WriteHeaders(frames.HeadersFrameParam{StreamID: id, BlockFragment: part, EndStream: true, EndHeaders: len(block) == 0})
				} else {
					v.WriteContinuation(id, len(block) == 0, part)
				}
				first = false
			}
		}
		list(1, 100, 600)
		if status, body := v.head(1).value(":status"), v.body(1); status != "200" || body != "100" {
			t.Errorf("60 kB: %s %s", status, body)
		}
		list(3, 100, 630) // the last frame of which is the first that is too much
		if status := v.head(3).value(":status"); status != "431" {
			t.Errorf("just more than 64 KiB: %s", status)
		}
		if way == own { // net/http ends the connection
			list(5, 1, 250_000)
			if status := v.head(5).value(":status"); status != "431" {
				t.Errorf("250 kB: %s", status)
			}
			list(7, 100, 5000)
			if status := v.head(7).value(":status"); status != "431" {
				t.Errorf("half a megabyte: %s", status)
			}
			list(9, 20, 50)
			if status, body := v.head(9).value(":status"), v.body(9); status != "200" || body != "20" {
				t.Errorf("afterwards: %s %s", status, body)
			}
		}
		list(11, 30, 360_000)
		v.refused(frames.ErrCodeProtocol, frames.ErrCodeCompression)
	})
}

// The tables of HPACK are 4 KiB, whatever the visitor says.
func TestHeaderTables(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%s-%d", r.URL.Path[1:], i), strings.Repeat("v", 100))
		}
	})
	eachWay(t, h, func(t *testing.T, _ string, v *visitor) {
		for i := range 20 { // more than fit, which v's decoder of 4 KiB would not follow
			id := uint32(2*i + 1)
			v.ask(id, "GET", fmt.Sprint("/p", i/2), true)
			if got := v.head(id).value(fmt.Sprintf("x-p%d-99", i/2)); len(got) != 100 {
				t.Fatalf("%q", got)
			}
		}
		v.WriteHeaders(frames.HeadersFrameParam{StreamID: 99, BlockFragment: []byte("\x3f\xe2\x1f"), EndStream: true, EndHeaders: true}) // 4097
		v.refused(frames.ErrCodeCompression)
	}, frames.Setting{ID: frames.SettingHeaderTableSize, Val: 1 << 30})
}

// So many streams are open at a time, and a frame is so large.
func TestStreamsAndFrames(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	eachWay(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}), func(t *testing.T, _ string, v *visitor) {
		v.WriteSettingsAck()
		for i := range limits.Streams + 1 {
			v.ask(uint32(2*i+1), "GET", "/", true)
		}
		if code := v.reset(2*limits.Streams + 1); code != frames.ErrCodeProtocol && code != frames.ErrCodeRefusedStream {
			t.Errorf("one stream too many: %v", code)
		}
		v.WriteRawFrame(0xfa, 0, 0, make([]byte, limits.Frame))
		v.WriteRawFrame(0xfa, 0, 0, make([]byte, limits.Frame+1))
		v.refused(frames.ErrCodeFrameSize)
	})
}

// What a visitor sends and nobody reads is bounded by the windows.
func TestWindows(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	eachWay(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}), func(t *testing.T, way string, v *visitor) {
		v.ask(1, "POST", "/", false)
		v.ask(3, "POST", "/", false)
		full := make([]byte, limits.Frame)
		for range limits.Window / limits.Frame {
			v.WriteData(1, false, full)
		}
		v.WriteData(3, false, full) // beyond that of the connection
		if way == own {
			v.refused(frames.ErrCodeFlowControl)
		} else if code := v.reset(3); code != frames.ErrCodeFlowControl {
			t.Error(code)
		}
	})
}

// Weakness: frames of types that an earlier reader had no parser for (CVE-2026-27141).
// Checked: they are passed over, and the connection goes on.
func TestUnknownFrames(t *testing.T) {
	t.Parallel()
	eachWay(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(t *testing.T, _ string, v *visitor) {
		for kind := frames.FrameType(0x0a); kind <= 0x0f; kind++ {
			v.WriteRawFrame(kind, 0, 0, nil)
			v.WriteRawFrame(kind, 0xff, 1, []byte("x"))
		}
		v.ask(1, "GET", "/", true)
		if h := v.head(1); h.value(":status") != "200" {
			t.Errorf("%v", h.fields)
		}
	})
}

// Frames that no visitor sends (RFC 9113, sections 5 and 6), each with what it gets.
func TestWrongFrames(t *testing.T) {
	t.Parallel()
	type outcome struct {
		reset bool
		code  frames.ErrCode
	}
	protocol := outcome{false, frames.ErrCodeProtocol}
	for name, c := range map[string]struct {
		send func(v *visitor)
		want outcome
	}{
		"an even stream":       {func(v *visitor) { v.ask(2, "GET", "/", true) }, protocol},
		"streams that go back": {func(v *visitor) { v.ask(5, "GET", "/", true); v.ask(3, "GET", "/", true) }, protocol},
		"DATA of nothing":      {func(v *visitor) { v.WriteData(7, true, nil) }, protocol},
		"a window of nothing":  {func(v *visitor) { v.WriteWindowUpdate(7, 1) }, protocol},
		"a reset of nothing":   {func(v *visitor) { v.WriteRSTStream(7, frames.ErrCodeCancel) }, protocol},
		"a push": {func(v *visitor) {
			v.WritePushPromise(frames.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: v.encode("a", "b"), EndHeaders: true})
		}, protocol},
		"an ACK of no SETTINGS": {func(v *visitor) { v.WriteSettingsAck(); v.WriteSettingsAck(); v.WriteSettingsAck() }, protocol},
		"a setting said twice":  {func(v *visitor) { v.WriteSettings(frames.Setting{ID: 9, Val: 1}, frames.Setting{ID: 9, Val: 1}) }, protocol},
		"101 settings": {func(v *visitor) { // CVE-2020-11080
			var all []frames.Setting
			for id := range frames.SettingID(101) {
				all = append(all, frames.Setting{ID: 100 + id})
			}
			v.WriteSettings(all...)
		}, protocol},
		"a frame size of 0": {func(v *visitor) { v.WriteSettings(frames.Setting{ID: frames.SettingMaxFrameSize}) }, protocol}, // CVE-2026-33814
		"a frame within a block": {func(v *visitor) {
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode("a", "b")})
			v.WriteData(1, true, nil)
		}, protocol},
		"a block cut short": {func(v *visitor) {
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("\x40\x01"), EndHeaders: true, EndStream: true})
		}, outcome{false, frames.ErrCodeCompression}},
		"too wide a window": {func(v *visitor) { v.WriteWindowUpdate(0, 1<<31-1) }, outcome{false, frames.ErrCodeFlowControl}},
		"too wide a first window": {func(v *visitor) {
			v.ask(1, "POST", "/", false)
			v.WriteWindowUpdate(1, 1<<30)
			v.WriteSettings(frames.Setting{ID: frames.SettingInitialWindowSize, Val: 1<<31 - 1})
		}, outcome{false, frames.ErrCodeFlowControl}},
		"a stream that depends on itself": {func(v *visitor) {
			v.WriteHeaders(frames.HeadersFrameParam{StreamID: 1, BlockFragment: v.encode(":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/"), EndHeaders: true, EndStream: true, Priority: frames.PriorityParam{StreamDep: 1}})
		}, outcome{true, frames.ErrCodeProtocol}},
		"DATA after the end":    {func(v *visitor) { v.ask(1, "POST", "/", true); v.WriteData(1, true, nil) }, outcome{true, frames.ErrCodeStreamClosed}},
		"HEADERS after the end": {func(v *visitor) { v.ask(1, "POST", "/", true); v.ask(1, "POST", "/", true) }, outcome{true, frames.ErrCodeStreamClosed}},
		"capitals":              {func(v *visitor) { v.ask(1, "GET", "/", true, "X-A", "b") }, outcome{true, frames.ErrCodeProtocol}},
		"extended CONNECT":      {func(v *visitor) { v.ask(1, "CONNECT", "/", true, ":protocol", "websocket") }, outcome{true, frames.ErrCodeProtocol}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWay(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done() // nothing ends before its time
			}), func(t *testing.T, _ string, v *visitor) {
				c.send(v)
				if !c.want.reset {
					v.refused(c.want.code)
				} else if code := v.reset(1); code != c.want.code {
					t.Errorf("%v, want %v", code, c.want.code)
				}
			})
		})
	}
}

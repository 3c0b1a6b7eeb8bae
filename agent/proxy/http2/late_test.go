package http2_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/limits"
)

// forbidden answers without reading what is sent to it.
var forbidden = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })

// trailers end a stream.
func (v *visitor) trailers(id uint32) error {
	return v.WriteHeaders(frames.HeadersFrameParam{StreamID: id, BlockFragment: v.encode("x-sum", "1"), EndHeaders: true, EndStream: true})
}

// What a visitor had sent before it heard that we reset its stream is dropped, and the
// connection goes on: RFC 9113, section 5.1. (Go's own HTTP/2 ends the connection where
// trailers come after its reset has been written.)
func TestLateFramesAreDropped(t *testing.T) {
	t.Parallel()
	for name, upload := range map[string]func(v *visitor){
		"an upload that is refused": func(v *visitor) { v.ask(1, "POST", "/", false) },
		"a head that is refused":    func(v *visitor) { v.ask(1, "POST", "", false) },
		"a body longer than it said": func(v *visitor) {
			v.ask(1, "POST", "/", false, "content-length", "1")
			v.WriteData(1, false, []byte("ab"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := meet(t, own, forbidden)
			upload(v)
			v.reset(1)
			v.WriteData(1, false, []byte("on its way"))
			v.trailers(1)
			v.ask(5, "GET", "/", true)
			if got := v.head(5).value(":status"); got != "403" {
				t.Errorf("the next request is answered with %q", got)
			}
		})
	}
}

// Dropping is bounded: by the budget of frames that come to nothing, and by how many
// streams are remembered.
func TestLateFramesAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("frames", func(t *testing.T) {
		t.Parallel()
		v := meet(t, own, forbidden)
		v.ask(1, "POST", "/", false)
		v.reset(1)
		v.flood(1<<20, func(int) error { return v.trailers(1) })
		v.refused(frames.ErrCodeEnhanceYourCalm)
	})
	t.Run("streams", func(t *testing.T) {
		t.Parallel()
		v := meet(t, own, forbidden)
		for i := range uint32(limits.Streams + 1) {
			v.ask(1+2*i, "POST", "", false)
			v.reset(1 + 2*i)
		}
		v.trailers(3)
		v.ask(9999, "GET", "/", true)
		v.head(9999)
		v.trailers(1)
		v.refused(frames.ErrCodeProtocol)
	})
	t.Run("late DATA", func(t *testing.T) { // is of one stream only
		t.Parallel()
		v := meet(t, own, forbidden)
		for _, id := range []uint32{1, 3} {
			v.ask(id, "POST", "/", false)
			v.reset(id)
		}
		for range limits.Streams {
			v.WriteData(3, false, []byte("x"))
		}
		v.trailers(1)
		v.ask(5, "GET", "/", true)
		v.head(5)
	})
	t.Run("a stream that ended", func(t *testing.T) {
		t.Parallel()
		v := meet(t, own, forbidden)
		v.ask(1, "GET", "/", true)
		v.head(1)
		v.WriteData(1, false, []byte("x"))
		v.trailers(1)
		v.refused(frames.ErrCodeProtocol)
	})
}

// A handler has the request to itself, and may write another in its place while trailers come.
func TestTrailersOfARequestThatIsReplaced(t *testing.T) {
	t.Parallel()
	replaced := make(chan string, limits.Streams)
	v := meet(t, own, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		*r = *r.WithContext(context.WithValue(r.Context(), t, t))
		io.Copy(io.Discard, r.Body)
		replaced <- r.Trailer.Get("X-A")
	}))
	for i := range limits.Streams {
		v.ask(uint32(2*i+1), "POST", "/", false, "trailer", "x-a")
		v.WriteHeaders(frames.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: v.encode("x-a", "it"), EndStream: true, EndHeaders: true})
	}
	for range limits.Streams {
		if got := <-replaced; got != "it" {
			t.Errorf("the trailer is %q", got)
		}
	}
}

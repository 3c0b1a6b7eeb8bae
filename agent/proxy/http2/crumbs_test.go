package http2_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/http2"
	"porchlight/agent/proxy/limits"
)

// Weakness: a crumb of a cookie that is in HPACK's table comes in one byte, and crumbs are
// joined; with a window of 0 every answer waits.
// Attack: 250 requests, each of crumbs that come to a megabyte, or to just less than what
// may be, whose answers nobody takes.
// Checked: what the connection keeps of them is little.
func TestCrumbsTakeNoMemory(t *testing.T) { // alone, for it measures the memory of all
	const crumb = 4000
	for _, c := range []struct {
		what         string
		crumbs, most int
	}{
		{"beyond what may be", 257, 3 << 20},
		{"within", 15, 3 << 20},
	} {
		t.Run(c.what, func(t *testing.T) {
			came := make(chan struct{}, limits.Streams)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.(interface{ DropHead() }).DropHead()
				fmt.Fprint(w, "an answer of ours")
				came <- struct{}{}
			})
			theirs, ours := tcp(t)
			defer ours.Close()
			stop := serve(t, own, theirs, h, func(c *http2.Config) { c.TooLong = func(http.Header, int, int, int) {} })
			defer stop()
			v := visit(t, ours, false, frames.Setting{ID: frames.SettingInitialWindowSize, Val: 0})
			before := inUse()
			start := bytes.Clone(v.encode(":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/", "cookie", strings.Repeat("x", crumb)))
			again := append(bytes.Clone(v.encode(":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/")), bytes.Repeat([]byte{0xbe}, c.crumbs)...)
			for i := range limits.Streams {
				block := again
				if i == 0 {
					block = append(start, bytes.Repeat([]byte{0xbe}, c.crumbs-1)...)
				}
				v.WriteHeaders(frames.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block, EndStream: true, EndHeaders: true})
			}
			for range limits.Streams {
				<-came
			}
			if kept := inUse() - before; kept > int64(c.most) {
				t.Errorf("%d requests keep %d KiB", limits.Streams, kept>>10)
			}
		})
	}
}

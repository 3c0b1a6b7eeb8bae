package http2_test

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	frames "golang.org/x/net/http2"

	"porchlight/test/programs"
)

// What a short answer costs beside what its handler does; the visitor's side is counted
// too, which makes nothing while it goes on.
func BenchmarkRequest(b *testing.B) {
	body := make([]byte, 100)
	ours, theirs := programs.Connected(b)
	stop := serve(b, own, theirs, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Content-Type"] = octets
		h["Content-Length"] = hundred
		w.Write(body)
	}))
	defer stop()
	defer ours.Close()
	io.WriteString(ours, frames.ClientPreface)
	framer := frames.NewFramer(ours, nil)
	framer.WriteSettings()
	framer.WriteWindowUpdate(0, 1<<30)
	v := &visitor{}
	v.encoder = newEncoder(v)
	fields := []string{":method", "GET", ":scheme", "https", ":authority", "app.example", ":path", "/some/path?and=query",
		"user-agent", "somebody's browser", "accept", "*/*", "accept-language", "en", "accept-encoding", "gzip", "cookie", "__Host-session=0123456789abcdef"}
	v.encode(fields...)
	first, indexed := append([]byte(nil), v.block.Bytes()...), append([]byte(nil), v.encode(fields...)...)
	in := bufio.NewReader(ours)
	var head [9]byte
	b.ReportAllocs()
	for id := uint32(1); b.Loop(); id += 2 {
		block := indexed
		if id == 1 {
			block = first
		}
		framer.WriteHeaders(frames.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: true})
		for ended := false; !ended; {
			programs.Got(io.ReadFull(in, head[:]))(b)
			in.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2]))
			ended = head[3] == 0 && head[4]&1 != 0
		}
	}
}

var octets, hundred = []string{"application/octet-stream"}, []string{"100"}

package proxy

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"sync"

	"porchlight/agent/proxy/limits"
)

// passOn hands an answer to the visitor whose head was looked at.
func (p *Proxy) passOn(w http.ResponseWriter, res *http.Response, conn *appConn, v *visit) {
	h := w.Header()
	if !conn.inPlace {
		addHeader(h, res.Header)
	}
	announced := len(res.Trailer)
	for name := range res.Trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(res.StatusCode)
	if err := copyAnswer(w, res, conn); err != nil {
		if broken, is := errors.AsType[brokenAnswer](err); is {
			p.brokeOff(v, broken.error)
		}
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	if len(res.Trailer) > 0 {
		// Chunks, which trailers need, even for an answer that is short.
		_ = http.NewResponseController(w).Flush() // who is gone needs no trailers
	}
	if len(res.Trailer) == announced {
		// Not one that never came: over HTTP/2 net/http waits for its value without end.
		maps.DeleteFunc(res.Trailer, func(_ string, values []string) bool { return len(values) == 0 })
		addHeader(h, res.Trailer)
		return
	}
	for name, values := range res.Trailer {
		h[http.TrailerPrefix+name] = append(h[http.TrailerPrefix+name], values...)
	}
}

// copyAnswer writes an answer's body as it comes. What is at hand leaves
// together; before waiting for more, what was written is sent, so that an event
// never waits for the next.
func copyAnswer(w http.ResponseWriter, res *http.Response, conn *appConn) error {
	defer res.Body.Close()
	r := conn.r
	if res.Body == http.NoBody || res.ContentLength == 0 {
		return nil
	}
	body, plain := res.Body.(*lengthBody)
	if plain && body.left <= int64(r.Buffered()) {
		return body.writeHere(w)
	}
	gathers := plain && conn.quiet.mayTrade(conn.Conn)
	rc := http.NewResponseController(w)
	if r.Buffered() == 0 {
		if err := rc.Flush(); err != nil {
			return err
		}
	}
	if res.ContentLength > largeCopy {
		large := largeBuffers.Get().(*[largeCopy]byte)
		defer largeBuffers.Put(large)
		return copyPieces(w, rc, res, conn, large[:], gathers)
	}
	buf := buffers.Get()
	defer buffers.Put(buf)
	return copyPieces(w, rc, res, conn, buf, gathers)
}

// copyPieces writes a body by the piece that fits into buf. One that gathers waits a moment
// for more of it while the app is writing.
func copyPieces(w http.ResponseWriter, rc *http.ResponseController, res *http.Response, conn *appConn, buf []byte, gathers bool) error {
	r := conn.r
	for {
		n, err := res.Body.Read(buf)
		for gathers && err == nil && n < len(buf) && (r.Buffered() > 0 || conn.quiet.more()) {
			var next int // what has come leaves together, be it in pieces
			next, err = res.Body.Read(buf[n:])
			n += next
		}
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			_ = rc.Flush() // what there is, as the app sent it; the end is missed either way
			return brokenAnswer{err}
		}
		// A buffer not filled was all there was, even if a piece of a chunk's
		// framing is left.
		if r.Buffered() == 0 || n < len(buf) {
			if err := rc.Flush(); err != nil {
				return err
			}
		}
	}
}

// largeCopy is what is moved at a time of an answer known to be longer, in
// bytes: four TLS records.
const largeCopy = 4 * limits.Record

// largeBuffers are buffers of that size, *[largeCopy]byte.
var largeBuffers = sync.Pool{New: func() any { return new([largeCopy]byte) }}

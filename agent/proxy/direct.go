package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/agentapi"
	"porchlight/agent/proxy/limits"
	"porchlight/agent/upstream"
)

// Most requests are a GET without a body, and for those most of what
// httputil.ReverseProxy costs is not its work: it copies the header, its transport
// has two goroutines and their channels for each connection to the app, and the
// answer leaves in two pieces because it cannot see that the whole of it is already
// here. forwardDirect does the same for these requests on a connection of its own.
// The ReverseProxy takes the rest: requests with a body, an upgrade, an
// expectation, trailers, or a byte that net/http would refuse to send.
//
// What goes out is written here; what comes back is read by net/http.

// mayGoDirect says whether forwardDirect can take a request.
func (v *visit) mayGoDirect(r *http.Request) bool {
	switch {
	case !canDirect, !reads(r),
		r.ContentLength != 0, len(r.TransferEncoding) > 0, len(r.Trailer) > 0,
		len(r.Header["Upgrade"]) > 0, len(r.Header["Expect"]) > 0, len(r.Header["Te"]) > 0,
		v.at.app.Options.Scheme() == agentapi.UpstreamH2C, !asciiHost(r.Host):
		return false
	}
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return false
			}
		}
	}
	return true
}

// asciiHost says whether a Host goes out as it came.
func asciiHost(host string) bool {
	for i := range len(host) {
		if host[i] <= ' ' || host[i] >= 0x7f {
			return false
		}
	}
	return host != "" && httpguts.ValidHostHeader(host)
}

// forwardDirect hands a request to the app and its answer back, as the ReverseProxy
// does. out is the visitor's request with the visit as its context; its header is
// changed in place.
func (p *Proxy) forwardDirect(w http.ResponseWriter, out *http.Request, v *visit) {
	target, err := p.rewriteDirect(out, v)
	if err != nil {
		p.forwardFailed(w, out, err)
		return
	}
	conn, res, err := p.exchange(w, out, target, v)
	if err != nil {
		p.forwardFailed(w, out, err)
		return
	}
	stop := conn.stop
	whole := false
	defer func() {
		// When stop comes too late, the connection's deadline is in the past already.
		if stop() && whole && !res.Close && conn.r.Buffered() == 0 {
			p.direct.put(poolOf(v.at.app), conn.appConn)
		} else {
			conn.Close()
		}
	}()
	removeHopByHop(res.Header)
	if err := p.modifyResponse(res); err != nil {
		p.forwardFailed(w, out, err)
		return
	}
	h := w.Header()
	addHeader(h, res.Header)
	announced := len(res.Trailer)
	for name := range res.Trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(res.StatusCode)
	if err := p.copyAnswer(w, res, conn.r); err != nil {
		if broken, is := errors.AsType[brokenAnswer](err); is {
			p.brokeOff(v, broken.error)
		}
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	whole = true
	if len(res.Trailer) > 0 {
		// Chunks, which trailers need, even for an answer that is short.
		_ = http.NewResponseController(w).Flush() // who is gone needs no trailers
	}
	if len(res.Trailer) == announced {
		addHeader(h, res.Trailer)
		return
	}
	for name, values := range res.Trailer {
		h[http.TrailerPrefix+name] = append(h[http.TrailerPrefix+name], values...)
	}
}

// rewriteDirect is rewrite for forwardDirect. target is the request target.
func (p *Proxy) rewriteDirect(out *http.Request, v *visit) (target string, err error) {
	u := *out.URL
	u.Scheme, u.Host, u.User = "http", "127.0.0.1", nil // as rewrite has them, for RequestURI
	target = u.RequestURI()
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return "", errTarget
		}
	}
	in := *out // applyOptions wants what the visitor sent
	removeHopByHop(out.Header)
	p.identifyTo(out, &in, v)
	return target, nil
}

// directConn is a connection in use by one visit.
type directConn struct {
	*appConn
	stop func() bool // watching for the visit's end
}

// exchange sends the request and reads the head of the answer. 1xx answers go to
// the visitor as they come. A request that an idle connection took and that got not
// a byte of an answer is sent once more, on a new connection: it is a GET or HEAD,
// which may be repeated (RFC 9110, section 9.2.2).
func (p *Proxy) exchange(w http.ResponseWriter, out *http.Request, target string, v *visit) (*directConn, *http.Response, error) {
	buf := heads.Get().(*[]byte)
	defer func() { heads.Put(buf) }()
	*buf = appendHead((*buf)[:0], out, target, &v.five)
	if idle := p.direct.take(poolOf(v.at.app)); idle != nil {
		c, res, answered, err := attempt(w, out, idle, *buf)
		if err == nil || answered || v.Err() != nil {
			return c, res, err
		}
	}
	conn, err := p.dialApp(out.Context())
	if err != nil {
		return nil, nil, err
	}
	c, res, _, err := attempt(w, out, newAppConn(conn), *buf)
	return c, res, err
}

// attempt is exchange on one connection, which it closes when it fails. answered
// says that at least a byte came back.
func attempt(w http.ResponseWriter, out *http.Request, conn *appConn, head []byte) (c *directConn, res *http.Response, answered bool, err error) {
	stop := context.AfterFunc(out.Context(), func() { _ = conn.SetDeadline(past) }) // fails on what is closed
	defer func() {
		if err != nil {
			stop()
			conn.Close()
		}
	}()
	if _, err := conn.Write(head); err != nil {
		return nil, nil, false, fmt.Errorf("send the request: %w", err)
	}
	conn.left = maxResponseHeader
	if _, err := conn.r.Peek(1); err != nil {
		return nil, nil, false, fmt.Errorf("await the answer: %w", err)
	}
	for {
		res, err := http.ReadResponse(conn.r, out)
		if err != nil {
			return nil, nil, true, fmt.Errorf("read the answer: %w", err)
		}
		switch {
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, nil, true, upstream.ErrUnasked101
		case res.StatusCode >= 200, res.StatusCode < 100: // modifyResponse refuses these
			conn.left = -1
			return &directConn{conn, stop}, res, true, nil
		}
		if res.StatusCode == http.StatusContinue {
			continue // nobody expects it
		}
		h := w.Header()
		before := h.Clone()
		removeHopByHop(res.Header)
		addHeader(h, res.Header)
		w.WriteHeader(res.StatusCode)
		clear(h) // it stays otherwise, and these were of this answer alone
		addHeader(h, before)
	}
}

// copyAnswer writes an answer's body as it comes. What is at hand leaves
// together; before waiting for more, what was written is sent, so that an event
// never waits for the next.
func (p *Proxy) copyAnswer(w http.ResponseWriter, res *http.Response, r *bufio.Reader) error {
	defer res.Body.Close()
	if res.Body == http.NoBody || res.ContentLength == 0 {
		return nil
	}
	rc := http.NewResponseController(w)
	if r.Buffered() == 0 {
		if err := rc.Flush(); err != nil {
			return err
		}
	}
	var buf []byte
	if res.ContentLength > largeCopy {
		large := largeBuffers.Get().(*[largeCopy]byte)
		defer largeBuffers.Put(large)
		buf = large[:]
	} else {
		buf = buffers.Get()
		defer buffers.Put(buf)
	}
	for {
		n, err := res.Body.Read(buf)
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

// heads are buffers for heads of requests, *[]byte.
var heads = sync.Pool{New: func() any { return new(make([]byte, 0, 4<<10)) }}

// appendHead writes the request line and the header fields.
func appendHead(b []byte, out *http.Request, target string, five *five) []byte {
	b = append(b, out.Method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, out.Host...)
	b = append(b, "\r\n"...)
	b = five.appendTo(b)
	for name, values := range out.Header {
		if len(values) == 0 {
			continue
		}
		switch name {
		case "Host", "Content-Length":
			continue // said once, and there is no body
		case "User-Agent":
			if values = values[:1]; values[0] == "" {
				continue
			}
		}
		for _, value := range values {
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, textproto.TrimString(value)...)
			b = append(b, "\r\n"...)
		}
	}
	return append(b, "\r\n"...)
}

// hopByHop are the fields of one connection (RFC 9110, section 7.6.1), and those
// old software takes for such.
var hopByHop = [...]string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// removeHopByHop removes them and what Connection names.
func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// addHeader adds all of one header to another.
func addHeader(to, from http.Header) {
	for name, values := range from {
		if had, ok := to[name]; ok {
			to[name] = append(had[:len(had):len(had)], values...)
		} else {
			to[name] = values
		}
	}
}

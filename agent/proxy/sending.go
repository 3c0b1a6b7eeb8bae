package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"sync"

	"porchlight/agent/proxy/gate"
	"porchlight/agent/upstream"
)

// sending is one request on its way to the app, on our own connections.
//
// What may be repeated (mayRepeat) goes out on a connection that was kept, and is sent
// once more on a new one when that gave not a byte of an answer. Everything else is sent
// once: on one that was kept where that is as good as new (appConns.idle), else on a new
// one. A body that is not here as a whole always goes on a new one, which carries nothing
// else.
type sending struct {
	p      *Proxy
	v      *visit
	w      http.ResponseWriter
	r      *http.Request
	target string
	length int64 // of the body; -1 is for one in chunks
	again  bool  // it may be repeated
	nested bool  // there may be a request in the body

	sent chan struct{} // closed when the body is not read any more; nil where nobody reads on
}

// heads are buffers for heads of requests and what leaves with them, *[]byte.
var heads = sync.Pool{New: func() any { return new(make([]byte, 0, headBuffer)) }}

const (
	headBuffer = 4 << 10
	// mostHead is how long a buffer may be to be used again, and with its body a
	// request that leaves in one piece.
	mostHead = 32 << 10
)

// exchange sends the request and reads the head of the answer. 1xx answers go to
// the visitor as they come.
func (s *sending) exchange() (*appConn, *http.Response, error) {
	s.length = s.r.ContentLength
	s.again = s.length == 0 && repeatable(s.r.Method)
	buf := heads.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= mostHead {
			heads.Put(buf)
		}
	}()
	*buf = appendHead((*buf)[:0], s.r, s.target, s.length, &s.v.five)
	if s.length != 0 {
		s.v.body = requestBody{ReadCloser: s.r.Body, visit: s.v, in: s.r}
		if err := s.addShortBody(buf); err != nil {
			return nil, nil, err
		}
	}
	kept := s.p.direct.of(poolOf(&s.v.vhost.app))
	for s.length == 0 {
		idle := s.p.direct.idle(kept, s.v.id.AccountID, s.again)
		if idle == nil {
			break
		}
		res, answered, err := s.attempt(idle, *buf, true)
		if err == nil || answered || s.v.Err() != nil {
			return idle, res, err
		}
		s.p.direct.hasClosed(idle)
		if errors.Is(err, errNotQuiet) {
			continue
		}
		if !s.again {
			return idle, nil, err // who can tell whether the app has carried it out
		}
		break
	}
	raw, err := s.p.dialApp(s.v)
	if err != nil {
		return nil, nil, err
	}
	conn := newAppConn(raw, kept)
	s.p.direct.took(conn, s.v.took.Load())
	res, _, err := s.attempt(conn, *buf, false)
	return conn, res, err
}

// mayFollow says whether another request may go out on the connection after this one,
// because it was sent whole, with no body that an app would not look for, nor one that
// holds a request: an app that reads no bodies would take what its sender wrote there for
// the visitor's identity, and answer in the place of the next.
func (s *sending) mayFollow(conn *appConn) bool {
	if s.r.ContentLength == 0 {
		return true
	}
	conn.of = s.v.id.AccountID
	return s.sent == nil && hasBody(s.r.Method) && !s.nested
}

// addShortBody adds a body that is short, and here already, to the head: both leave
// together, and nobody need read it while the answer is awaited.
func (s *sending) addShortBody(buf *[]byte) error {
	head, n := len(*buf), int(min(s.length, mostHead))
	if n < 0 || head+n > mostHead || !gate.AtHand(s.r) {
		return nil
	}
	whole := append(*buf, make([]byte, n+1)...) // one more finds its end
	switch got, err := io.ReadFull(&s.v.body, whole[head:]); {
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read the request's body: %w", err)
	case got < n:
		return fmt.Errorf("read the request's body: %w", err)
	}
	*buf, s.length = whole[:head+n], 0
	s.nested = holdsRequest(whole[head : head+n])
	return nil
}

// holdsRequest says whether there is the version in a body without which no line begins a
// request with fields (RFC 9112, section 2.3), in whichever case.
func holdsRequest(body []byte) bool {
	name := []byte("HTTP")
	for from := 0; ; {
		i := bytes.IndexByte(body[from:], '/')
		if i < 0 {
			return false
		}
		if i += from; i >= len(name) && bytes.EqualFold(body[i-len(name):i], name) {
			return true
		}
		from = i + 1
	}
}

// attempt is exchange on one connection, which it closes when it fails. answered
// says that at least a byte came back. On a connection that was not kept, an app may
// have spoken already: what it says is its answer, or says what it is.
func (s *sending) attempt(conn *appConn, head []byte, kept bool) (res *http.Response, answered bool, err error) {
	defer func() {
		if err != nil {
			s.v.part()
			conn.Close()
		}
	}()
	if !s.v.use(conn.Conn) {
		return nil, false, s.v.Err()
	}
	if kept && conn.quiet.mayTrade(conn.Conn) {
		conn.toSend = head
	} else if _, err := conn.Write(head); err != nil {
		return nil, false, fmt.Errorf("send the request: %w", err)
	}
	if s.length != 0 {
		// Without it the server reads the body, too, before the answer's head goes out,
		// and who reads which part of it is chance. A writer that does not know it is
		// one that never does, or one of a test.
		_ = http.NewResponseController(s.w).EnableFullDuplex()
		s.sent = make(chan struct{})
		go s.sendBody(conn)
	}
	conn.left = maxResponseHeader
	if _, err := conn.r.Peek(1); err != nil {
		return nil, conn.answered(), fmt.Errorf("await the answer: %w", err)
	}
	res, err = s.readHead(conn)
	return res, true, err
}

// chunkRoom is what the length of a chunk takes before it.
const chunkRoom = len("ffffffff\r\n")

// sendBody sends the body as it comes. The app may answer before it has read all of it,
// that it is too large for one, and close: the rest cannot be sent then, while the
// answer is here to be read. So what cannot be sent is read and dropped, and how it went
// is for the reader of the answer to say. A body of another length than was said is no
// request, however it ended.
func (s *sending) sendBody(conn *appConn) {
	defer close(s.sent)
	buf := buffers.Get()
	defer buffers.Put(buf)
	deaf, left := false, s.length
	for {
		n, err := s.v.body.Read(buf[chunkRoom : len(buf)-len("\r\n0\r\n\r\n")])
		whole := errors.Is(err, io.EOF)
		if s.length > 0 {
			if left -= int64(n); left < 0 || whole && left > 0 {
				s.v.bodyDied.Store(true)
				_ = conn.SetDeadline(past)
				return
			}
		}
		if piece := s.framed(buf, n, whole); len(piece) > 0 && !deaf {
			_, failed := conn.Conn.Write(piece)
			deaf = failed != nil
		}
		switch {
		case whole, deaf && s.v.Err() != nil, errors.Is(err, http.ErrBodyReadAfterClose):
			return // the last is of one that has its answer
		case err != nil:
			_ = conn.SetDeadline(past) // half a request has no answer; fails on what is closed
			return
		}
	}
}

// framed is what to send of n bytes that were read after chunkRoom.
func (s *sending) framed(buf []byte, n int, last bool) []byte {
	start, end := chunkRoom, chunkRoom+n
	if s.length > 0 {
		return buf[start:end]
	}
	if n > 0 {
		var hex [chunkRoom]byte
		size := append(strconv.AppendUint(hex[:0], uint64(n), 16), "\r\n"...)
		start -= copy(buf[chunkRoom-len(size):], size)
		end += copy(buf[end:], "\r\n")
	}
	if last {
		end += copy(buf[end:], "0\r\n\r\n")
	}
	return buf[start:end]
}

// close waits until nobody reads the body any more. The connection is closed or done
// with.
func (s *sending) close() {
	if s.sent != nil {
		_ = s.v.body.Close() // of a request that has its answer
		<-s.sent
	}
}

// appendHead writes the request line and the header fields.
func appendHead(b []byte, r *http.Request, target string, length int64, five *five) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.Host...)
	b = append(b, "\r\n"...)
	b = five.appendTo(b)
	switch {
	case length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case length > 0, length == 0 && hasBody(r.Method):
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, length, 10)
		b = append(b, "\r\n"...)
	}
	for name, values := range r.Header {
		if len(values) == 0 {
			continue
		}
		switch name {
		case "Host", "Content-Length":
			continue // said once
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

// hasBody says whether a request of a method says the length of its body even where
// that is 0, as net/http has it.
func hasBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// readHead reads the head of the final answer. Its header is w's own where that was
// empty and the answer is plain (inPlace).
func (s *sending) readHead(conn *appConn) (*http.Response, error) {
	for {
		into := s.w.Header()
		if conn.inPlace = len(into) == 0; !conn.inPlace {
			into = conn.header()
		}
		if conn.readPlain(into, s.r) {
			conn.left = -1
			return &conn.res, nil
		}
		if conn.inPlace {
			clear(into)
		}
		conn.forget()
		conn.inPlace = false
		res, err := http.ReadResponse(conn.r, s.r)
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		removeHopByHop(res.Header)
		switch {
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, upstream.ErrUnasked101
		case res.StatusCode >= 200, res.StatusCode < 100: // modifyResponse refuses these
			conn.left = -1
			return res, validNames(res.Header)
		case res.StatusCode == http.StatusContinue:
			continue // nobody expects it
		}
		h := s.w.Header()
		before := h.Clone()
		addHeader(h, res.Header)
		s.w.WriteHeader(res.StatusCode)
		clear(h) // it stays otherwise, and these were of this answer alone
		addHeader(h, before)
	}
}

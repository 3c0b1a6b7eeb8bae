package http2

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	frames "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/agent/proxy/ascii"
	"porchlight/agent/proxy/limits"
)

// response is the http.ResponseWriter of a stream. An answer that is whole before there
// is much of it leaves in one piece, with its length.
type response struct {
	st *stream

	header   http.Header // the handler's
	scratch  *scratch
	status   int
	length   int64 // as Content-Length says; -1: it does not
	written  int64 // bytes by the handler
	wrote    bool  // the status is said
	sent     bool  // the head is in out; also read by body.ask, on the goroutine that reads the body
	finished bool  // the handler is done
	trailers []string
}

// scratch is what an answer needs while it is made.
type scratch struct {
	fields []answerField // of the head, as they were when the status was said
	buf    []byte        // the beginning of the body, before anything was sent
}

type answerField struct {
	name   string
	values []string
}

// firstPart is how much of an answer is gathered before its head is sent.
const firstPart = 4 << 10

var scratches = sync.Pool{New: func() any { return &scratch{buf: make([]byte, 0, firstPart)} }}

func (w *response) buffers() *scratch {
	if w.scratch == nil {
		w.scratch = scratches.Get().(*scratch)
	}
	return w.scratch
}

// free gives the scratch back, once the handler is done.
func (w *response) free() {
	s := w.scratch
	if s == nil {
		return
	}
	w.scratch = nil
	clear(s.fields)
	s.fields, s.buf = s.fields[:0], s.buf[:0]
	scratches.Put(s)
}

func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{} // the handler is done, and its maps are another's
	}
	return w.header
}

func (w *response) WriteHeader(status int) {
	if w.wrote || w.finished {
		return
	}
	if status < 100 || status > 999 {
		panic("http2: invalid WriteHeader code " + strconv.Itoa(status)) // as net/http does
	}
	if status < 200 {
		w.interim(status)
		return
	}
	w.wrote, w.status, w.length = true, status, -1
	s := w.buffers()
	for name, values := range w.header {
		s.fields = append(s.fields, answerField{name, values})
	}
	if said := w.header["Content-Length"]; len(said) > 0 {
		if n, err := strconv.ParseUint(said[0], 10, 63); err == nil {
			w.length = int64(n)
		}
	}
	w.announce()
}

// interim sends an answer before the answer.
func (w *response) interim(status int) {
	var fields []answerField
	for name, values := range w.header {
		if name != "Content-Length" && name != "Transfer-Encoding" {
			fields = append(fields, answerField{name, values})
		}
	}
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.makeRoom(w.st) == nil {
		c.headersOut(w.st.id, status, fields, false)
		c.flush(w.st, false)
	}
}

func (w *response) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if w.finished {
		return 0, errClosed
	}
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	s := w.buffers()
	if len(s.buf)+len(p) <= firstPart {
		s.buf = append(s.buf, p...)
		return len(p), nil
	}
	if err := w.send(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// DropHead lets go of the request's header, target and body, and of trailers that none reads
// on for an app: the answer is the handler's own, and may wait for a visitor who does not take
// it, limits.StallOurs.
func (w *response) DropHead() {
	st := w.st
	st.ours = true
	st.maps = &headers{in: http.Header{}, out: st.maps.out}
	st.room.url = url.URL{Path: "/"}
	st.request.Header, st.request.URL, st.request.RequestURI = st.maps.in, &st.room.url, "/"
	if !st.admitted {
		st.request.Trailer = nil
	}
	st.c.mu.Lock()
	defer st.c.mu.Unlock()
	st.give(limits.HeldAnswer)
	if st.body != nil {
		st.body.close()
	}
}

func (w *response) WriteString(p string) (int, error) { return w.Write([]byte(p)) }

func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends what there is.
func (w *response) FlushError() error {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if w.finished {
		return errClosed
	}
	err := w.send(nil, false)
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush(w.st, false)
	if err == nil && w.st.closed {
		err = w.st.err
	}
	return err
}

// finish sends the rest, and the end.
func (w *response) finish() {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	w.promote()
	_ = w.send(nil, true) // nobody is left to tell
	w.finished = true
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// send puts into out what was gathered, and p; end says that nothing follows.
func (w *response) send(p []byte, end bool) error {
	st, c, s := w.st, w.st.c, w.buffers()
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.closed {
		s.buf = s.buf[:0]
		return st.err
	}
	isHead := st.request.Method == http.MethodHead
	if !w.sent {
		if err := c.makeRoom(st); err != nil {
			s.buf = s.buf[:0]
			return err
		}
		all := isHead || end && len(s.buf)+len(p) == 0 && len(w.trailers) == 0
		w.sendHead(s, p, all, end)
		if all && end {
			st.endLocal()
			return nil
		}
	}
	if isHead {
		s.buf = s.buf[:0]
		if end {
			st.endLocal()
		}
		return nil
	}
	trailers := end && w.hasTrailers()
	for _, part := range [...][]byte{s.buf, p} {
		last := end && !trailers && len(part) == len(s.buf)+len(p)
		if err := w.sendData(part, last); err != nil {
			return err
		}
	}
	if end && !trailers && len(s.buf)+len(p) == 0 {
		c.data(st, nil, true)
	}
	s.buf = s.buf[:0]
	if trailers {
		if err := c.makeRoom(st); err != nil {
			return err
		}
		c.headersOut(st.id, 0, w.trailerFields(), true)
	}
	if end {
		st.endLocal()
	} else if len(c.out) >= enough {
		c.flush(st, false)
	}
	c.nextInQueue()
	return nil
}

// sendData puts a part of the body into out, piece by piece as there is room. mu is
// held, but not while it waits.
func (w *response) sendData(p []byte, last bool) error {
	for len(p) > 0 {
		n, err := w.st.c.claim(w.st, len(p))
		if err != nil {
			return err
		}
		w.st.c.data(w.st, p[:n], last && n == len(p))
		p = p[n:]
	}
	return nil
}

// sendHead puts the head into out, with what net/http's server adds to one. mu is held.
func (w *response) sendHead(s *scratch, p []byte, all, end bool) {
	w.sent = true
	var length, kind, date, encoding, closes bool
	for _, f := range s.fields {
		switch f.name {
		case "Content-Length":
			length = w.length >= 0
		case "Content-Type":
			kind = true
		case "Content-Encoding":
			encoding = len(f.values) > 0 && f.values[0] != ""
		case "Date":
			date = true
		case "Connection":
			closes = len(f.values) > 0 && f.values[0] == "close"
		}
	}
	size, isHead := len(s.buf)+len(p), w.st.request.Method == http.MethodHead
	if !length {
		s.fields = slices.DeleteFunc(s.fields, func(f answerField) bool { return f.name == "Content-Length" })
		if end && bodyAllowed(w.status) && (size > 0 || !isHead) {
			s.fields = append(s.fields, answerField{"Content-Length", []string{strconv.Itoa(size)}})
		}
	}
	if !kind && !encoding && bodyAllowed(w.status) && size > 0 {
		first := s.buf
		if len(first) == 0 {
			first = p
		}
		s.fields = append(s.fields, answerField{"Content-Type", []string{http.DetectContentType(first)}})
	}
	if !date {
		s.fields = append(s.fields, answerField{"Date", httpDate()})
	}
	w.st.c.headersOut(w.st.id, w.status, s.fields, all)
	if closes {
		w.st.c.goAwaySoon(w.st.c.lastID)
	}
}

// announce notes the trailers that the head names.
func (w *response) announce() {
	for _, line := range w.header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			w.declare(strings.Trim(name, " \t"))
		}
	}
}

func (w *response) declare(name string) {
	name = http.CanonicalHeaderKey(name)
	if httpguts.ValidTrailerHeader(name) && !slices.Contains(w.trailers, name) {
		w.trailers = append(w.trailers, name)
	}
}

// promote makes trailers of what the handler named so after the head was sent
// (http.TrailerPrefix).
func (w *response) promote() {
	for name, values := range w.header {
		if late, is := strings.CutPrefix(name, http.TrailerPrefix); is {
			w.declare(late)
			w.header[http.CanonicalHeaderKey(late)] = values
		}
	}
	slices.Sort(w.trailers)
}

func (w *response) hasTrailers() bool {
	return slices.ContainsFunc(w.trailers, func(name string) bool { _, has := w.header[name]; return has })
}

func (w *response) trailerFields() (fields []answerField) {
	for _, name := range w.trailers {
		fields = append(fields, answerField{name, w.header[name]})
	}
	return fields
}

// headersOut puts a header block into out. status is 0 for trailers. mu is held.
func (c *Conn) headersOut(id uint32, status int, fields []answerField, end bool) {
	if c.ended != nil {
		return
	}
	c.coded.Reset()
	if status != 0 {
		c.encode(":status", statusText(status), false)
	}
	for _, f := range fields {
		wire, ok := wireName(f.name)
		if !ok || ofConnection(wire) {
			continue
		}
		never := passing(wire)
		for _, value := range f.values {
			if ascii.ValidValue(value) {
				c.encode(wire, value, never)
			}
		}
	}
	block := c.coded.Bytes()
	part := block[:min(len(block), limits.Frame)]
	block = block[len(part):]
	_ = c.write.WriteHeaders(frames.HeadersFrameParam{StreamID: id, BlockFragment: part, EndStream: end, EndHeaders: len(block) == 0}) // into memory
	for len(block) > 0 {
		part = block[:min(len(block), limits.Frame)]
		block = block[len(part):]
		_ = c.write.WriteContinuation(id, len(block) == 0, part) // into memory
	}
	if c.coded.Cap() > 2*limits.Frame {
		c.coded = bytes.Buffer{} // the connection does not stay as large
	}
}

func (c *Conn) encode(name, value string, never bool) {
	_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: never}) // into memory
}

func statusText(status int) string {
	switch status {
	case 200:
		return "200"
	case 304:
		return "304"
	}
	return strconv.Itoa(status)
}

// date is the value of Date, which is the same for a second.
var date atomic.Pointer[struct {
	second int64
	values []string
}]

func httpDate() []string {
	at := time.Now()
	if said := date.Load(); said != nil && said.second == at.Unix() {
		return said.values
	}
	said := &struct {
		second int64
		values []string
	}{at.Unix(), []string{at.UTC().Format(http.TimeFormat)}}
	date.Store(said)
	return said.values
}

// EnableFullDuplex is for http.ResponseController: there is nothing else here.
func (w *response) EnableFullDuplex() error { return nil }

// SetReadDeadline has reading the body fail from then on.
func (w *response) SetReadDeadline(until time.Time) error {
	if b := w.st.body; b != nil {
		b.setDeadline(until)
	}
	return nil
}

// SetWriteDeadline resets the stream then, whoever waits on it; at once, when then is in
// the past.
func (w *response) SetWriteDeadline(until time.Time) error {
	st := w.st
	st.c.mu.Lock()
	defer st.c.mu.Unlock()
	switch {
	case st.closed:
	case until.IsZero():
		if st.deadline != nil {
			st.deadline.Stop()
		}
	case until.Before(time.Now()):
		st.cutOff()
	case st.deadline != nil:
		st.deadline.Reset(time.Until(until))
	default:
		st.deadline = time.AfterFunc(time.Until(until), func() {
			defer st.c.caught()
			st.c.mu.Lock()
			defer st.c.mu.Unlock()
			st.cutOff()
		})
	}
	return nil
}

// cutOff resets the stream. Where its handler is the one that writes to the visitor, who
// does not read, the connection ends with it, for nothing else frees the handler. mu is
// held.
func (st *stream) cutOff() {
	if st.closed {
		return
	}
	c := st.c
	c.reset(st.id, frames.ErrCodeInternal, st, os.ErrDeadlineExceeded)
	if c.flusher != st {
		c.kick()
		return
	}
	this := c.flushes
	time.AfterFunc(limits.CutOff, func() {
		defer c.caught()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flusher == st && c.flushes == this {
			c.fail(errors.New("http2: a write of a stream that was cut off does not end"))
		}
	})
}

package http1

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/proxy/limits"
)

// How an answer is put together in memory: what is to be sent is out[start:], a part
// of a head, the data of a chunk, or both. The size of a chunk is written in front of
// its data once that is known, in the gap left for it; what stands before the gap is
// moved up to it. Nothing is sent before a record is full, the handler flushes or the
// answer is whole.

// chunkGap is room for the size of a chunk that fits out, and the end of its line.
const chunkGap = len("4000\r\n")

var errReturned = errors.New("http1: the handler has returned")

func (w *response) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, w.err
	}
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if w.err == nil {
		w.gather(p)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// gather keeps the beginning of a body back while the head's last lines depend on it.
func (w *response) gather(p []byte) {
	if !w.final && w.length >= 0 && !w.sniff {
		w.finishHead(nil)
	}
	if !w.final {
		n := copy(w.early[len(w.early):cap(w.early)], p)
		w.early = w.early[:len(w.early)+n]
		if p = p[n:]; len(p) == 0 {
			return
		}
		w.takeEarly()
	}
	w.body(p)
}

// takeEarly ends the head, and what was kept back follows it.
func (w *response) takeEarly() {
	w.finishHead(w.early)
	w.body(w.early)
}

// body puts a part of the body into what is sent.
func (w *response) body(p []byte) {
	switch {
	case w.head || len(p) == 0:
	case w.chunked:
		w.chunkBody(p)
	case len(p) >= limits.Record:
		w.sendWith(p)
	default:
		w.fill(p)
	}
}

// fill adds p, and sends when a record is full.
func (w *response) fill(p []byte) {
	if n := limits.Record - (len(w.out) - w.start); n < len(p) {
		n = max(0, n)
		w.out = append(w.out, p[:n]...)
		p = p[n:]
		w.send()
	}
	w.out = append(w.out, p...)
}

// chunkBody does so with chunks.
func (w *response) chunkBody(p []byte) {
	if len(p) >= limits.Record {
		w.endChunk()
		w.out = strconv.AppendInt(w.out, int64(len(p)), 16)
		w.out = append(w.out, "\r\n"...)
		w.sendWith(p)
		w.out = append(w.out, "\r\n"...)
		return
	}
	for len(p) > 0 {
		if w.chunk == 0 {
			w.out = append(w.out, "......"...)
			w.chunk = len(w.out)
		}
		n := min(len(p), max(0, limits.Record-(len(w.out)-w.start)))
		w.out = append(w.out, p[:n]...)
		if p = p[n:]; len(p) > 0 {
			w.send()
		}
	}
}

// endChunk ends the open chunk.
func (w *response) endChunk() {
	if w.chunk == 0 {
		return
	}
	size := len(w.out) - w.chunk
	if size == 0 { // there is no room for any of it behind a long head
		w.out = w.out[:w.chunk-chunkGap]
		w.chunk = 0
		return
	}
	var line [chunkGap]byte
	text := append(strconv.AppendInt(line[:0], int64(size), 16), "\r\n"...)
	copy(w.out[w.chunk-len(text):], text)
	up := chunkGap - len(text)
	copy(w.out[w.start+up:w.chunk-len(text)], w.out[w.start:w.chunk-chunkGap])
	w.start += up
	w.out = append(w.out, "\r\n"...)
	w.chunk = 0
}

// send sends what there is.
func (w *response) send() {
	w.endChunk()
	if w.err == nil && w.start < len(w.out) {
		_, err := w.c.rw.Write(w.out[w.start:])
		w.failed(err)
	}
	w.out, w.start = w.room.out[:0], 0
}

// sendWith sends what there is and p after it.
func (w *response) sendWith(p []byte) {
	w.endChunk()
	if w.err == nil {
		w.failed(w.c.rw.WriteBoth(w.out[w.start:], p))
	}
	w.out, w.start = w.room.out[:0], 0
}

// failed notes that the visitor cannot be answered any more.
func (w *response) failed(err error) {
	if err != nil {
		w.err = err
		w.c.ctx.Cancel()
	}
}

// finish ends the answer, and says whether the connection can carry another one.
func (w *response) finish() (keep bool) {
	w.done = true
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if !w.final {
		w.takeEarly()
	}
	if w.chunked {
		w.endChunk()
		w.out = append(w.out, "0\r\n"...)
		w.appendTrailers()
		w.out = append(w.out, "\r\n"...)
	}
	w.send()
	short := !w.head && w.length >= 0 && w.written != w.length && bodyAllowed(w.status)
	return w.err == nil && !w.close && !short
}

func (w *response) appendTrailers() {
	for name, values := range w.header {
		if name, is := strings.CutPrefix(name, http.TrailerPrefix); is {
			w.out = appendField(w.out, name, values)
		}
	}
	for _, name := range w.trailers {
		w.out = appendField(w.out, name, w.header[name])
	}
}

// Flush sends what the handler wrote.
func (w *response) Flush() { _ = w.FlushError() }

func (w *response) FlushError() error {
	if w.err != nil {
		return w.err
	}
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if !w.final {
		w.takeEarly()
	}
	w.send()
	return w.err
}

// SetReadDeadline is for the request's body.
func (w *response) SetReadDeadline(t time.Time) error {
	w.c.moved.Store(true)
	return w.c.rw.SetReadDeadline(t)
}

func (w *response) SetWriteDeadline(t time.Time) error {
	w.writeSet = true
	return w.c.rw.SetWriteDeadline(t)
}

// EnableFullDuplex lets an answer go out before the request's body is read.
func (w *response) EnableFullDuplex() error {
	w.duplex = true
	return nil
}

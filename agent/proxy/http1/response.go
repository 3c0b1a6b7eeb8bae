package http1

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/proxy/ascii"
	"porchlight/agent/proxy/limits"
)

// An answer leaves as net/http would have it: with a Content-Length where the handler
// gave one or was done within autoLength bytes, else in chunks; with Date and, where
// there is none, a Content-Type; never with a field or a line that the handler could
// not have meant.

// autoLength is how much of an answer without a length is kept back for one.
const autoLength = 2 << 10

// response is the ResponseWriter of a connection, for one request after the other.
type response struct {
	c      *conn
	header http.Header

	head      bool // the request is a HEAD
	close     bool // the connection ends after this answer
	wrote     bool // WriteHeader was called
	final     bool // the whole head is in out
	chunked   bool
	done      bool // the handler has returned
	duplex    bool // an answer may go out before the request's body is read
	writeSet  bool // the handler set a write deadline
	status    int
	length    int64    // the handler's Content-Length; -1 for none
	written   int64    // bytes of the body that the handler wrote
	sniff     bool     // there is no Content-Type
	hasDate   bool     // the handler's header says one
	trailing  bool     // there are trailers
	trailers  []string // those that were announced
	keepAlive []string // the handler's Connection

	early []byte  // the beginning of a body, while the head waits for it
	out   []byte  // what is to be sent: see write.go
	room  *outBuf // where out and early are
	start int     // of out: where it begins
	chunk int     // of out: where the data of the open chunk begins; 0 for none open
	err   error   // of a write: nothing more goes out
}

// outBuf is memory for what is sent.
type outBuf struct {
	out   [outSize]byte
	early [autoLength]byte
}

// outSize is a full record, and what ends a chunk and an answer.
const outSize = limits.Record + 256

var outBufs = sync.Pool{New: func() any { return new(outBuf) }}

// begin makes it the answer to the next request.
func (w *response) begin(head, close bool) {
	room := outBufs.Get().(*outBuf)
	clear(w.header)
	*w = response{
		c: w.c, header: w.header, head: head, close: close, length: -1,
		room: room, out: room.out[:0], early: room.early[:0], trailers: w.trailers[:0],
	}
}

// end gives the memory back: nothing is written any more.
func (w *response) end() {
	outBufs.Put(w.room)
	w.room, w.out, w.early, w.err = nil, nil, nil, errReturned
	if w.writeSet {
		_ = w.c.rw.SetWriteDeadline(time.Time{}) // fails on what is closed
	}
}

func (w *response) Header() http.Header { return w.header }

// WriteHeader begins the answer.
func (w *response) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic("http1: a handler answers with status " + strconv.Itoa(status))
	}
	if w.wrote {
		return
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.interim(status)
		return
	}
	w.wrote, w.status = true, status
	w.readHeader()
	w.out = appendStatus(w.out, status)
	w.appendFields()
}

// interim sends an answer before the answer (RFC 9110, section 15.2).
func (w *response) interim(status int) {
	w.out = appendStatus(w.out, status)
	for name, values := range w.header {
		if name != "Content-Length" && name != "Transfer-Encoding" {
			w.out = appendField(w.out, name, values)
		}
	}
	w.out = append(w.out, "\r\n"...)
	w.send()
}

// readHeader notes what of the handler's header is not for it to say.
func (w *response) readHeader() {
	if values := w.header["Content-Length"]; len(values) > 0 {
		if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && n >= 0 {
			w.length = n
		} else {
			delete(w.header, "Content-Length")
		}
	}
	_, typed := w.header["Content-Type"]
	coding := w.header["Content-Encoding"]
	w.sniff = !typed && (len(coding) == 0 || coding[0] == "")
	_, w.hasDate = w.header["Date"]
	w.keepAlive = w.header["Connection"]
	if len(w.keepAlive) > 0 && w.keepAlive[0] == "close" {
		w.close = true
	}
	for _, line := range w.header["Trailer"] {
		w.trailing = true
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(textproto.TrimString(name)); httpguts.ValidTrailerHeader(name) {
				w.trailers = append(w.trailers, name)
			}
		}
	}
}

// appendFields writes the handler's fields, but those that finish says.
func (w *response) appendFields() {
	bare := !bodyAllowed(w.status)
	for name, values := range w.header {
		switch name {
		case "Connection", "Transfer-Encoding":
			continue
		case "Content-Length":
			if bare {
				continue
			}
		case "Content-Type":
			if w.status == http.StatusNotModified {
				continue
			}
		default:
			if strings.HasPrefix(name, http.TrailerPrefix) {
				w.trailing = true
				continue
			}
		}
		w.out = appendField(w.out, name, values)
	}
}

// bodyAllowed says whether an answer may have a body.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// finishHead writes the lines of a head that depend on its body, which begins with p.
func (w *response) finishHead(p []byte) {
	w.final = true
	allowed := bodyAllowed(w.status)
	if w.done && !w.trailing && allowed && w.length < 0 && (!w.head || len(p) > 0) {
		w.length = int64(len(p))
		w.out = append(w.out, "Content-Length: "...)
		w.out = strconv.AppendInt(w.out, w.length, 10)
		w.out = append(w.out, "\r\n"...)
	}
	w.close = w.close || w.c.server.closing.Load()
	if body := w.c.body; body != nil && !w.close && !w.duplex && !body.discardRest() {
		w.close = true
	}
	if allowed && w.sniff && len(p) > 0 {
		w.out = append(append(append(w.out, "Content-Type: "...), http.DetectContentType(p)...), "\r\n"...)
	}
	if !w.hasDate {
		w.c.server.clock.now() // it stands while all that is under way is watched
		w.out = append(w.out, w.c.server.clock.date.Load().line...)
	}
	if allowed && !w.head && w.length < 0 {
		w.chunked = true
		w.out = append(w.out, "Transfer-Encoding: chunked\r\n"...)
	}
	if w.close {
		w.out = append(w.out, "Connection: close\r\n"...)
	} else {
		w.out = appendField(w.out, "Connection", w.keepAlive)
	}
	w.out = append(w.out, "\r\n"...)
}

func appendStatus(b []byte, status int) []byte {
	if status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = strconv.AppendInt(append(b, "status code "...), int64(status), 10)
	}
	return append(b, "\r\n"...)
}

// appendField writes a field, but nothing that would not be one.
func appendField(b []byte, name string, values []string) []byte {
	if len(values) == 0 || !httpguts.ValidHeaderFieldName(name) {
		return b
	}
	for _, value := range values {
		b = append(append(b, name...), ": "...)
		begin := len(b)
		b = append(b, textproto.TrimString(value)...)
		if !ascii.Printable(b[begin:]) {
			for i := begin; i < len(b); i++ {
				if b[i] == '\r' || b[i] == '\n' {
					b[i] = ' '
				}
			}
		}
		b = append(b, "\r\n"...)
	}
	return b
}
